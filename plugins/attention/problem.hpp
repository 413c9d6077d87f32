// One attention, and what it costs by the conventions of README.md.
#pragma once
#include <assay/compute/tensor.hpp>
#include <cmath>
#include <cstdint>

namespace attention {

struct Problem {
  std::int64_t batch = 1, heads = 1, seq = 1, head_dim = 1;
  bool causal = true;
  assay::compute::DType dtype = assay::compute::DType::f32;

  float scale() const { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim))); }
  std::int64_t head_count() const { return batch * heads; }  // attentions that know nothing of each other
};

// The two products of the forward, of which a causal mask leaves half. 0 to 2^63 for what Settings lets through.
inline std::uint64_t forward_flops(const Problem& p) {
  const auto product = static_cast<std::uint64_t>(2 * p.head_count() * p.seq * p.seq * p.head_dim);
  return p.causal ? product : 2 * product;
}
// Four products make the three gradients. The score matrix that flash makes a second time counts nothing.
inline std::uint64_t backward_flops(const Problem& p) { return 2 * forward_flops(p); }

// The bytes that must be read and written at least once, without the score matrix.
inline std::uint64_t tensor_bytes(const Problem& p) {
  return static_cast<std::uint64_t>(p.head_count() * p.seq * p.head_dim) * assay::compute::size_of(p.dtype);
}
inline std::uint64_t forward_bytes(const Problem& p) { return 4 * tensor_bytes(p); }   // q, k, v; out
inline std::uint64_t backward_bytes(const Problem& p) { return 8 * tensor_bytes(p); }  // and dout; dq, dk, dv

}  // namespace attention
