// One attention, and what it costs by the conventions of README.md.
#pragma once
#include <assay/compute/operations/attention.hpp>

#include <assay/models/documents.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

namespace attention {

struct Problem {
  std::int64_t batch = 1, heads = 1, seq = 1, head_dim = 1;
  bool causal = true;
  std::int64_t window = 0;   // causal: so many tokens up to its own are visible to a query; 0: all
  bool projections = false;  // a layer: q, k and v are products of its input, and so is its result of the attention
  assay::compute::DType dtype = assay::compute::DType::f32;
  std::vector<std::int64_t> documents = {};  // causal: their lengths in each sequence; empty: a sequence is one
  std::int64_t value_dim = 0;                // columns of a head's values and results, without projections; 0: head_dim

  float scale() const { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim))); }
  std::int64_t head_count() const { return batch * heads; }  // attentions that know nothing of each other
  std::int64_t tokens() const { return batch * seq; }
  // Operands lie [batch, seq, heads, head_dim], as models have them; otherwise [batch, heads, seq, head_dim].
  bool is_by_token() const { return projections || !documents.empty(); }
  std::int64_t width() const { return heads * head_dim; }  // of a token; d_model where there are projections
  std::int64_t value_columns() const { return value_dim > 0 ? value_dim : head_dim; }
  std::int64_t value_width() const { return heads * value_columns(); }  // of a token's values
};

// Whether every count of operations and bytes of a step is below 2^63. Settings lets nothing else through.
inline bool is_countable(const Problem& p) {
  const auto token_elements = static_cast<double>(p.tokens()) * static_cast<double>(p.width());
  const double of_values = static_cast<double>(p.tokens()) * static_cast<double>(p.value_width());
  const double attention = 2 * (token_elements + of_values) * static_cast<double>(p.seq);
  const double projections = p.projections ? 8 * token_elements * static_cast<double>(p.width()) : 0;
  const double weight_bytes = p.projections ? 64 * std::pow(static_cast<double>(p.width()), 2) : 0;
  return 3 * (attention + projections) + weight_bytes + 32 * (token_elements + of_values) < 0x1p63;
}

// The two products of the forward, one over the columns of keys and one over those of values, and the four projections.
// A causal mask leaves half of the two products; a window and documents leave their pairs of tokens.
inline std::uint64_t forward_flops(const Problem& p) {
  const auto product = static_cast<std::uint64_t>(p.tokens() * (p.width() + p.value_width()) * p.seq);
  const auto projections = static_cast<std::uint64_t>(p.projections ? 8 * p.tokens() * p.width() * p.width() : 0);
  if (!p.documents.empty() || (p.window > 0 && p.window < p.seq)) {
    const std::int64_t pairs = p.documents.empty() ? assay::compute::visible_pairs(p.seq, p.seq, p.causal, p.window)
                                                   : assay::models::document_pairs(p.documents, p.window);
    return static_cast<std::uint64_t>(2 * p.batch * (p.width() + p.value_width()) * pairs) + projections;
  }
  return (p.causal ? product : 2 * product) + projections;
}
// Four products make the three gradients. The score matrix that flash makes a second time counts nothing.
inline std::uint64_t backward_flops(const Problem& p) { return 2 * forward_flops(p); }

// The bytes that must be read and written at least once, without the score matrix.
inline std::uint64_t tensor_bytes(const Problem& p) {
  return static_cast<std::uint64_t>(p.tokens() * p.width()) * assay::compute::size_of(p.dtype);
}
inline std::uint64_t value_bytes(const Problem& p) {
  return static_cast<std::uint64_t>(p.tokens() * p.value_width()) * assay::compute::size_of(p.dtype);
}
inline std::uint64_t weight_bytes(const Problem& p) {  // of the four projections
  return p.projections ? static_cast<std::uint64_t>(4 * p.width() * p.width()) * assay::compute::size_of(p.dtype) : 0;
}
// Reads q, k, v and writes out; with projections reads x and the weights, and writes the result.
inline std::uint64_t forward_bytes(const Problem& p) {
  return 2 * tensor_bytes(p) + (p.projections ? 0 : 2 * value_bytes(p)) + weight_bytes(p);
}
// Reads q, k, v, out and its gradient, and writes dq, dk, dv; with projections reads x, q, k, v, out, the weights and
// the gradient of the result, and writes the gradients by x and by the weights.
inline std::uint64_t backward_bytes(const Problem& p) {
  return (p.projections ? 7 * tensor_bytes(p) : 4 * (tensor_bytes(p) + value_bytes(p))) + 2 * weight_bytes(p);
}

}  // namespace attention
