// The encoder-decoder's blocks: attention and feed-forward, each with the end that both share.
#include <cmath>

#include "assay/train/encoder_decoder.hpp"

namespace assay::train {

using compute::Activation;
using compute::Backend;
using compute::Tensor;

namespace {

constexpr float layer_norm_eps = 1e-5F;

// dw = dy^T x
void weight_gradient(Backend& b, const Tensor& dy, const Tensor& x, const Tensor& dw) {
  b.matmul(dy, x, dw, {.transpose_a = true});
}

}  // namespace

void EncoderDecoderModel::linear(Backend& b, const Tensor& x, const Tensor& weight, const Tensor& bias, Id raw,
                                 const Tensor& y) const {
  if (config_.fused) return b.matmul(x, weight, y, {.transpose_b = true, .bias = bias});
  b.matmul(x, weight, plan_[raw], {.transpose_b = true});
  b.bias_add(plan_[raw], bias, y);
}

// ---- the end of a block --------------------------------------------------------------------------------------------

void EncoderDecoderModel::forward_end(Backend& b, const BlockParameters& p, const BlockEnd& end,
                                      const Tensor& residual) const {
  const Tensor &sum = plan_[end.sum], &y = plan_[end.y], &mean = plan_[end.mean], &rstd = plan_[end.rstd];
  const Tensor weight = set_.value(p.norm_weight), norm_bias = set_.value(p.norm_bias), bias = set_.value(p.out_bias);
  if (config_.fused)
    return b.dropout_add_layer_norm_forward(plan_[end.branch], bias, residual, dropout(end.stream), sum, weight,
                                            norm_bias, y, mean, rstd, layer_norm_eps);
  b.bias_add(plan_[end.branch], bias, plan_[end.biased]);
  drop(b, plan_[end.biased], plan_[end.dropped], end.stream);
  b.add(plan_[end.dropped], residual, sum);
  b.layer_norm_forward(sum, weight, norm_bias, y, mean, rstd, layer_norm_eps);
}

Tensor EncoderDecoderModel::backward_end(Backend& b, const BlockParameters& p, const BlockEnd& end, const Tensor& dx,
                                         GradientListener* listener) const {
  const Tensor &sum = plan_[end.sum], &mean = plan_[end.mean], &rstd = plan_[end.rstd];
  const Tensor weight = set_.value(p.norm_weight);
  const Tensor dweight = set_.gradient(p.norm_weight), dnorm_bias = set_.gradient(p.norm_bias);
  const Tensor dbias = set_.gradient(p.out_bias);
  const Tensor dbranch = drops() ? plan_[end.dbranch] : dx;
  if (config_.fused) {
    b.dropout_add_layer_norm_backward(dx, sum, weight, mean, rstd, dropout(end.stream), dx,
                                      drops() ? dbranch : Tensor(), dbias, dweight, dnorm_bias, false);
  } else {
    b.layer_norm_backward(dx, sum, weight, mean, rstd, {}, dx, dweight, dnorm_bias, false);
    drop(b, dx, dbranch, end.stream);
    b.bias_backward(dbranch, dbias, false);
  }
  tell(listener, p.out_bias + 1);
  return dbranch;
}

void EncoderDecoderModel::drop(Backend& b, const Tensor& x, const Tensor& y, std::uint64_t stream) const {
  if (drops()) b.dropout(x, y, config_.dropout, config_.dropout_seed, stream, dropout_step_);
}

// ---- norms ---------------------------------------------------------------------------------------------------------

void EncoderDecoderModel::forward_norm(Backend& b, const Norm& norm, const Tensor& x) const {
  b.layer_norm_forward(x, set_.value(norm.weight), set_.value(norm.weight + 1), plan_[norm.y], plan_[norm.mean],
                       plan_[norm.rstd], layer_norm_eps);
}

void EncoderDecoderModel::backward_norm(Backend& b, const Norm& norm, const Tensor& x, const Tensor& dx,
                                        GradientListener* listener) const {
  b.layer_norm_backward(dx, x, set_.value(norm.weight), plan_[norm.mean], plan_[norm.rstd], {}, dx,
                        set_.gradient(norm.weight), set_.gradient(norm.weight + 1), false);
  tell(listener, norm.weight + 2);
}

// ---- attention -----------------------------------------------------------------------------------------------------

Tensor EncoderDecoderModel::split(const Tensor& x, std::int64_t length) const {
  return x.view({config_.batch_size, length, x.dim(1) / config_.head_dim(), config_.head_dim()});
}

EncoderDecoderModel::Heads EncoderDecoderModel::heads(const Attention& block, Id q, Id kv) const {
  const std::int64_t h = config_.heads;
  const Tensor queries = split(plan_[q], block.queries);
  if (!block.cross) return {queries.slice(2, 0, h), queries.slice(2, h, h), queries.slice(2, 2 * h, h)};
  const Tensor keys = split(plan_[kv], block.keys);
  return {queries, keys.slice(2, 0, h), keys.slice(2, h, h)};
}

void EncoderDecoderModel::forward_attention(Backend& b, const Attention& block, const Tensor& x,
                                            const Tensor& memory) const {
  const std::int64_t d = config_.d_model;
  const Tensor weight = set_.compute(block.p.in_weight), bias = set_.compute(block.p.in_bias);
  if (block.cross) {
    linear(b, x, weight.slice(0, 0, d), bias.slice(0, 0, d), block.raw_q, plan_[block.q]);
    linear(b, memory, weight.slice(0, d, 2 * d), bias.slice(0, d, 2 * d), block.raw_kv, plan_[block.kv]);
  } else {
    linear(b, x, weight, bias, block.raw_q, plan_[block.q]);
  }
  forward_core(b, block);
  b.matmul(plan_[block.attention], set_.compute(block.p.out_weight), plan_[block.end.branch], {.transpose_b = true});
  forward_end(b, block.p, block.end, x);
}

void EncoderDecoderModel::forward_core(Backend& b, const Attention& block) const {
  const Heads in = heads(block, block.q, block.kv);
  const Tensor out = split(plan_[block.attention], block.queries);
  const float scale = 1.0F / std::sqrt(static_cast<float>(config_.head_dim()));
  if (config_.flash)
    return b.attention_forward(in.q, in.k, in.v, out, plan_[block.lse], {scale, block.causal, dropout(block.stream)});
  const Tensor& scores = plan_[block.scores];
  if (makes_scores_in_parts()) return naive_attention(block).forward(b, in.q, in.k, in.v, out, scores, scale);
  b.matmul(in.q.transposed(1, 2), in.k.transposed(1, 2), scores, {.transpose_b = true});
  b.softmax_forward(scores, scores, scale, block.causal);
  drop(b, scores, plan_[block.dropped_scores], block.stream);
  b.matmul(plan_[block.dropped_scores], in.v.transposed(1, 2), out.transposed(1, 2));
}

void EncoderDecoderModel::backward_attention(Backend& b, const Attention& block, const Tensor& x, const Tensor& dx,
                                             const Tensor& memory, const Tensor& dmemory, bool accumulate_dmemory,
                                             GradientListener* listener) const {
  const std::int64_t d = config_.d_model;
  const BlockParameters& p = block.p;
  const Tensor dbranch = backward_end(b, p, block.end, dx, listener);
  weight_gradient(b, dbranch, plan_[block.attention], set_.gradient(p.out_weight));
  tell(listener, p.out_weight + 1);
  b.matmul(dbranch, set_.compute(p.out_weight), plan_[block.dattention]);
  backward_core(b, block);

  // The gradient by `in` of in's rows [first, first + count) of the packed projection.
  const auto projection = [&](const Tensor& dy, const Tensor& in, std::int64_t first, const Tensor& din,
                              bool accumulate) {
    const std::int64_t count = dy.dim(1);
    weight_gradient(b, dy, in, set_.gradient(p.in_weight).slice(0, first, count));
    b.bias_backward(dy, set_.gradient(p.in_bias).slice(0, first, count), false);
    b.matmul(dy, set_.compute(p.in_weight).slice(0, first, count), din, {.accumulate = accumulate});
  };
  projection(plan_[block.dq], x, 0, dx, true);
  if (block.cross) projection(plan_[block.dkv], memory, d, dmemory, accumulate_dmemory);
  tell(listener, p.in_bias + 1);
}

void EncoderDecoderModel::backward_core(Backend& b, const Attention& block) const {
  const Heads in = heads(block, block.q, block.kv), grad = heads(block, block.dq, block.dkv);
  const Tensor dout = split(plan_[block.dattention], block.queries);
  const float scale = 1.0F / std::sqrt(static_cast<float>(config_.head_dim()));
  if (config_.flash)
    return b.attention_backward(in.q, in.k, in.v, split(plan_[block.attention], block.queries), plan_[block.lse], dout,
                                grad.q, grad.k, grad.v, {scale, block.causal, dropout(block.stream)});
  if (makes_scores_in_parts())
    return naive_attention(block).backward(b, in.q, in.k, in.v, dout, grad.q, grad.k, grad.v,
                                           plan_[block.backward_scores], plan_[block.dscores], scale);
  const Tensor& weights = plan_[block.scores];
  const Tensor &dweights = plan_[block.dscores], &dropped = plan_[block.ddropped_scores];
  const Tensor dout_by_head = dout.transposed(1, 2);
  // With dropout `dropped` is first the weights, as forward multiplied them with the values, then their gradient.
  drop(b, weights, dropped, block.stream);
  b.matmul(drops() ? dropped : weights, dout_by_head, grad.v.transposed(1, 2), {.transpose_a = true});
  b.matmul(dout_by_head, in.v.transposed(1, 2), dweights, {.transpose_b = true});
  drop(b, dweights, dropped, block.stream);
  b.softmax_backward(weights, dropped, dropped, scale);
  b.matmul(dropped, in.k.transposed(1, 2), grad.q.transposed(1, 2));
  b.matmul(dropped, in.q.transposed(1, 2), grad.k.transposed(1, 2), {.transpose_a = true});
}

// ---- feed-forward --------------------------------------------------------------------------------------------------

void EncoderDecoderModel::forward_feed_forward(Backend& b, const FeedForward& block, const Tensor& x) const {
  const BlockParameters& p = block.p;
  const Tensor bias = set_.value(p.in_bias);
  const Tensor &hidden = plan_[block.hidden], &activated = plan_[block.activated];
  if (config_.fused) {
    b.matmul(x, set_.compute(p.in_weight), hidden, {.transpose_b = true});
    b.bias_relu_dropout_forward(hidden, bias, hidden, dropout(block.stream));
  } else {
    b.matmul(x, set_.compute(p.in_weight), plan_[block.raw], {.transpose_b = true});
    b.bias_add(plan_[block.raw], bias, plan_[block.biased]);
    b.activation_forward(Activation::relu, plan_[block.biased], activated);
    drop(b, activated, hidden, block.stream);
  }
  b.matmul(hidden, set_.compute(p.out_weight), plan_[block.end.branch], {.transpose_b = true});
  forward_end(b, p, block.end, x);
}

void EncoderDecoderModel::backward_feed_forward(Backend& b, const FeedForward& block, const Tensor& x, const Tensor& dx,
                                                GradientListener* listener) const {
  const BlockParameters& p = block.p;
  const Tensor dbranch = backward_end(b, p, block.end, dx, listener);
  const Tensor &hidden = plan_[block.hidden], &dhidden = plan_[block.dhidden];
  weight_gradient(b, dbranch, hidden, set_.gradient(p.out_weight));
  tell(listener, p.out_weight + 1);
  b.matmul(dbranch, set_.compute(p.out_weight), dhidden);
  const Tensor& dactivated = plan_[block.dactivated];
  if (config_.fused) {
    b.relu_dropout_backward(hidden, dhidden, dactivated, config_.dropout);
  } else {
    drop(b, dhidden, dactivated, block.stream);
    b.activation_backward(Activation::relu, plan_[block.activated], dactivated, dactivated);
  }
  weight_gradient(b, dactivated, x, set_.gradient(p.in_weight));
  b.bias_backward(dactivated, set_.gradient(p.in_bias), false);
  tell(listener, p.in_bias + 1);
  b.matmul(dactivated, set_.compute(p.in_weight), dx, {.accumulate = true});
}

}  // namespace assay::train
