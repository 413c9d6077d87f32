// Copies of floating-point tensors on the host, as fp32 whatever their dtype: converted there, so that no device memory
// is taken.
#pragma once
#include <assay/compute/backend.hpp>

#include <cstddef>
#include <vector>

namespace assay::workload {

// A tensor's elements (fp32, bf16 or fp16). Blocks.
std::vector<float> download_f32(compute::Backend& backend, const compute::Tensor& t);
// The way back, into a tensor of fp32 or bf16. Blocks. INTERNAL for another dtype.
void upload_f32(compute::Backend& backend, const compute::Tensor& t, const std::vector<float>& values);
// `n` numbers of fp32, bf16 or fp16 that lie at `bytes`, which may be unaligned.
std::vector<float> widened(const std::byte* bytes, compute::DType dtype, std::size_t n);

}  // namespace assay::workload
