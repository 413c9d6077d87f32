// Reductions of a whole tensor to one number.
#pragma once
#include <stdint.h>

#include "isa.hpp"

namespace assay::cpu {

// A tensor is cut into this many blocks, whatever the number of threads; the blocks' results are joined in order.
inline constexpr int64_t reduction_blocks = 256;

struct ReductionArgs {
  bool bf16;
  const void* x;
  int64_t count;
  float factor;      // of sum
  float* out;        // one number
  double* partials;  // reduction_blocks
};

struct ReductionKernels {
  void (*sum)(const ReductionArgs&);             // in double
  void (*sum_of_squares)(const ReductionArgs&);  // in double
  void (*max_abs)(const ReductionArgs&);         // NaN when any element is; 0 of nothing
  void (*count_nonfinite)(const ReductionArgs&);
};

}  // namespace assay::cpu

ASSAY_DECLARE_KERNELS(ReductionKernels, reduction_kernels)
