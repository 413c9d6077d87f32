// A decoder whose sequences are shared out over ranks ("context parallel"). With R ranks each has the whole model, and
// of every sequence chunks r and 2 R - 1 - r of 2 R, L tokens each.
//
// Everything but attention works by token. Attention has the queries of two chunks, and keys and values of all tokens
// before them: for each layer, the ranks gather these. As `causal` lets the last query see the last key, the queries of
// chunk c form an attention with the first (c + 1) L keys.
//
// Backward gathers the keys and values again, beside the feed-forward's backward, unless they have been recomputed and
// are there. A rank's queries give gradients by all keys and values. These are the rank's term of a sum, and each rank
// takes its own part of the sum.
//
// Gathered tensors are [T, batch, 2 kv_width]: any first keys of them are contiguous.
#include "assay/models/decoder.hpp"

namespace assay::models {

namespace op = compute::op;

using compute::Backend;
using compute::DType;
using compute::Tensor;
using Ticket = train::PartExchange::Ticket;

namespace {

struct Chunk {
  Tensor by_rank, in_order;
};
// Calls with each chunk's places in tensors of all tokens, by rank and in their order.
template <class Visit>
void for_each_chunk(const DecoderConfig& c, const Tensor& by_rank, const Tensor& in_order, Visit&& visit) {
  const std::int64_t length = c.chunk_length();
  for (std::int64_t rank = 0; rank < c.context.ranks; ++rank)
    for (const int which : {0, 1})
      visit(Chunk{by_rank.slice(0, (2 * rank + which) * length, length),
                  in_order.slice(0, c.chunk_begin(rank, which), length)});
}

// What the queries of a chunk of this rank see: the keys up to its end.
std::int64_t seen_keys(const DecoderConfig& c, int which) {
  return c.chunk_begin(c.context.rank, which) + c.chunk_length();
}

Tensor queries_of(const DecoderConfig& c, const Tensor& heads, int which) {
  return heads.slice(1, which * c.chunk_length(), c.chunk_length());
}

Tensor lse_of(const DecoderConfig& c, const Tensor& lse, int which) {
  return lse.flat()
      .slice(0, which * lse.elements() / 2, lse.elements() / 2)
      .view({c.batch_size, c.heads, c.chunk_length()});
}

}  // namespace

// The rotation's tables have the rows of this rank's positions.
void DecoderModel::rotation_of_own_chunks(Backend& b) const {
  const auto make = [&](const Tensor& cos, const Tensor& sin, double theta, const compute::RotaryScaling& scaling) {
    b.run(op::RotaryTable{.cos = plan_[whole_cos_], .sin = plan_[whole_sin_], .theta = theta, .scaling = scaling});
    const std::int64_t length = config_.chunk_length();
    for (const int which : {0, 1}) {
      const std::int64_t begin = config_.chunk_begin(config_.context.rank, which);
      b.run(op::Copy{.to = cos.slice(0, which * length, length), .from = plan_[whole_cos_].slice(0, begin, length)});
      b.run(op::Copy{.to = sin.slice(0, which * length, length), .from = plan_[whole_sin_].slice(0, begin, length)});
    }
  };
  make(plan_[cos_], plan_[sin_], config_.rope_theta, config_.rope_scaling);
  if (config_.rope_local_theta > 0) make(plan_[local_cos_], plan_[local_sin_], config_.rope_local_theta, {});
}

DecoderModel::ContextForward DecoderModel::plan_context_forward(const std::string& name) {
  const std::int64_t t = config_.context_length, b = config_.batch_size, w = 2 * config_.own_kv_width();
  const DType act = config_.precision.activation;
  return {.gathered = plan_.add(name + "keys_values.by_rank", act, {t, b, w}),
          .keys_values = plan_.add(name + "keys_values", act, {t, b, w})};
}

DecoderModel::ContextBackward DecoderModel::plan_context_backward(const std::string& name) {
  const std::int64_t t = config_.context_length, b = config_.batch_size, w = 2 * config_.own_kv_width();
  const DType act = config_.precision.activation;
  return {.gathered = plan_.add(name + "keys_values.by_rank", act, {t, b, w}),
          .keys_values = plan_.add(name + "keys_values", act, {t, b, w}),
          .by_first = plan_.add(name + "dkeys_values.of_first_chunk", act, {seen_keys(config_, 0), b, w}),
          .by_second = plan_.add(name + "dkeys_values", act, {t, b, w}),
          .terms = plan_.add(name + "dkeys_values.by_rank", act, {t, b, w})};
}

Tensor DecoderModel::own_part(const Tensor& by_rank) const {
  const std::int64_t count = config_.own_context();
  return by_rank.slice(0, config_.context.rank * count, count);
}

Tensor DecoderModel::own_part(const Tensor& by_rank, int which) const {
  const std::int64_t k = config_.key_heads();
  return own_part(by_rank)
      .view({config_.own_context(), config_.batch_size, 2 * k, config_.head_width()})
      .slice(2, (which - 1) * k, k);
}

Tensor DecoderModel::leading_keys(const Tensor& keys_values, std::int64_t count, int which) const {
  return keys_values.slice(0, 0, count)
      .view({count, config_.batch_size, 2 * config_.key_heads(), config_.head_width()})
      .slice(2, which * config_.key_heads(), config_.key_heads())
      .transposed(0, 1);
}

Ticket DecoderModel::start_gathering_keys(Backend& b, const Forward& f, Id gathered) const {
  const Tensor all = plan_[gathered], own = own_part(all);
  for (const int which : {1, 2})
    b.run(op::Copy{.to = own_part(all, which), .from = turned_heads(f, which).transposed(0, 1)});
  return exchange(b, own, all, [&](train::PartExchange& ranks) { return ranks.gather(b, all); });
}

void DecoderModel::finish_gathering_keys(Backend& b, Ticket ticket, Id gathered, Id keys_values) const {
  wait(b, ticket, plan_[gathered]);
  for_each_chunk(config_, plan_[gathered], plan_[keys_values],
                 [&](const Chunk& chunk) { b.run(op::Copy{.to = chunk.in_order, .from = chunk.by_rank}); });
}

void DecoderModel::context_attention_forward(Backend& b, std::int64_t layer, const Forward& f) const {
  const Tensor& keys_values = plan_[f.context.keys_values];
  finish_gathering_keys(b, start_gathering_keys(b, f, f.context.gathered), f.context.gathered, f.context.keys_values);
  for (const int which : {0, 1})
    b.run(op::AttentionForward{.q = queries_of(config_, turned_heads(f, 0), which),
                               .k = leading_keys(keys_values, seen_keys(config_, which), 0),
                               .v = leading_keys(keys_values, seen_keys(config_, which), 1),
                               .out = queries_of(config_, split_heads(plan_[f.attention]), which),
                               .lse = lse_of(config_, plan_[f.lse], which),
                               .shape = attention_shape(layer)});
}

Ticket DecoderModel::start_gathering_keys_again(Backend& b, const Forward& f, const Backward& g) const {
  if (!config_.shares_context() || config_.checkpointing) return 0;
  return start_gathering_keys(b, f, g.context.gathered);
}

void DecoderModel::context_attention_backward(Backend& b, std::int64_t layer, const Forward& f, const Backward& g,
                                              Ticket gathering) const {
  const Tensor &by_first = plan_[g.context.by_first], &by_second = plan_[g.context.by_second];
  if (!config_.checkpointing) finish_gathering_keys(b, gathering, g.context.gathered, g.context.keys_values);
  const Tensor& keys_values = plan_[config_.checkpointing ? f.context.keys_values : g.context.keys_values];
  for (const int which : {0, 1}) {
    const std::int64_t keys = seen_keys(config_, which);
    const Tensor& found = which == 0 ? by_first : by_second;
    b.run(op::AttentionBackward{.q = queries_of(config_, turned_heads(f, 0), which),
                                .k = leading_keys(keys_values, keys, 0),
                                .v = leading_keys(keys_values, keys, 1),
                                .out = queries_of(config_, split_heads(plan_[f.attention]), which),
                                .lse = lse_of(config_, plan_[f.lse], which),
                                .dout = queries_of(config_, split_heads(plan_[g.dattention]), which),
                                .dq = queries_of(config_, gradient_of_heads(g, 0), which),
                                .dk = leading_keys(found, keys, 0),
                                .dv = leading_keys(found, keys, 1),
                                .shape = attention_shape(layer)});
  }
  const Tensor seen_by_both = by_second.slice(0, 0, seen_keys(config_, 0));
  b.run(op::Add{.a = seen_by_both, .b = by_first, .out = seen_by_both});
  const std::int64_t seen = seen_keys(config_, 1), unseen = config_.context_length - seen;
  if (unseen > 0) b.run(op::Fill{.x = by_second.slice(0, seen, unseen), .value = 0.0});

  const Tensor& terms = plan_[g.context.terms];
  for_each_chunk(config_, terms, by_second,
                 [&](const Chunk& chunk) { b.run(op::Copy{.to = chunk.by_rank, .from = chunk.in_order}); });
  const Tensor own = own_part(terms);
  wait(b, exchange(b, terms, own, [&](train::PartExchange& ranks) { return ranks.sum_to_parts(b, terms); }), terms);
  for (const int which : {1, 2})
    b.run(op::Copy{.to = gradient_of_heads(g, which).transposed(0, 1), .from = own_part(terms, which)});
}

}  // namespace assay::models
