// exp for softmax and cross-entropy. Included by .cu files only.
#pragma once
#include "kernels/types.cuh"

namespace assay::cuda {

// e^x for x <= 0 or so, as exact as numbers of type T deserve. fp32 gets the library's function. A result that is
// rounded to 16 bits, or added up with others from 16-bit numbers, takes one multiplication and the hardware's 2^x. The
// error of that, some 2^-22 (and |x| 2^-23 from the multiplication), is far below the rounding. NaN stays NaN.
template <class T>
__device__ __forceinline__ float exponential(float x) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return expf(x);
  } else {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x * 1.44269504F));
    return result;
  }
}

}  // namespace assay::cuda
