// RMS and layer normalisation over the rows of [rows, columns], forward and backward.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/tensor.hpp>

#include <cstddef>
#include <cstdint>

namespace assay::cuda {

// What an operation does not use is left out (nullptr). `residual` is added to x before a forward, to dx in a backward.
// `eight_bits` and its scales are those of y in a forward, of dx in a backward: of RMS normalisation alone.
struct NormArgs {
  compute::DType type, weight_type;         // of x, y and their gradients; of weight and bias
  compute::DType dweight_type, dbias_type;  // fp32 or `type`
  std::int64_t rows, columns;               // columns: 1 to 2^31 - 1
  float eps;
  float weight_offset;  // RMS: the factors are weight + weight_offset
  bool accumulate;      // add to dweight and dbias
  const void *x, *residual, *weight, *bias, *dy;
  void *sum, *y, *dx, *dweight, *dbias;
  float *mean, *rstd;
  std::uint8_t* eight_bits;
  float* inverse_scale;
  float* partials;  // backward: norm_partial_floats() of scratch_sizes.hpp per gradient
};

void rms_norm_forward(const NormArgs&, cudaStream_t);  // with residual and sum where they are given
void rms_norm_backward(const NormArgs&, cudaStream_t);
void layer_norm_forward(const NormArgs&, cudaStream_t);
void layer_norm_backward(const NormArgs&, cudaStream_t);

}  // namespace assay::cuda
