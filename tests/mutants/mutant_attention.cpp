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

}  // namespace

void MutantBackend::softmax_forward(const Tensor& x, const Tensor& y, float scale, bool causal) {
  if (causal && broken("softmax_forward.mask_ignored")) return real().softmax_forward(x, y, scale, false);
  if (causal && broken("softmax_forward.mask_off_by_one")) {
    const Values<float> in = floats(x);  // y may be x
    real().softmax_forward(x, y, scale, causal);
    return edit(y, [&](auto& v) { softmax_rows(in, v, scale, x.dim(-2), x.dim(-1) - x.dim(-2) + 1); });
  }
  real().softmax_forward(x, y, broken("softmax_forward.scale_1_percent") ? scale * too_large : scale, causal);
}

void MutantBackend::softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx, float scale) {
  if (!broken("softmax_backward.sum_missing")) return real().softmax_backward(y, dy, dx, scale);
  const Values<float> probabilities = floats(y), gradient = floats(dy);
  real().softmax_backward(y, dy, dx, scale);
  edit(dx, [&](auto& v) {
    for (std::int64_t i = 0; i < v.size(); ++i) v[i] = scale * probabilities[i] * gradient[i];
  });
}

void MutantBackend::attention_forward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                                      const Tensor& lse, const AttentionShape& shape) {
  with_broken_dropout(shape.dropout, [&](const Dropout& dropout) {
    AttentionShape s = shape;
    s.dropout = dropout;
    const auto call = [&] { real().attention_forward(q, k, v, out, lse, s); };
    if (s.causal && broken("attention_forward.mask_ignored")) s.causal = false;
    if (broken("attention_forward.scale_1_percent")) s.scale *= too_large;
    if (broken("attention_forward.last_key_missing")) return with_other<float>(v, clear_last_token, call);
    call();
    const std::int64_t queries = q.dim(1), before_last = queries - 1;
    const bool on_host = std::string_view(kind()) == "cpu";
    if (on_host && s.causal && dropout.probability == 0 && queries > 1 && broken("attention_forward.mask_off_by_one")) {
      // All queries but the last, of all keys, are each one further on. Their sums lie apart, on the host: a CPU alone.
      std::vector<float> sums(static_cast<std::size_t>(q.dim(0) * q.dim(2) * before_last));
      const Tensor some(sums.data(), DType::f32, {q.dim(0), q.dim(2), before_last});
      real().attention_forward(q.slice(1, 0, before_last), k, v, out.slice(1, 0, before_last), some, s);
      edit(lse.slice(2, 0, before_last), [&](auto& values) { std::copy(sums.begin(), sums.end(), values.begin()); });
    }
    if (out.dtype == DType::f32 && broken("attention_forward.bf16_result")) edit(out, round_all<to_bf16>);
    if (lse && broken("attention_forward.log_sum_off"))
      edit(lse, [](auto& values) {
        for (float& value : values) value += log_sum_error;
      });
  });
}

void MutantBackend::attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                                       const Tensor& lse, const Tensor& dout, const Tensor& dq, const Tensor& dk,
                                       const Tensor& dv, const AttentionShape& shape) {
  with_broken_dropout(shape.dropout, [&](const Dropout& dropout) {
    AttentionShape s = shape;
    s.dropout = dropout;
    if (s.dropout.probability > 0 && broken("dropout.backward_with_other_mask")) ++s.dropout.seed;
    const auto call = [&] { real().attention_backward(q, k, v, out, lse, dout, dq, dk, dv, s); };
    if (broken("attention_backward.scale_1_percent")) s.scale *= too_large;
    if (broken("attention_backward.last_query_missing")) return with_other<float>(dout, clear_last_token, call);
    if (broken("attention_backward.sum_missing"))
      return with_other<float>(
          out, [](auto& values) { std::fill(values.begin(), values.end(), 0.0F); }, call);
    call();
    if (broken("attention_backward.swapped")) {
      const Values<float> of_keys = floats(dk), of_values = floats(dv);
      edit(dk, [&](auto& values) { std::copy_n(&of_values[0], values.size(), values.begin()); });
      edit(dv, [&](auto& values) { std::copy_n(&of_keys[0], values.size(), values.begin()); });
    }
  });
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

void MutantBackend::break_last_loss(const Tensor& losses) const {
  if (broken("cross_entropy.last_loss_0")) edit(losses, [](auto& v) { v[v.size() - 1] = 0; });
}

void MutantBackend::break_last_gradient(const Tensor& dlogits) const {
  if (broken("cross_entropy.last_gradient_0"))
    edit(last_row(dlogits), [](auto& v) { std::fill(v.begin(), v.end(), 0.0F); });
}

void MutantBackend::cross_entropy_forward(const Tensor& logits, const Tensor& labels, const Tensor& losses,
                                          const Tensor& lse) {
  with_broken_labels(labels, logits.dim(-1), [&] { real().cross_entropy_forward(logits, labels, losses, lse); });
  break_last_loss(losses);
}

void MutantBackend::cross_entropy_backward(const Tensor& logits, const Tensor& labels, const Tensor& lse, float scale,
                                           const Tensor& loss_scale, const Tensor& dlogits) {
  const float used = broken("cross_entropy.gradient_1_percent") ? scale * too_large : scale;
  with_broken_labels(labels, logits.dim(-1),
                     [&] { real().cross_entropy_backward(logits, labels, lse, used, loss_scale, dlogits); });
  break_last_gradient(dlogits);
}

void MutantBackend::cross_entropy_in_place(const Tensor& logits, const Tensor& labels, const Tensor& losses,
                                           float scale, const Tensor& loss_scale) {
  const float used = broken("cross_entropy.gradient_1_percent") ? scale * too_large : scale;
  with_broken_labels(labels, logits.dim(-1),
                     [&] { real().cross_entropy_in_place(logits, labels, losses, used, loss_scale); });
  break_last_loss(losses);
  break_last_gradient(logits);
}

}  // namespace assay::mutants
