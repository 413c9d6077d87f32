// RMS normalisation of each head of queries and keys with the rotation behind it, forward and backward.
#pragma once
#include <stdint.h>

#include "common/kernel_shapes.hpp"
#include "isa.hpp"
#include "norm.hpp"

namespace assay::cpu {

using compute::HeadNormShape;
using compute::HeadSteps;

struct HeadNormArgs {
  NormTypes types;
  HeadNormShape shape;
  float eps;
  float weight_offset;     // the factors are weight + weight_offset
  const void *x, *weight;  // weight: [2, D], of queries and of keys
  const float *cos, *sin;
  void* rotated;  // forward
  const void* drotated;
  void* dx;
  float* weight_partials;  // backward: head_norm_blocks(shape) rows of [2, D]
};

// The gradient by weight is summed over so many blocks of positions, then over the blocks in order.
inline int64_t head_norm_blocks(const HeadNormShape& s) {
  const int64_t rows = s.batch * s.positions;
  return rows < max_norm_row_blocks ? rows : max_norm_row_blocks;
}

struct HeadNormKernels {
  void (*forward)(const HeadNormArgs&);
  void (*backward)(const HeadNormArgs&);
};

}  // namespace assay::cpu

ASSAY_DECLARE_KERNELS(HeadNormKernels, head_norm_kernels)
