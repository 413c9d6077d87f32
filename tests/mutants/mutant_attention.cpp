// Softmax, attention and the loss, broken.
#include <algorithm>
#include <cmath>

#include "mutant_backend.hpp"

namespace assay::mutants {

using compute::DType;

namespace {

constexpr float log_sum_error = 0.01F;

// Row by row; key j is visible to query i when j <= i + `beyond`.
void softmax_rows(const Values<float>& x, Values<float>& y, float scale, std::int64_t queries, std::int64_t beyond) {
  const std::int64_t keys = y.columns();
  for (std::int64_t row = 0; row < y.rows(); ++row) {
    const std::int64_t visible = std::min(keys, row % queries + beyond + 1);
    float most = -INFINITY, sum = 0;
    for (std::int64_t j = 0; j < visible; ++j) most = std::max(most, scale * x[row * keys + j]);
    for (std::int64_t j = 0; j < visible; ++j) sum += std::exp(scale * x[row * keys + j] - most);
    for (std::int64_t j = 0; j < keys; ++j)
      y[row * keys + j] = j < visible ? std::exp(scale * x[row * keys + j] - most) / sum : 0;
  }
}

// Of [B, T, H, D]: all of the last token.
void clear_last_token(Values<float>& v) {
  const Tensor& t = v.tensor();
  const std::int64_t of_token = t.dim(2) * t.dim(3);
  for (std::int64_t i = 0; i < v.size(); ++i)
    if (i / of_token % t.dim(1) == t.dim(1) - 1) v[i] = 0;
}

// Of [B, T, H, D]: the heads of each token change places, the first one going to the end.
void turn_heads(Values<float>& v) {
  const std::int64_t depth = v.tensor().dim(3), of_token = v.tensor().dim(2) * depth;
  for (std::int64_t i = 0; i < v.size(); i += of_token)
    std::rotate(v.begin() + i, v.begin() + i + depth, v.begin() + i + of_token);
}

// Of [B, T, H, D]: what belongs to the last head of each group of so many.
void clear_last_heads(Values<float>& v, std::int64_t group) {
  const Tensor& t = v.tensor();
  for (std::int64_t i = 0; i < v.size(); ++i)
    if (i / t.dim(3) % t.dim(2) % group == group - 1) v[i] = 0;
}

bool is_grouped(const Tensor& q, const Tensor& k) { return k.dim(2) < q.dim(2); }

}  // namespace

void MutantBackend::execute(const op::SoftmaxForward& op) {
  op::SoftmaxForward changed = op;
  if (op.causal && broken("softmax_forward.mask_ignored")) {
    changed.causal = false;
    return real().run(changed);
  }
  if (op.causal && broken("softmax_forward.mask_off_by_one")) {
    const Values<float> in = floats(op.x);  // y may be x
    real().run(op);
    return edit(op.y, [&](auto& v) { softmax_rows(in, v, op.scale, op.x.dim(-2), op.x.dim(-1) - op.x.dim(-2) + 1); });
  }
  if (broken("softmax_forward.scale_1_percent")) changed.scale *= too_large;
  real().run(changed);
}

void MutantBackend::execute(const op::SoftmaxBackward& op) {
  if (!broken("softmax_backward.sum_missing")) return real().run(op);
  const Values<float> probabilities = floats(op.y), gradient = floats(op.dy);
  real().run(op);
  edit(op.dx, [&](auto& v) {
    for (std::int64_t i = 0; i < v.size(); ++i) v[i] = op.scale * probabilities[i] * gradient[i];
  });
}

void MutantBackend::execute(const op::AttentionForward& op) {
  with_broken_dropout(op.shape.dropout, [&](const Dropout& dropout) {
    op::AttentionForward changed = op;
    AttentionShape& s = changed.shape;
    s.dropout = dropout;
    const auto call = [&] { real().run(changed); };
    if (!attends_backward_ && is_written_again(op.out) && broken("attention_forward.once")) return;
    if (s.causal && asks_otherwise("attention_forward.mask_ignored")) s.causal = false;
    if (s.window > 0 && asks_otherwise("attention_forward.window_off_by_one")) ++s.window;
    if (s.documents.starts && asks_otherwise("attention_forward.documents_ignored")) s.documents = {};
    if (op.sinks && asks_otherwise("attention_forward.sinks_ignored")) changed.sinks = Tensor();
    if (s.soft_cap > 0 && asks_otherwise("attention_forward.cap_ignored")) s.soft_cap = 0;
    if (asks_otherwise("attention_forward.scale_1_percent")) s.scale *= too_large;
    if (broken("attention_forward.last_key_missing")) return with_other<float>(op.v, clear_last_token, call);
    if (is_grouped(op.q, op.k) && op.k.dim(2) > 1 && broken("attention_forward.other_key_head"))
      return with_other<float>(op.v, turn_heads, call);
    call();
    const std::int64_t queries = op.q.dim(1), before_last = queries - 1;
    const bool on_host = std::string_view(kind()) == "cpu";
    if (on_host && s.causal && dropout.probability == 0 && queries > 1 && broken("attention_forward.mask_off_by_one")) {
      // All queries but the last, of all keys, are each one further on. Their sums lie apart, on the host: a CPU alone.
      std::vector<float> sums(static_cast<std::size_t>(op.q.dim(0) * op.q.dim(2) * before_last));
      const Tensor some(sums.data(), DType::f32, {op.q.dim(0), op.q.dim(2), before_last});
      real().run(op::AttentionForward{.q = op.q.slice(1, 0, before_last),
                                      .k = op.k,
                                      .v = op.v,
                                      .out = op.out.slice(1, 0, before_last),
                                      .lse = some,
                                      .shape = s});
      edit(op.lse.slice(2, 0, before_last), [&](auto& values) { std::copy(sums.begin(), sums.end(), values.begin()); });
    }
    if (op.out.dtype == DType::f32 && broken("attention_forward.bf16_result")) edit(op.out, round_all<to_bf16>);
    if (op.lse && broken("attention_forward.log_sum_off"))
      edit(op.lse, [](auto& values) {
        for (float& value : values) value += log_sum_error;
      });
  });
}

void MutantBackend::execute(const op::AttentionBackward& op) {
  attends_backward_ = true;
  with_broken_dropout(op.shape.dropout, [&](const Dropout& dropout) {
    op::AttentionBackward changed = op;
    AttentionShape& s = changed.shape;
    s.dropout = dropout;
    if (s.dropout.probability > 0 && broken("dropout.backward_with_other_mask")) ++s.dropout.seed;
    const auto call = [&] { real().run(changed); };
    if (s.window > 0 && asks_otherwise("attention_backward.window_off_by_one")) ++s.window;
    if (s.documents.starts && asks_otherwise("attention_backward.documents_ignored")) s.documents = {};
    if (asks_otherwise("attention_backward.scale_1_percent")) s.scale *= too_large;
    if (broken("attention_backward.last_query_missing")) return with_other<float>(op.dout, clear_last_token, call);
    if (broken("attention_backward.sum_missing"))
      return with_other<float>(
          op.out, [](auto& values) { std::fill(values.begin(), values.end(), 0.0F); }, call);
    call();
    if (op.dsinks && broken("attention_backward.dsinks_0"))
      edit(op.dsinks, [](auto& values) { std::fill(values.begin(), values.end(), 0.0F); });
    if (is_grouped(op.q, op.k) && broken("attention_backward.last_head_missing"))
      return keeping(op.dq, [&] {
        with_other<float>(
            op.dout, [&](auto& v) { clear_last_heads(v, op.q.dim(2) / op.k.dim(2)); }, call);
      });
    if (broken("attention_backward.swapped")) {
      const Values<float> of_keys = floats(op.dk), of_values = floats(op.dv);
      edit(op.dk, [&](auto& values) {
        std::copy_n(&of_values[0], std::min(values.size(), of_values.size()), values.begin());
      });
      edit(op.dv,
           [&](auto& values) { std::copy_n(&of_keys[0], std::min(values.size(), of_keys.size()), values.begin()); });
    }
  });
}

void MutantBackend::execute(const op::LatentKeysForward& op) {
  const auto call = [&] { real().run(op); };
  const std::int64_t heads = op.k.dim(2), own = op.nope.dim(3);
  if (broken("latent_keys_forward.last_head_unwritten")) return keeping(op.k.slice(2, heads - 1, 1), call);
  call();
  if (broken("latent_keys_forward.not_turned"))
    for (std::int64_t h = 0; h < heads; ++h)
      real().run(op::Copy{.to = op.k.slice(2, h, 1).slice(3, own, op.shared.dim(2)),
                          .from = op.shared.view({op.k.dim(0), op.k.dim(1), 1, op.shared.dim(2)})});
}

void MutantBackend::execute(const op::LatentKeysBackward& op) {
  const std::int64_t heads = op.dk.dim(2), own = op.dnope.dim(3);
  if (heads > 1 && broken("latent_keys_backward.first_head_alone"))
    return with_other<float>(
        op.dk.slice(2, 1, heads - 1).slice(3, own, op.dshared.dim(2)),
        [](auto& values) { std::fill(values.begin(), values.end(), 0.0F); }, [&] { real().run(op); });
  real().run(op);
  if (broken("latent_keys_backward.nope_last_head_0"))
    edit(op.dnope.slice(2, heads - 1, 1), [](auto& values) { std::fill(values.begin(), values.end(), 0.0F); });
}

// ---- the loss ------------------------------------------------------------------------------------------------------

template <class G>
void MutantBackend::with_broken_labels(const Tensor& labels, std::int64_t words, G&& call) const {
  if (!executes()) return call();
  const Values<std::int64_t> own = integers(labels);
  const bool ignored = std::any_of(&own[0], &own[0] + own.size(), [](std::int64_t label) { return label < 0; });
  if (ignored && broken("cross_entropy.negative_labels_counted"))
    return with_other<std::int64_t>(
        labels,
        [](auto& v) {
          for (std::int64_t& label : v) label = std::max<std::int64_t>(label, 0);
        },
        call);
  if (own[own.size() - 1] >= 0 && broken("cross_entropy.last_label_off_by_one"))
    return with_other<std::int64_t>(
        labels, [&](auto& v) { v[v.size() - 1] = (v[v.size() - 1] + 1) % words; }, call);
  call();
}

namespace {

using compute::ClassColumns;

std::int64_t classes_of(const Tensor& logits, const ClassColumns& columns) {
  return columns.all > 0 ? columns.all : logits.dim(-1);
}
// Whether other ranks have columns of these rows.
bool is_part(const Tensor& logits, const ClassColumns& columns) {
  return logits.dim(-1) * columns.each < classes_of(logits, columns);
}
bool is_elsewhere(std::int64_t label, const Tensor& logits, const ClassColumns& columns) {
  return label >= 0 && (label < columns.first || label >= columns.first + logits.dim(-1) * columns.each);
}

}  // namespace

void MutantBackend::break_last_loss(const Tensor& losses) const {
  if (broken("cross_entropy.last_loss_0")) edit(losses, [](auto& v) { v[v.size() - 1] = 0; });
}

void MutantBackend::break_last_gradient(const Tensor& dlogits) const {
  if (broken("cross_entropy.last_gradient_0"))
    edit(last_row(dlogits), [](auto& v) { std::fill(v.begin(), v.end(), 0.0F); });
}

void MutantBackend::execute(const op::CrossEntropyForward& op) {
  op::CrossEntropyForward changed = op;
  if (op.soft_cap > 0 && broken("cross_entropy_forward.cap_ignored")) changed.soft_cap = 0;
  if (op.classes.first > 0 && broken("cross_entropy.first_class_ignored")) changed.classes.first = 0;
  if (op.classes.each > 1 && broken("cross_entropy.wide_columns_ignored")) changed.classes.each = 1;
  with_broken_labels(op.labels, classes_of(op.logits, op.classes), [&] { real().run(changed); });
  if (op.classes.each > 1 && broken("cross_entropy.first_part_alone"))
    edit(op.lse, [&, parts = floats(op.logits)](auto& v) {
      for (std::int64_t r = 0; r < v.size(); ++r) v[r] = parts[r * op.logits.dim(-1)];
    });
  if (is_part(op.logits, op.classes) && broken("cross_entropy.loss_of_other_parts_counted"))
    edit(op.losses, [&, sums = floats(op.lse), labels = integers(op.labels)](auto& v) {
      for (std::int64_t r = 0; r < v.size(); ++r)
        if (is_elsewhere(labels[r], op.logits, op.classes)) v[r] = sums[r];
    });
  break_last_loss(op.losses);
}

void MutantBackend::execute(const op::CrossEntropyBackward& op) {
  op::CrossEntropyBackward changed = op;
  if (op.soft_cap > 0 && broken("cross_entropy_backward.cap_ignored")) changed.soft_cap = 0;
  if (broken("cross_entropy.gradient_1_percent")) changed.scale *= too_large;
  if (op.classes.first > 0 && broken("cross_entropy.first_class_ignored")) changed.classes.first = 0;
  with_broken_labels(op.labels, classes_of(op.logits, op.classes), [&] { real().run(changed); });
  if (is_part(op.logits, op.classes) && broken("cross_entropy.gradient_of_other_parts_0"))
    edit(op.dlogits, [&, labels = integers(op.labels)](auto& v) {
      for (std::int64_t i = 0; i < v.size(); ++i)
        if (is_elsewhere(labels[i / op.logits.dim(-1)], op.logits, op.classes)) v[i] = 0;
    });
  break_last_gradient(op.dlogits);
}

void MutantBackend::execute(const op::CrossEntropyInPlace& op) {
  op::CrossEntropyInPlace changed = op;
  if (op.soft_cap > 0 && broken("cross_entropy_in_place.cap_ignored")) changed.soft_cap = 0;
  if (op.soft_cap > 0 && broken("cross_entropy_in_place.cap_twice")) changed.soft_cap *= 2;
  if (broken("cross_entropy.gradient_1_percent")) changed.scale *= too_large;
  with_broken_labels(op.labels, op.logits.dim(-1), [&] { real().run(changed); });
  break_last_loss(op.losses);
  break_last_gradient(op.logits);
}

}  // namespace assay::mutants
