// The last step of gradients by vectors: sums over the rows of partial sums, in an order that depends on their number
// alone.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/tensor.hpp>

#include <array>
#include <cstdint>

namespace assay::cuda {

struct NormTotal {
  const float* partials = nullptr;  // [blocks, columns]
  void* out = nullptr;              // [columns], or nullptr: none is wanted
  compute::DType type = compute::DType::f32;
};
using NormTotals = std::array<NormTotal, 3>;

// out[c] (+)= sum over `blocks` rows of partials, for up to three vectors in one launch. Without blocks the sum is 0.
void launch_norm_totals(const NormTotals& totals, unsigned blocks, std::int64_t columns, bool accumulate,
                        cudaStream_t stream);

}  // namespace assay::cuda
