// Queries and keys between their product and attention: norms of heads, and the rotation behind them.
#include "assay/models/decoder.hpp"

namespace assay::models {

namespace op = compute::op;

using compute::Backend;
using compute::Tensor;

Tensor DecoderModel::queries_and_keys(const Tensor& side_by_side) const {
  const std::int64_t t = config_.own_context(), d = config_.head_width();
  return side_by_side.view({side_by_side.dim(0) / t, t, side_by_side.dim(1) / d, d})
      .slice(2, 0, config_.own_heads() + config_.own_key_heads());
}

Tensor DecoderModel::queries_or_keys(const Tensor& both, int which) const {
  const std::int64_t h = config_.own_heads(), k = config_.own_key_heads(), d = config_.head_width();
  const std::int64_t first = which == 0 ? 0 : h, count = which == 0 ? h : k;
  if (config_.fused) return queries_and_keys(both).slice(2, first, count);
  return both.flat()
      .slice(0, config_.rows() * first * d, config_.rows() * count * d)
      .view({config_.batch_size, config_.own_context(), count, d});
}

Tensor DecoderModel::rstd_of_heads(const Forward& f, int which) const {
  const std::int64_t first = which == 0 ? 0 : config_.own_heads();
  const std::int64_t count = which == 0 ? config_.own_heads() : config_.own_key_heads();
  return plan_[f.heads_rstd].slice(0, config_.rows() * first, config_.rows() * count);
}

Tensor DecoderModel::turned_heads(const Forward& f, int which) const {
  if (config_.latent.any()) return latent_heads(f, which);
  return config_.qk_norm && which < 2 ? queries_or_keys(plan_[f.turned], which) : heads_of(plan_[f.qkv], which);
}

Tensor DecoderModel::gradient_of_heads(const Backward& g, int which) const {
  if (config_.latent.any()) return gradient_of_latent_heads(g, which);
  return config_.qk_norm && !config_.fused && which < 2 ? queries_or_keys(plan_[g.dheads], which)
                                                        : heads_of(plan_[g.dqkv], which);
}

void DecoderModel::turn_heads(Backend& b, std::int64_t layer, const Forward& f, const RowRange& rows) const {
  if (config_.latent.any()) return make_latent_heads(b, layer, f);
  if (!config_.qk_norm) return rotate(b, layer, SplitRows::of(plan_[f.qkv], rows), false);
  const DecoderLayerParameters& p = ids_.layers[index_of(layer)];
  const std::int64_t h = config_.own_heads(), d = config_.head_width();
  if (config_.fused)
    return b.run(op::HeadNormRotaryForward{.x = queries_and_keys(SplitRows::of(plan_[f.qkv], rows)),
                                           .weight = set_.value(p.q_norm, 2).view({2, d}),
                                           .cos = cos_of(layer),
                                           .sin = sin_of(layer),
                                           .rotated = queries_and_keys(SplitRows::of(plan_[f.turned], rows)),
                                           .queries = h,
                                           .eps = norm_eps(),
                                           .weight_offset = norm_offset()});
  for (int i = 0; i < 2; ++i) {
    const Tensor x = queries_or_keys(plan_[f.heads], i), y = queries_or_keys(plan_[f.turned], i);
    b.run(op::Copy{.to = x, .from = heads_of(plan_[f.qkv], i)});
    b.run(op::RmsNormForward{.x = x,
                             .weight = set_.value(p.q_norm + static_cast<std::size_t>(i)),
                             .y = y,
                             .rstd = rstd_of_heads(f, i),
                             .eps = norm_eps(),
                             .weight_offset = norm_offset()});
    b.run(op::Rotary{.x = y, .cos = cos_of(layer), .sin = sin_of(layer)});
  }
}

void DecoderModel::turn_heads_back(Backend& b, std::int64_t layer, const Forward& f, const Backward& g) const {
  if (config_.latent.any()) return latent_heads_back(b, layer, f, g);
  if (!config_.qk_norm) return rotate(b, layer, plan_[g.dqkv], true);
  const DecoderLayerParameters& p = ids_.layers[index_of(layer)];
  const std::int64_t h = config_.own_heads(), d = config_.head_width();
  if (config_.fused) {
    const Tensor gradient = queries_and_keys(plan_[g.dqkv]);
    return b.run(op::HeadNormRotaryBackward{.drotated = gradient,
                                            .x = queries_and_keys(plan_[f.qkv]),
                                            .weight = set_.value(p.q_norm, 2).view({2, d}),
                                            .cos = cos_of(layer),
                                            .sin = sin_of(layer),
                                            .dx = gradient,
                                            .dweight = set_.gradient(p.q_norm, 2).view({2, d}),
                                            .queries = h,
                                            .eps = norm_eps(),
                                            .weight_offset = norm_offset()});
  }
  for (int i = 0; i < 2; ++i) {
    const Tensor gradient = queries_or_keys(plan_[g.dheads], i);
    b.run(op::Rotary{.x = gradient, .cos = cos_of(layer), .sin = sin_of(layer), .inverse = true});
    norm_backward(b, p.q_norm + static_cast<std::size_t>(i), gradient, queries_or_keys(plan_[f.heads], i),
                  rstd_of_heads(f, i), {}, gradient, {});
    b.run(op::Copy{.to = heads_of(plan_[g.dqkv], i), .from = gradient});
  }
}

}  // namespace assay::models
