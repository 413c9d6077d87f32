// The end of a post-norm block: sum = dropout(x + bias) + residual, y = layer_norm(sum), over the rows of
// [rows, columns]; and its backward.
#pragma once
#include <assay/compute/tensor.hpp>

#include "kernels/dropout.hpp"

namespace assay::cuda {

// bias may be nullptr; sum may be x or residual.
struct DropoutNormForwardArgs {
  compute::DType type, weight_type;  // of the matrices; of the three vectors: fp32 or `type`
  std::int64_t rows, columns;        // columns: 1 to 2^31 - 1
  float eps;
  DropoutArgs dropout;
  const void *x, *bias, *residual, *weight, *norm_bias;
  void *sum, *y;
  float *mean, *rstd;
};

// dx and dbias may be nullptr, dsum may be dy.
struct DropoutNormBackwardArgs {
  compute::DType type, weight_type;
  compute::DType dbias_type, dweight_type, dnorm_bias_type;  // fp32 or `type`
  std::int64_t rows, columns;
  bool accumulate;  // add to the gradients by vectors
  DropoutArgs dropout;
  const void *dy, *sum, *weight;
  const float *mean, *rstd;
  void *dsum, *dx, *dbias, *dweight, *dnorm_bias;
  float* partials;  // dropout_norm_partial_floats() of scratch_sizes.hpp
};

void dropout_norm_forward(const DropoutNormForwardArgs&, cudaStream_t);
void dropout_norm_backward(const DropoutNormBackwardArgs&, cudaStream_t);

}  // namespace assay::cuda
