#include "assay/models/naive_attention.hpp"

#include <algorithm>

namespace assay::models {

namespace op = compute::op;

using compute::Backend;
using compute::Tensor;

namespace {

// Of dimension `d`, the `member`-th of each `group`.
Tensor one_of_each(const Tensor& x, int d, std::int64_t group, std::int64_t member) {
  Tensor t = x.slice(d, member, x.dim(d) / group);
  t.stride[static_cast<std::size_t>(d)] *= group;
  return t;
}

// One product where queries and keys have as many heads; else one for each member of a group, of [B, K, ...].
// x [B, T, H, D], scores [B, H, Tq, Tk]; f(x by heads [B, K, T, D], scores [B, K, Tq, Tk], whether it is the first).
template <class F>
void each_member(const Tensor& x, const Tensor& scores, std::int64_t key_heads, F&& f) {
  const std::int64_t group = x.dim(2) / key_heads;
  for (std::int64_t member = 0; member < group; ++member)
    f(one_of_each(x, 2, group, member).transposed(1, 2), one_of_each(scores, 1, group, member), member == 0);
}

}  // namespace

void NaiveProducts::scores(Backend& b, const Tensor& q, const Tensor& k, const Tensor& scores) {
  each_member(q, scores, k.dim(2), [&](const Tensor& one_q, const Tensor& one_scores, bool) {
    b.run(op::Matmul{.a = one_q, .b = k.transposed(1, 2), .c = one_scores, .transpose_b = true});
  });
}

void NaiveProducts::of_queries(Backend& b, const Tensor& p, const Tensor& v, const Tensor& out) {
  each_member(out, p, v.dim(2), [&](const Tensor& one_out, const Tensor& one_p, bool) {
    b.run(op::Matmul{.a = one_p, .b = v.transposed(1, 2), .c = one_out});
  });
}

void NaiveProducts::of_keys(Backend& b, const Tensor& p, const Tensor& dout, const Tensor& dv, bool adds) {
  each_member(dout, p, dv.dim(2), [&](const Tensor& one_dout, const Tensor& one_p, bool first) {
    b.run(op::Matmul{
        .a = one_p, .b = one_dout, .c = dv.transposed(1, 2), .transpose_a = true, .accumulate = adds || !first});
  });
}

NaiveAttention::NaiveAttention(std::int64_t batch, std::int64_t heads, std::int64_t queries, std::int64_t keys,
                               const compute::AttentionShape& shape, std::int64_t rows, const Tensor& sinks,
                               const Tensor& dsinks)
    : batch_(batch),
      heads_(heads),
      queries_(queries),
      keys_(keys),
      shape_(shape),
      rows_(std::clamp<std::int64_t>(rows, 1, queries)),
      sinks_(sinks),
      dsinks_(dsinks) {
  if (shape.window > 0 && !shape.causal)
    throw Error(ASSAY_INVALID_ARGUMENT, "a window of attention that is not causal; expected causal, or no window");
}

std::int64_t NaiveAttention::rows_within(std::size_t bytes, std::int64_t batch, std::int64_t heads,
                                         std::int64_t queries, std::int64_t keys, compute::DType dtype) {
  constexpr std::int64_t most_parts = 16;
  const std::int64_t row_bytes = batch * heads * keys * static_cast<std::int64_t>(compute::size_of(dtype));
  const std::int64_t affordable = static_cast<std::int64_t>(bytes) / std::max<std::int64_t>(1, row_bytes);
  return std::clamp(affordable, (queries + most_parts - 1) / most_parts, queries);
}

// From the last part to the first. The last one reaches every key, so that its gradients by keys and values are written
// and those of the others added.
template <class Visit>
void NaiveAttention::each_part(Visit visit) const {
  for (std::int64_t end = queries_; end > 0; end -= std::min(end, rows_)) {
    const std::int64_t rows = std::min(end, rows_);
    visit(Part{end - rows, rows, shape_.causal ? end + (keys_ - queries_) : keys_});
  }
}

Tensor NaiveAttention::scores_of(const Part& part, const Tensor& memory) const {
  const std::int64_t elements = batch_ * heads_ * part.rows * part.keys;
  return memory.flat().slice(0, 0, elements).view({batch_, heads_, part.rows, part.keys});
}

Tensor NaiveAttention::lse_of(const Part& part, const Tensor& memory) const {
  if (!needs_lse(shape_, sinks_)) return {};
  return memory.flat().slice(0, 0, batch_ * heads_ * part.rows).view({batch_, heads_, part.rows});
}

void NaiveAttention::probabilities(Backend& b, const Part& part, const Tensor& q, const Tensor& k, const Tensor& scores,
                                   const Tensor& lse) const {
  NaiveProducts::scores(b, q.slice(1, part.first, part.rows), k.slice(1, 0, part.keys), scores);
  const Tensor& first_keys = shape_.documents.first_keys;
  b.run(op::SoftmaxForward{.x = scores,
                           .y = scores,
                           .scale = shape_.scale,
                           .causal = shape_.causal,
                           .window = shape_.window,
                           .soft_cap = shape_.soft_cap,
                           .sinks = sinks_,
                           .lse = lse,
                           .first_keys = first_keys ? first_keys.slice(1, part.first, part.rows) : first_keys});
}

void NaiveAttention::forward(Backend& b, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                             const Tensor& scores, const Tensor& lse) const {
  each_part([&](const Part& part) {
    const Tensor p = scores_of(part, scores);
    probabilities(b, part, q, k, p, lse_of(part, lse));
    NaiveProducts::of_queries(b, p, v.slice(1, 0, part.keys), out.slice(1, part.first, part.rows));
  });
}

void NaiveAttention::backward(Backend& b, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& dout,
                              const Tensor& dq, const Tensor& dk, const Tensor& dv, const Tensor& scores,
                              const Tensor& dscores, const Tensor& lse) const {
  each_part([&](const Part& part) {
    const Tensor p = scores_of(part, scores), dp = scores_of(part, dscores), log_sums = lse_of(part, lse);
    const Tensor dout_rows = dout.slice(1, part.first, part.rows);
    const bool adds = part.first + part.rows < queries_;
    probabilities(b, part, q, k, p, log_sums);
    NaiveProducts::of_keys(b, p, dout_rows, dv.slice(1, 0, part.keys), adds);
    NaiveProducts::scores(b, dout_rows, v.slice(1, 0, part.keys), dp);
    b.run(op::SoftmaxBackward{.y = p,
                              .dy = dp,
                              .dx = dp,
                              .scale = shape_.scale,
                              .soft_cap = shape_.soft_cap,
                              .sinks = sinks_,
                              .lse = log_sums,
                              .dsinks = dsinks_,
                              .accumulate = adds});
    NaiveProducts::of_queries(b, dp, k.slice(1, 0, part.keys), dq.slice(1, part.first, part.rows));
    NaiveProducts::of_keys(b, dp, q.slice(1, part.first, part.rows), dk.slice(1, 0, part.keys), adds);
  });
}

}  // namespace assay::models
