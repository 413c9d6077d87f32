// The encoder-decoder's blocks: attention and feed-forward, each with the end that both share.
#include <cmath>

#include "assay/models/encoder_decoder.hpp"

namespace assay::models {

namespace op = compute::op;

using compute::Activation;
using compute::Backend;
using compute::Tensor;

namespace {

constexpr float layer_norm_eps = 1e-5F;

// dw = dy^T x
void weight_gradient(Backend& b, const Tensor& dy, const Tensor& x, const Tensor& dw) {
  b.run(op::Matmul{.a = dy, .b = x, .c = dw, .transpose_a = true});
}

}  // namespace

void EncoderDecoderModel::linear(Backend& b, const Tensor& x, const Tensor& weight, const Tensor& bias, Id raw,
                                 const Tensor& y) const {
  if (config_.fused) return b.run(op::Matmul{.a = x, .b = weight, .c = y, .transpose_b = true, .bias = bias});
  b.run(op::Matmul{.a = x, .b = weight, .c = plan_[raw], .transpose_b = true});
  b.run(op::BiasAdd{.x = plan_[raw], .bias = bias, .y = y});
}

// ---- the end of a block --------------------------------------------------------------------------------------------

void EncoderDecoderModel::forward_end(Backend& b, const BlockParameters& p, const BlockEnd& end,
                                      const Tensor& residual) const {
  const Tensor &sum = plan_[end.sum], &y = plan_[end.y], &mean = plan_[end.mean], &rstd = plan_[end.rstd];
  const Tensor weight = set_.value(p.norm_weight), norm_bias = set_.value(p.norm_bias), bias = set_.value(p.out_bias);
  if (config_.fused)
    return b.run(op::DropoutAddLayerNormForward{.x = plan_[end.branch],
                                                .bias = bias,
                                                .residual = residual,
                                                .dropout = dropout(end.stream),
                                                .sum = sum,
                                                .weight = weight,
                                                .norm_bias = norm_bias,
                                                .y = y,
                                                .mean = mean,
                                                .rstd = rstd,
                                                .eps = layer_norm_eps});
  b.run(op::BiasAdd{.x = plan_[end.branch], .bias = bias, .y = plan_[end.biased]});
  drop(b, plan_[end.biased], plan_[end.dropped], end.stream);
  b.run(op::Add{.a = plan_[end.dropped], .b = residual, .out = sum});
  b.run(op::LayerNormForward{
      .x = sum, .weight = weight, .bias = norm_bias, .y = y, .mean = mean, .rstd = rstd, .eps = layer_norm_eps});
}

Tensor EncoderDecoderModel::backward_end(Backend& b, const BlockParameters& p, const BlockEnd& end, const Tensor& dx,
                                         train::GradientListener* listener) const {
  const Tensor &sum = plan_[end.sum], &mean = plan_[end.mean], &rstd = plan_[end.rstd];
  const Tensor weight = set_.value(p.norm_weight);
  const Tensor dweight = set_.gradient(p.norm_weight), dnorm_bias = set_.gradient(p.norm_bias);
  const Tensor dbias = set_.gradient(p.out_bias);
  const Tensor dbranch = drops() ? plan_[end.dbranch] : dx;
  if (config_.fused) {
    b.run(op::DropoutAddLayerNormBackward{.dy = dx,
                                          .sum = sum,
                                          .weight = weight,
                                          .mean = mean,
                                          .rstd = rstd,
                                          .dropout = dropout(end.stream),
                                          .dsum = dx,
                                          .dx = drops() ? dbranch : Tensor(),
                                          .dbias = dbias,
                                          .dweight = dweight,
                                          .dnorm_bias = dnorm_bias});
  } else {
    b.run(op::LayerNormBackward{.dy = dx,
                                .x = sum,
                                .weight = weight,
                                .mean = mean,
                                .rstd = rstd,
                                .dx = dx,
                                .dweight = dweight,
                                .dbias = dnorm_bias});
    drop(b, dx, dbranch, end.stream);
    b.run(op::BiasBackward{.dy = dbranch, .dbias = dbias});
  }
  tell(listener, p.out_bias + 1);
  return dbranch;
}

void EncoderDecoderModel::drop(Backend& b, const Tensor& x, const Tensor& y, std::uint64_t stream) const {
  if (drops()) b.run(op::ApplyDropout{.x = x, .y = y, .dropout = dropout(stream)});
}

// ---- norms ---------------------------------------------------------------------------------------------------------

void EncoderDecoderModel::forward_norm(Backend& b, const Norm& norm, const Tensor& x) const {
  b.run(op::LayerNormForward{.x = x,
                             .weight = set_.value(norm.weight),
                             .bias = set_.value(norm.weight + 1),
                             .y = plan_[norm.y],
                             .mean = plan_[norm.mean],
                             .rstd = plan_[norm.rstd],
                             .eps = layer_norm_eps});
}

void EncoderDecoderModel::backward_norm(Backend& b, const Norm& norm, const Tensor& x, const Tensor& dx,
                                        train::GradientListener* listener) const {
  b.run(op::LayerNormBackward{.dy = dx,
                              .x = x,
                              .weight = set_.value(norm.weight),
                              .mean = plan_[norm.mean],
                              .rstd = plan_[norm.rstd],
                              .dx = dx,
                              .dweight = set_.gradient(norm.weight),
                              .dbias = set_.gradient(norm.weight + 1)});
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
  b.run(op::Matmul{.a = plan_[block.attention],
                   .b = set_.compute(block.p.out_weight),
                   .c = plan_[block.end.branch],
                   .transpose_b = true});
  forward_end(b, block.p, block.end, x);
}

void EncoderDecoderModel::forward_core(Backend& b, const Attention& block) const {
  const Heads in = heads(block, block.q, block.kv);
  const Tensor out = split(plan_[block.attention], block.queries);
  const float scale = 1.0F / std::sqrt(static_cast<float>(config_.head_dim()));
  if (config_.flash)
    return b.run(op::AttentionForward{.q = in.q,
                                      .k = in.k,
                                      .v = in.v,
                                      .out = out,
                                      .lse = plan_[block.lse],
                                      .shape = {scale, block.causal, dropout(block.stream)}});
  const Tensor& scores = plan_[block.scores];
  if (makes_scores_in_parts()) return naive_attention(block).forward(b, in.q, in.k, in.v, out, scores, {});
  b.run(op::Matmul{.a = in.q.transposed(1, 2), .b = in.k.transposed(1, 2), .c = scores, .transpose_b = true});
  b.run(op::SoftmaxForward{.x = scores, .y = scores, .scale = scale, .causal = block.causal});
  drop(b, scores, plan_[block.dropped_scores], block.stream);
  b.run(op::Matmul{.a = plan_[block.dropped_scores], .b = in.v.transposed(1, 2), .c = out.transposed(1, 2)});
}

void EncoderDecoderModel::backward_attention(Backend& b, const Attention& block, const Tensor& x, const Tensor& dx,
                                             const Tensor& memory, const Tensor& dmemory, bool accumulate_dmemory,
                                             train::GradientListener* listener) const {
  const std::int64_t d = config_.d_model;
  const BlockParameters& p = block.p;
  const Tensor dbranch = backward_end(b, p, block.end, dx, listener);
  weight_gradient(b, dbranch, plan_[block.attention], set_.gradient(p.out_weight));
  tell(listener, p.out_weight + 1);
  b.run(op::Matmul{.a = dbranch, .b = set_.compute(p.out_weight), .c = plan_[block.dattention]});
  backward_core(b, block);

  // The gradient by `in` of in's rows [first, first + count) of the packed projection.
  const auto projection = [&](const Tensor& dy, const Tensor& in, std::int64_t first, const Tensor& din,
                              bool accumulate) {
    const std::int64_t count = dy.dim(1);
    weight_gradient(b, dy, in, set_.gradient(p.in_weight).slice(0, first, count));
    b.run(op::BiasBackward{.dy = dy, .dbias = set_.gradient(p.in_bias).slice(0, first, count)});
    b.run(
        op::Matmul{.a = dy, .b = set_.compute(p.in_weight).slice(0, first, count), .c = din, .accumulate = accumulate});
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
    return b.run(op::AttentionBackward{.q = in.q,
                                       .k = in.k,
                                       .v = in.v,
                                       .out = split(plan_[block.attention], block.queries),
                                       .lse = plan_[block.lse],
                                       .dout = dout,
                                       .dq = grad.q,
                                       .dk = grad.k,
                                       .dv = grad.v,
                                       .shape = {scale, block.causal, dropout(block.stream)}});
  if (makes_scores_in_parts())
    return naive_attention(block).backward(b, in.q, in.k, in.v, dout, grad.q, grad.k, grad.v,
                                           plan_[block.backward_scores], plan_[block.dscores], {});
  const Tensor& weights = plan_[block.scores];
  const Tensor &dweights = plan_[block.dscores], &dropped = plan_[block.ddropped_scores];
  const Tensor dout_by_head = dout.transposed(1, 2);
  // With dropout `dropped` is first the weights, as forward multiplied them with the values, then their gradient.
  drop(b, weights, dropped, block.stream);
  b.run(op::Matmul{
      .a = drops() ? dropped : weights, .b = dout_by_head, .c = grad.v.transposed(1, 2), .transpose_a = true});
  b.run(op::Matmul{.a = dout_by_head, .b = in.v.transposed(1, 2), .c = dweights, .transpose_b = true});
  drop(b, dweights, dropped, block.stream);
  b.run(op::SoftmaxBackward{.y = weights, .dy = dropped, .dx = dropped, .scale = scale});
  b.run(op::Matmul{.a = dropped, .b = in.k.transposed(1, 2), .c = grad.q.transposed(1, 2)});
  b.run(op::Matmul{.a = dropped, .b = in.q.transposed(1, 2), .c = grad.k.transposed(1, 2), .transpose_a = true});
}

// ---- feed-forward --------------------------------------------------------------------------------------------------

void EncoderDecoderModel::forward_feed_forward(Backend& b, const FeedForward& block, const Tensor& x) const {
  const BlockParameters& p = block.p;
  const Tensor bias = set_.value(p.in_bias);
  const Tensor &hidden = plan_[block.hidden], &activated = plan_[block.activated];
  if (config_.fused) {
    b.run(op::Matmul{.a = x, .b = set_.compute(p.in_weight), .c = hidden, .transpose_b = true});
    b.run(op::BiasReluDropoutForward{.x = hidden, .bias = bias, .y = hidden, .dropout = dropout(block.stream)});
  } else {
    b.run(op::Matmul{.a = x, .b = set_.compute(p.in_weight), .c = plan_[block.raw], .transpose_b = true});
    b.run(op::BiasAdd{.x = plan_[block.raw], .bias = bias, .y = plan_[block.biased]});
    b.run(op::ActivationForward{.kind = Activation::relu, .x = plan_[block.biased], .y = activated});
    drop(b, activated, hidden, block.stream);
  }
  b.run(op::Matmul{.a = hidden, .b = set_.compute(p.out_weight), .c = plan_[block.end.branch], .transpose_b = true});
  forward_end(b, p, block.end, x);
}

void EncoderDecoderModel::backward_feed_forward(Backend& b, const FeedForward& block, const Tensor& x, const Tensor& dx,
                                                train::GradientListener* listener) const {
  const BlockParameters& p = block.p;
  const Tensor dbranch = backward_end(b, p, block.end, dx, listener);
  const Tensor &hidden = plan_[block.hidden], &dhidden = plan_[block.dhidden];
  weight_gradient(b, dbranch, hidden, set_.gradient(p.out_weight));
  tell(listener, p.out_weight + 1);
  b.run(op::Matmul{.a = dbranch, .b = set_.compute(p.out_weight), .c = dhidden});
  const Tensor& dactivated = plan_[block.dactivated];
  if (config_.fused) {
    b.run(op::ReluDropoutBackward{.y = hidden, .dy = dhidden, .dx = dactivated, .probability = config_.dropout});
  } else {
    drop(b, dhidden, dactivated, block.stream);
    b.run(op::ActivationBackward{
        .kind = Activation::relu, .x = plan_[block.activated], .dy = dactivated, .dx = dactivated});
  }
  weight_gradient(b, dactivated, x, set_.gradient(p.in_weight));
  b.run(op::BiasBackward{.dy = dactivated, .dbias = set_.gradient(p.in_bias)});
  tell(listener, p.in_bias + 1);
  b.run(op::Matmul{.a = dactivated, .b = set_.compute(p.in_weight), .c = dx, .accumulate = true});
}

}  // namespace assay::models
