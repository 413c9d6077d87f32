#include "assay/models/naive_attention.hpp"

#include <algorithm>

namespace assay::models {

namespace op = compute::op;

using compute::Backend;
using compute::Tensor;

namespace {

// Rows of a sequence, by heads: [B, H, rows, D].
Tensor rows_by_head(const Tensor& x, std::int64_t first, std::int64_t rows) {
  return x.slice(1, first, rows).transposed(1, 2);
}

}  // namespace

NaiveAttention::NaiveAttention(std::int64_t batch, std::int64_t heads, std::int64_t queries, std::int64_t keys,
                               bool causal, std::int64_t rows)
    : batch_(batch),
      heads_(heads),
      queries_(queries),
      keys_(keys),
      causal_(causal),
      rows_(std::clamp<std::int64_t>(rows, 1, queries)) {}

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
    visit(Part{end - rows, rows, causal_ ? end + (keys_ - queries_) : keys_});
  }
}

Tensor NaiveAttention::scores_of(const Part& part, const Tensor& memory) const {
  const std::int64_t elements = batch_ * heads_ * part.rows * part.keys;
  return memory.view({memory.elements()}).slice(0, 0, elements).view({batch_, heads_, part.rows, part.keys});
}

void NaiveAttention::probabilities(Backend& b, const Part& part, const Tensor& q, const Tensor& k, const Tensor& scores,
                                   float scale) const {
  b.run(op::Matmul{.a = rows_by_head(q, part.first, part.rows),
                   .b = rows_by_head(k, 0, part.keys),
                   .c = scores,
                   .transpose_b = true});
  b.run(op::SoftmaxForward{.x = scores, .y = scores, .scale = scale, .causal = causal_});
}

void NaiveAttention::forward(Backend& b, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                             const Tensor& scores, float scale) const {
  each_part([&](const Part& part) {
    const Tensor p = scores_of(part, scores);
    probabilities(b, part, q, k, p, scale);
    b.run(op::Matmul{.a = p, .b = rows_by_head(v, 0, part.keys), .c = rows_by_head(out, part.first, part.rows)});
  });
}

void NaiveAttention::backward(Backend& b, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& dout,
                              const Tensor& dq, const Tensor& dk, const Tensor& dv, const Tensor& scores,
                              const Tensor& dscores, float scale) const {
  each_part([&](const Part& part) {
    const Tensor p = scores_of(part, scores), dp = scores_of(part, dscores);
    const Tensor dout_rows = rows_by_head(dout, part.first, part.rows);
    const bool adds = part.first + part.rows < queries_;
    probabilities(b, part, q, k, p, scale);
    b.run(op::Matmul{
        .a = p, .b = dout_rows, .c = rows_by_head(dv, 0, part.keys), .transpose_a = true, .accumulate = adds});
    b.run(op::Matmul{.a = dout_rows, .b = rows_by_head(v, 0, part.keys), .c = dp, .transpose_b = true});
    b.run(op::SoftmaxBackward{.y = p, .dy = dp, .dx = dp, .scale = scale});
    b.run(op::Matmul{.a = dp, .b = rows_by_head(k, 0, part.keys), .c = rows_by_head(dq, part.first, part.rows)});
    b.run(op::Matmul{.a = dp,
                     .b = rows_by_head(q, part.first, part.rows),
                     .c = rows_by_head(dk, 0, part.keys),
                     .transpose_a = true,
                     .accumulate = adds});
  });
}

}  // namespace assay::models
