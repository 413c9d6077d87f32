// The decoder's forward and backward passes.
#include <cmath>

#include "assay/train/decoder.hpp"

namespace assay::train {

using compute::Activation;
using compute::Backend;
using compute::Tensor;

namespace {

constexpr float rms_norm_eps = 1e-5F;
constexpr double rotary_theta = 10'000.0;

// y = x w^T
void project(Backend& b, const Tensor& x, const Tensor& w, const Tensor& y) {
  b.matmul(x, w, y, {.transpose_b = true});
}

}  // namespace

void DecoderModel::initialize(Backend& b) const { b.rotary_table(plan_[cos_], plan_[sin_], rotary_theta); }

Tensor DecoderModel::split_heads(const Tensor& x) const {
  return x.view({config_.batch_size, config_.context_length, config_.heads, config_.head_dim()});
}

Tensor DecoderModel::heads_of(const Tensor& packed, int which) const {
  return packed.view({config_.batch_size, config_.context_length, 3 * config_.heads, config_.head_dim()})
      .slice(2, which * config_.heads, config_.heads);
}

// Queries and keys lie side by side: fused, they are one tensor of twice the heads.
void DecoderModel::rotate(Backend& b, const Tensor& packed, bool inverse) const {
  const Tensor all = packed.view({config_.batch_size, config_.context_length, 3 * config_.heads, config_.head_dim()});
  if (config_.fused) return b.rotary(all.slice(2, 0, 2 * config_.heads), plan_[cos_], plan_[sin_], inverse);
  for (int i = 0; i < 2; ++i) b.rotary(heads_of(packed, i), plan_[cos_], plan_[sin_], inverse);
}

DecoderModel::GateUp DecoderModel::gate_up(const Forward& f) const {
  const Tensor& packed = plan_[f.gate_up];
  const std::int64_t ff = config_.d_ff;
  if (config_.fused) return {packed, packed.slice(1, 0, ff), packed.slice(1, ff, ff)};
  const Tensor halves = packed.view({2 * config_.rows(), ff});
  return {packed, halves.slice(0, 0, config_.rows()), halves.slice(0, config_.rows(), config_.rows())};
}

void DecoderModel::weight_gradient(Backend& b, const Tensor& dy, const Tensor& x, ParameterSet::Id first,
                                   std::size_t count) const {
  if (lanes()) b.begin_side();
  b.matmul(dy, x, set_.gradient(first, count), {.transpose_a = true});
  if (lanes()) b.end_side();
}

void DecoderModel::forward(Backend& b, const Tensor& ids, const Tensor* labels, std::int64_t valid_rows) const {
  const Tensor& x = config_.layers > 0 ? plan_[forward_[0].input] : plan_[final_input_];
  b.embedding_forward(ids, set_.compute(ids_.embeddings), x);
  for (std::size_t l = 0; l < forward_.size(); ++l) {
    const Forward& f = forward_[l];
    // The fused path has normed1 from the end of the layer before.
    if (l == 0 || !config_.fused)
      b.rms_norm_forward(plan_[f.input], set_.value(ids_.layers[l].ln1), plan_[f.normed1], plan_[f.rstd1],
                         rms_norm_eps);
    layer_body(b, ids_.layers[l], f);
    layer_end(b, static_cast<std::int64_t>(l), f);
  }
  if (config_.layers == 0 || !config_.fused)
    b.rms_norm_forward(plan_[final_input_], set_.value(ids_.ln_final), plan_[final_normed_], plan_[final_rstd_],
                       rms_norm_eps);
  const Tensor& logits = plan_[logits_];
  project(b, plan_[final_normed_], set_.compute(ids_.lm_head), logits);
  if (config_.keep_logits) b.copy(plan_[kept_logits_], logits);
  if (!labels) return;
  const float scale = 1.0F / static_cast<float>(valid_rows);
  if (config_.fused && config_.backward)
    b.cross_entropy_in_place(logits, *labels, plan_[losses_], scale, loss_scale_);
  else
    b.cross_entropy_forward(logits, *labels, plan_[losses_], plan_[lse_]);
  b.sum(plan_[losses_], plan_[loss_], scale);
}

void DecoderModel::layer_body(Backend& b, const DecoderLayerParameters& p, const Forward& f) const {
  const Tensor& qkv = plan_[f.qkv];
  if (config_.fused) {
    project(b, plan_[f.normed1], set_.compute(p.q, 3), qkv);
  } else {
    for (int i = 0; i < 3; ++i)
      project(b, plan_[f.normed1], set_.compute(p.q + static_cast<std::size_t>(i)),
              qkv.slice(1, i * config_.d_model, config_.d_model));
  }
  rotate(b, qkv, false);
  attention_forward(b, f);
  project(b, plan_[f.attention], set_.compute(p.output), plan_[f.branch1]);
  if (config_.fused) {
    b.add_rms_norm_forward(plan_[f.branch1], plan_[f.input], plan_[f.middle], set_.value(p.ln2), plan_[f.normed2],
                           plan_[f.rstd2], rms_norm_eps);
    project(b, plan_[f.normed2], set_.compute(p.w1, 2), plan_[f.gate_up]);
  } else {
    b.add(plan_[f.branch1], plan_[f.input], plan_[f.middle]);
    b.rms_norm_forward(plan_[f.middle], set_.value(p.ln2), plan_[f.normed2], plan_[f.rstd2], rms_norm_eps);
    project(b, plan_[f.normed2], set_.compute(p.w1), gate_up(f).gate);
    project(b, plan_[f.normed2], set_.compute(p.w3), gate_up(f).up);
  }
}

void DecoderModel::layer_end(Backend& b, std::int64_t layer, const Forward& f) const {
  const auto l = static_cast<std::size_t>(layer);
  const GateUp gu = gate_up(f);
  if (config_.fused) {
    b.swiglu_forward(gu.gate, gu.up, plan_[f.hidden]);
  } else {
    b.activation_forward(Activation::silu, gu.gate, plan_[f.silu]);
    b.multiply(plan_[f.silu], gu.up, plan_[f.hidden]);
  }
  project(b, plan_[f.hidden], set_.compute(ids_.layers[l].w2), plan_[f.branch2]);
  const bool last = l + 1 == forward_.size();
  const Tensor& next = plan_[last ? final_input_ : forward_[l + 1].input];
  if (!config_.fused) return b.add(plan_[f.branch2], plan_[f.middle], next);
  b.add_rms_norm_forward(plan_[f.branch2], plan_[f.middle], next,
                         set_.value(last ? ids_.ln_final : ids_.layers[l + 1].ln1),
                         plan_[last ? final_normed_ : forward_[l + 1].normed1],
                         plan_[last ? final_rstd_ : forward_[l + 1].rstd1], rms_norm_eps);
}

void DecoderModel::attention_forward(Backend& b, const Forward& f) const {
  const Tensor& qkv = plan_[f.qkv];
  const Tensor q = heads_of(qkv, 0);
  const Tensor k = heads_of(qkv, 1);
  const Tensor v = heads_of(qkv, 2);
  const Tensor out = split_heads(plan_[f.attention]);
  const float scale = 1.0F / std::sqrt(static_cast<float>(config_.head_dim()));
  if (config_.flash) return b.attention_forward(q, k, v, out, plan_[f.lse], {scale, true});
  if (makes_scores_in_parts()) return naive_attention().forward(b, q, k, v, out, plan_[f.scores], scale);
  const Tensor& scores = plan_[f.scores];
  b.matmul(q.transposed(1, 2), k.transposed(1, 2), scores, {.transpose_b = true});
  b.softmax_forward(scores, scores, scale, true);
  b.matmul(scores, v.transposed(1, 2), out.transposed(1, 2));
}

// With lanes the listener hears of what a join has brought to the main lane: then of all that is enqueued before it,
// but the gradients of query, key and value, whose product begins after its layer's join.
void DecoderModel::backward(Backend& b, const Tensor& ids, const Tensor& labels, std::int64_t valid_rows,
                            GradientListener* listener) const {
  head_backward(b, labels, valid_rows, listener);
  for (std::int64_t l = config_.layers - 1; l >= 0; --l) layer_backward(b, l, listener);
  b.embedding_backward(ids, plan_[dx_], set_.gradient(ids_.embeddings), false);
  if (lanes()) b.join_side();
  if (listener) listener->gradients_ready(set_.all().size());
}

void DecoderModel::tell(GradientListener* listener, ParameterSet::Id end) const {
  if (listener && !lanes()) listener->gradients_ready(end);
}

void DecoderModel::head_backward(Backend& b, const Tensor& labels, std::int64_t valid_rows,
                                 GradientListener* listener) const {
  const Tensor& dlogits = plan_[logits_];
  if (!config_.fused)
    b.cross_entropy_backward(dlogits, labels, plan_[lse_], 1.0F / static_cast<float>(valid_rows), loss_scale_, dlogits);
  weight_gradient(b, dlogits, plan_[final_normed_], ids_.lm_head);
  tell(listener, ids_.lm_head + 1);
  b.matmul(dlogits, set_.compute(ids_.lm_head), plan_[dfinal_]);
  b.rms_norm_backward(plan_[dfinal_], plan_[final_input_], set_.value(ids_.ln_final), plan_[final_rstd_], {},
                      plan_[dx_], set_.gradient(ids_.ln_final), false, {});
  tell(listener, ids_.ln_final + 1);
}

void DecoderModel::layer_backward(Backend& b, std::int64_t layer, GradientListener* listener) const {
  const auto l = static_cast<std::size_t>(layer);
  const DecoderLayerParameters& p = ids_.layers[l];
  const Forward& f = recomputed_[l];
  const Backward& g = backward_[l];
  if (config_.checkpointing) {
    b.rms_norm_forward(plan_[f.input], set_.value(p.ln1), plan_[f.normed1], plan_[f.rstd1], rms_norm_eps);
    layer_body(b, p, f);
  }
  feed_forward_backward(b, p, f, g, listener);

  const Tensor& dx = plan_[dx_middle_];
  weight_gradient(b, dx, plan_[f.attention], p.output);
  tell(listener, p.output + 1);
  b.matmul(dx, set_.compute(p.output), plan_[g.dattention]);
  attention_backward(b, f, g);
  const Tensor& dqkv = plan_[g.dqkv];
  rotate(b, dqkv, true);
  if (config_.fused) {
    b.matmul(dqkv, set_.compute(p.q, 3), plan_[g.dnormed1]);
    if (lanes()) {
      b.join_side();
      if (listener) listener->gradients_ready(p.q);
    }
    norm_backward(b, p.ln1, plan_[g.dnormed1], plan_[f.input], plan_[f.rstd1], dx, plan_[dx_], plan_[g.normed1]);
    weight_gradient(b, dqkv, plan_[g.normed1], p.q, 3);
    return tell(listener, p.ln1 + 1);
  }
  b.rms_norm_forward(plan_[f.input], set_.value(p.ln1), plan_[g.normed1], plan_[f.rstd1], rms_norm_eps);
  for (int i = 0; i < 3; ++i) {
    const Tensor part = dqkv.slice(1, i * config_.d_model, config_.d_model);
    const ParameterSet::Id id = p.q + static_cast<std::size_t>(i);
    weight_gradient(b, part, plan_[g.normed1], id);
    b.matmul(part, set_.compute(id), plan_[g.dnormed1], {.accumulate = i > 0});
  }
  tell(listener, p.v + 1);
  norm_backward(b, p.ln1, plan_[g.dnormed1], plan_[f.input], plan_[f.rstd1], dx, plan_[dx_], {});
  tell(listener, p.ln1 + 1);
}

// The norm's output is made again rather than kept: that much memory per layer against one more write.
void DecoderModel::norm_backward(Backend& b, ParameterSet::Id weight, const Tensor& dy, const Tensor& x,
                                 const Tensor& rstd, const Tensor& residual, const Tensor& dx, const Tensor& y) const {
  b.rms_norm_backward(dy, x, set_.value(weight), rstd, residual, dx, set_.gradient(weight), false, y);
}

void DecoderModel::feed_forward_backward(Backend& b, const DecoderLayerParameters& p, const Forward& f,
                                         const Backward& g, GradientListener* listener) const {
  const Tensor& dx = plan_[dx_];
  const GateUp gu = gate_up(f);
  b.matmul(dx, set_.compute(p.w2), plan_[g.dhidden]);
  const Tensor& dmiddle = plan_[dx_middle_];
  if (config_.fused) {
    b.swiglu_backward(gu.gate, gu.up, plan_[g.dhidden], gu.gate, gu.up, plan_[g.hidden]);
    weight_gradient(b, dx, plan_[g.hidden], p.w2);
    tell(listener, p.w2 + 1);
    b.matmul(gu.packed, set_.compute(p.w1, 2), plan_[g.dnormed2]);
    norm_backward(b, p.ln2, plan_[g.dnormed2], plan_[f.middle], plan_[f.rstd2], dx, dmiddle, plan_[g.normed2]);
    weight_gradient(b, gu.packed, plan_[g.normed2], p.w1, 2);
    return tell(listener, p.ln2 + 1);
  }
  b.activation_forward(Activation::silu, gu.gate, plan_[g.silu]);
  b.multiply(plan_[g.silu], gu.up, plan_[g.hidden]);
  weight_gradient(b, dx, plan_[g.hidden], p.w2);
  tell(listener, p.w2 + 1);
  b.multiply(plan_[g.dhidden], gu.up, plan_[g.dsilu]);
  b.multiply(plan_[g.dhidden], plan_[g.silu], gu.up);                                // now the gradient of up
  b.activation_backward(Activation::silu, gu.gate, plan_[g.dsilu], plan_[g.dsilu]);  // now the gradient of gate
  b.rms_norm_forward(plan_[f.middle], set_.value(p.ln2), plan_[g.normed2], plan_[f.rstd2], rms_norm_eps);
  weight_gradient(b, plan_[g.dsilu], plan_[g.normed2], p.w1);
  weight_gradient(b, gu.up, plan_[g.normed2], p.w3);
  tell(listener, p.w3 + 1);
  b.matmul(plan_[g.dsilu], set_.compute(p.w1), plan_[g.dnormed2]);
  b.matmul(gu.up, set_.compute(p.w3), plan_[g.dnormed2], {.accumulate = true});
  norm_backward(b, p.ln2, plan_[g.dnormed2], plan_[f.middle], plan_[f.rstd2], dx, dmiddle, {});
  tell(listener, p.ln2 + 1);
}

void DecoderModel::attention_backward(Backend& b, const Forward& f, const Backward& g) const {
  const Tensor& qkv = plan_[f.qkv];
  const Tensor& dqkv = plan_[g.dqkv];
  const Tensor q = heads_of(qkv, 0);
  const Tensor k = heads_of(qkv, 1);
  const Tensor v = heads_of(qkv, 2);
  const Tensor dq = heads_of(dqkv, 0);
  const Tensor dk = heads_of(dqkv, 1);
  const Tensor dv = heads_of(dqkv, 2);
  const Tensor dout = split_heads(plan_[g.dattention]);
  const float scale = 1.0F / std::sqrt(static_cast<float>(config_.head_dim()));
  if (config_.flash)
    return b.attention_backward(q, k, v, split_heads(plan_[f.attention]), plan_[f.lse], dout, dq, dk, dv,
                                {scale, true});
  if (makes_scores_in_parts())
    return naive_attention().backward(b, q, k, v, dout, dq, dk, dv, plan_[g.scores], plan_[g.dscores], scale);
  const Tensor& probabilities = plan_[f.scores];
  const Tensor& dscores = plan_[g.dscores];
  const Tensor dout_by_head = dout.transposed(1, 2);
  b.matmul(dout_by_head, v.transposed(1, 2), dscores, {.transpose_b = true});
  b.matmul(probabilities, dout_by_head, dv.transposed(1, 2), {.transpose_a = true});
  b.softmax_backward(probabilities, dscores, dscores, scale);
  b.matmul(dscores, k.transposed(1, 2), dq.transposed(1, 2));
  b.matmul(dscores, q.transposed(1, 2), dk.transposed(1, 2), {.transpose_a = true});
}

}  // namespace assay::train
