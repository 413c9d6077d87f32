// Functions of one number. Math<T>: as exact as a result that is stored as T can show. Included by .cu files only.
#pragma once
#include <cuda_runtime_api.h>

namespace assay::cuda {

// The hardware's exponential and reciprocal, a few units in the 20th bit: far below a 16-bit type's rounding.
template <class T>
struct Math {
  static __device__ __forceinline__ float exp(float x) { return __expf(x); }
  static __device__ __forceinline__ float reciprocal(float x) { return __fdividef(1.0F, x); }
};
template <>
struct Math<float> {
  static __device__ __forceinline__ float exp(float x) { return expf(x); }
  static __device__ __forceinline__ float reciprocal(float x) { return 1.0F / x; }
};

// The sum is kept from fusing with the exponential's last multiplication, so that every kernel gets the same bits.
template <class T>
__device__ __forceinline__ float sigmoid(float x) {
  return Math<T>::reciprocal(__fadd_rn(1.0F, Math<T>::exp(-x)));
}

// 0.5 x (1 + tanh(u)) is x sigmoid(2 u), without the cancellation.
template <class T>
struct GeluTanh {
  static constexpr float twice_root = 1.59576912F;  // 2 sqrt(2 / pi)
  // Where the square is held back, the sigmoid is 0 or 1 long since; infinity times 0 would be NaN. With nothing to
  // fuse, so that every kernel gets the same bits.
  static __device__ __forceinline__ float square(float x) { return fminf(__fmul_rn(x, x), 1e10F); }
  static __device__ __forceinline__ float share(float x) {
    return sigmoid<T>(__fmul_rn(twice_root, __fmaf_rn(__fmul_rn(0.044715F, x), square(x), x)));
  }
  static __device__ __forceinline__ float value(float x) { return __fmul_rn(x, share(x)); }
  static __device__ __forceinline__ float slope(float x) {
    const float s = share(x);
    return s + x * s * (1.0F - s) * twice_root * (1.0F + 3.0F * 0.044715F * square(x));
  }
};

// The normal distribution function, in relative precision on the left tail too. For z = |x| / sqrt(2), erfc(z) is
// exp(-z^2) t P(t) with t = 1 / (1 + 0.42 z); P is a fit of ours to exp(z^2) erfc(z) on [0, 6.6], within 4e-8.
// `bell` receives exp(-x^2 / 2).
template <class T>
__device__ __forceinline__ float normal_cdf(float x, float* bell) {
  const float z = fabsf(x) * 0.707106781F;
  const float t = Math<T>::reciprocal(1.0F + 0.42F * z);
  float p = 0.0757840109F * t - 0.344096566F;
  p = p * t + 0.483229801F;
  p = p * t - 0.171372106F;
  p = p * t + 0.291452994F;
  p = p * t + 0.18742681F;
  p = p * t + 0.240839502F;
  p = p * t + 0.236735552F;
  *bell = Math<T>::exp(-0.5F * x * x);
  const float tail = 0.5F * *bell * t * p;
  return x < 0.0F ? tail : 1.0F - tail;
}

}  // namespace assay::cuda
