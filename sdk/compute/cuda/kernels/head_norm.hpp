// RMS normalisation of each head of queries and keys with the rotation behind it, forward and backward.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/tensor.hpp>

#include "common/kernel_shapes.hpp"

namespace assay::cuda {

struct HeadNormArgs {
  compute::DType type, weight_type, dweight_type;  // of x and what is like it; fp32 or `type`
  compute::HeadNormShape shape;
  float eps;
  float weight_offset;     // the factors are weight + weight_offset
  bool accumulate;         // add to dweight
  const void *x, *weight;  // weight: [2, D], of queries and of keys
  const float *cos, *sin;  // [positions, pairs]
  void* rotated;           // forward
  const void* drotated;    // backward
  void *dx, *dweight;      // dx may be drotated
  float* partials;         // backward: head_norm_partial_floats() of scratch_sizes.hpp
};

void head_norm_rotary_forward(const HeadNormArgs&, cudaStream_t);
void head_norm_rotary_backward(const HeadNormArgs&, cudaStream_t);

}  // namespace assay::cuda
