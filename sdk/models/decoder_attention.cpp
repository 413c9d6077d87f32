// The attention of a layer, between the rotation and the output product.
#include <cmath>

#include "assay/models/decoder.hpp"

namespace assay::models {

namespace op = compute::op;

using compute::Backend;
using compute::Tensor;

compute::AttentionShape DecoderModel::attention_shape(std::int64_t layer) const {
  return {.scale = config_.score_factor() * (1.0F / std::sqrt(static_cast<float>(config_.query_scalar()))),
          .causal = true,
          .window = config_.window_of(layer),
          .soft_cap = static_cast<float>(config_.attention_soft_cap),
          .documents = packed_documents(layer)};
}

compute::PackedDocuments DecoderModel::packed_documents(std::int64_t layer) const {
  if (config_.documents.empty()) return {};
  return (config_.window_of(layer) > 0 ? windowed_documents_ : whole_documents_)
      .packed(plan_[first_keys_], plan_[document_starts_]);
}

void DecoderModel::initialize_documents(Backend& b) const {
  if (config_.documents.empty()) return;
  const DocumentPlaces places(config_.documents, config_.batch_size);
  b.upload(plan_[first_keys_], places.first_keys.data());
  b.upload(plan_[document_starts_], places.starts.data());
}

void DecoderModel::attention_forward(Backend& b, std::int64_t layer, const Forward& f, const RowRange& rows) const {
  if (config_.shares_context()) return context_attention_forward(b, layer, f);
  const std::int64_t first = rows.first / config_.context_length, count = rows.count / config_.context_length;
  const Tensor q = turned_heads(f, 0).slice(0, first, count);
  const Tensor k = turned_heads(f, 1).slice(0, first, count);
  const Tensor v = turned_heads(f, 2).slice(0, first, count);
  const Tensor out = split_heads(plan_[f.attention]).slice(0, first, count);
  const compute::AttentionShape shape = attention_shape(layer);
  if (config_.flash)
    return b.run(op::AttentionForward{.q = q,
                                      .k = k,
                                      .v = v,
                                      .out = out,
                                      .lse = plan_[f.lse].slice(0, first, count),
                                      .shape = shape,
                                      .sinks = sinks_of(layer)});
  if (makes_scores_in_parts())
    return naive_attention(layer, false).forward(b, q, k, v, out, plan_[f.scores], plan_[f.lse]);
  const Tensor& scores = plan_[f.scores];
  NaiveProducts::scores(b, q, k, scores);
  const Tensor sinks = sinks_of(layer);
  b.run(op::SoftmaxForward{.x = scores,
                           .y = scores,
                           .scale = shape.scale,
                           .causal = shape.causal,
                           .window = shape.window,
                           .soft_cap = shape.soft_cap,
                           .sinks = sinks,
                           .lse = NaiveAttention::needs_lse(shape, sinks) ? plan_[f.lse] : Tensor(),
                           .first_keys = shape.documents.first_keys});
  NaiveProducts::of_queries(b, scores, v, out);
}

void DecoderModel::attention_backward(Backend& b, std::int64_t layer, const Forward& f, const Backward& g,
                                      train::PartExchange::Ticket gathering) const {
  if (config_.shares_context()) return context_attention_backward(b, layer, f, g, gathering);
  const Tensor q = turned_heads(f, 0);
  const Tensor k = turned_heads(f, 1);
  const Tensor v = turned_heads(f, 2);
  const Tensor dq = gradient_of_heads(g, 0);
  const Tensor dk = gradient_of_heads(g, 1);
  const Tensor dv = gradient_of_heads(g, 2);
  const Tensor dout = split_heads(plan_[g.dattention]);
  const compute::AttentionShape shape = attention_shape(layer);
  const Tensor sinks = sinks_of(layer);
  if (config_.flash)
    return b.run(op::AttentionBackward{.q = q,
                                       .k = k,
                                       .v = v,
                                       .out = split_heads(plan_[f.attention]),
                                       .lse = plan_[f.lse],
                                       .dout = dout,
                                       .dq = dq,
                                       .dk = dk,
                                       .dv = dv,
                                       .shape = shape,
                                       .sinks = sinks,
                                       .dsinks = dsinks_of(layer)});
  if (makes_scores_in_parts())
    return naive_attention(layer, true)
        .backward(b, q, k, v, dout, dq, dk, dv, plan_[g.scores], plan_[g.dscores], plan_[f.lse]);
  const Tensor& probabilities = plan_[f.scores];
  const Tensor& dscores = plan_[g.dscores];
  NaiveProducts::scores(b, dout, v, dscores);
  NaiveProducts::of_keys(b, probabilities, dout, dv, false);
  b.run(op::SoftmaxBackward{.y = probabilities,
                            .dy = dscores,
                            .dx = dscores,
                            .scale = shape.scale,
                            .soft_cap = shape.soft_cap,
                            .sinks = sinks,
                            .lse = NaiveAttention::needs_lse(shape, sinks) ? plan_[f.lse] : Tensor(),
                            .dsinks = dsinks_of(layer)});
  NaiveProducts::of_queries(b, dscores, k, dq);
  NaiveProducts::of_keys(b, dscores, q, dk, false);
}

}  // namespace assay::models
