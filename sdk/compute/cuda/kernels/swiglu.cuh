// h = silu(gate) * up of one element, and its gradients. Included by .cu files only.
#pragma once
#include "kernels/math.cuh"
#include "kernels/types.cuh"

namespace assay::cuda {

// Both directions multiply in this order, with nothing to fuse: h comes out the same.
template <class T>
__device__ __forceinline__ float swiglu(float gate, float up) {
  return __fmul_rn(__fmul_rn(gate, sigmoid<T>(gate)), up);
}

struct SwigluGradients {
  float h, dgate, dup;
};
template <class T>
__device__ __forceinline__ SwigluGradients swiglu_backward(float gate, float up, float dh) {
  const float sigma = sigmoid<T>(gate), silu = __fmul_rn(gate, sigma);
  return {__fmul_rn(silu, up), dh * up * (sigma + silu * (1.0F - sigma)), dh * silu};
}

}  // namespace assay::cuda
