// RMS and layer normalisation over the rows of [rows, columns], forward and backward.
#pragma once
#include <stdint.h>

#include "dropout.hpp"
#include "isa.hpp"

namespace assay::cpu {

// Types of x, y and their gradients, and of weight and bias. Statistics are fp32 throughout.
enum class NormTypes { f32, bf16, bf16_with_f32_weight };

// What an operation does not use is left out (nullptr). `residual` is added to x before a forward, to dx in a backward.
// Layer normalisation of a block's end, where `sum` is given: it is dropout(x + x_bias) + residual that is normalised;
// backward, `x` is that sum, and the gradient by x + x_bias goes to x_gradient and, summed, to x_bias_partials.
struct NormArgs {
  NormTypes types;
  int64_t rows, columns;
  float eps;
  float weight_offset;  // RMS: the factors are weight + weight_offset
  const void *x, *residual, *weight, *bias, *dy;
  void *sum, *y, *dx;
  const void* x_bias;  // of the weight's type
  void* x_gradient;
  DropoutArgs dropout;
  float *mean, *rstd;
  // Backward: norm_row_blocks(rows) rows of `columns` each, for the gradients by weight and by biases.
  float *weight_partials, *bias_partials, *x_bias_partials;
};

// The gradients by weight and biases are summed over this many blocks of rows, then over the blocks in order: a number
// that depends on the rows alone, so that the sum does not depend on the threads.
inline constexpr int64_t max_norm_row_blocks = 64;

struct NormKernels {
  void (*rms_forward)(const NormArgs&);  // with residual and sum where they are given
  void (*rms_backward)(const NormArgs&);
  void (*layer_forward)(const NormArgs&);
  void (*layer_backward)(const NormArgs&);
  // total[c] += sum over `blocks` of partials[block, c].
  void (*add_partials_f32)(const float* partials, int64_t blocks, int64_t columns, float* total);
  void (*add_partials_bf16)(const float* partials, int64_t blocks, int64_t columns, uint16_t* total);
};

}  // namespace assay::cpu

ASSAY_DECLARE_KERNELS_WITH_BF16(NormKernels, norm_kernels)
