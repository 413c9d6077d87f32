// Keys of latent attention, put together of each head's own columns and those that all heads share; and their
// gradients.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/tensor.hpp>

#include "common/kernel_shapes.hpp"

namespace assay::cuda {

void launch_latent_keys_forward(cudaStream_t stream, compute::DType type, void* k, const void* nope, const void* shared,
                                const float* cos, const float* sin, const compute::LatentKeysShape& shape);
void launch_latent_keys_backward(cudaStream_t stream, compute::DType type, void* dnope, void* dshared, const void* dk,
                                 const float* cos, const float* sin, const compute::LatentKeysShape& shape);

}  // namespace assay::cuda
