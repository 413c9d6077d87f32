// Inverted dropout, by itself and fused with what stands around it. Nothing is launched for no elements.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/tensor.hpp>

#include <cstdint>

namespace assay::compute {
struct Dropout;
}  // namespace assay::compute

namespace assay::cuda {

// Element i is kept when word i mod 4 of block i / 4 is at least `drop_below`, and then multiplied by `factor`; the key
// is the first two words of block *step of (seed, stream), its stream the last two. `step` is read on the device. With
// drop_below 0 nothing is dropped and the rest is not looked at.
struct DropoutArgs {
  std::uint32_t drop_below = 0;
  float factor = 1.0F;
  std::uint64_t seed = 0, stream = 0;
  const std::int64_t* step = nullptr;
};

DropoutArgs dropout_args(const compute::Dropout& dropout);

void launch_dropout(cudaStream_t stream, compute::DType type, const void* x, void* y, std::int64_t count,
                    const DropoutArgs& dropout);

// y = dropout(relu(x + bias)) of contiguous [rows, width]; y may be x. bias: fp32 or `type`, or NULL.
void launch_bias_relu_dropout(cudaStream_t stream, compute::DType type, compute::DType bias_type, const void* x,
                              const void* bias, void* y, std::int64_t rows, std::int64_t width,
                              const DropoutArgs& dropout);

// What cuDNN's attention makes its mask of: random[0] a seed out of (seed, stream, *step), random[1] the offset 0.
void launch_attention_seed(cudaStream_t stream, const DropoutArgs& dropout, std::int64_t* random);

}  // namespace assay::cuda
