// h = f(gate) * up of one element, and its gradients: f is SiLU, or GELU by tanh. Included by .cu files only.
#pragma once
#include <assay/compute/operations/elementwise.hpp>

#include "kernels/math.cuh"
#include "kernels/types.cuh"

namespace assay::cuda {

using compute::Activation;

struct SwigluGradients {
  float h, dgate, dup;
};

// Both directions multiply in this order, with nothing to fuse: h comes out the same.
template <class T, Activation activation = Activation::silu>
__device__ __forceinline__ float swiglu(float gate, float up) {
  if constexpr (activation == Activation::silu)
    return __fmul_rn(__fmul_rn(gate, sigmoid<T>(gate)), up);
  else
    return __fmul_rn(GeluTanh<T>::value(gate), up);
}

template <class T, Activation activation = Activation::silu>
__device__ __forceinline__ SwigluGradients swiglu_backward(float gate, float up, float dh) {
  if constexpr (activation == Activation::silu) {
    const float sigma = sigmoid<T>(gate), silu = __fmul_rn(gate, sigma);
    return {__fmul_rn(silu, up), dh * up * (sigma + silu * (1.0F - sigma)), dh * silu};
  } else {
    const float gelu = GeluTanh<T>::value(gate);
    return {__fmul_rn(gelu, up), dh * up * GeluTanh<T>::slope(gate), dh * gelu};
  }
}

}  // namespace assay::cuda
