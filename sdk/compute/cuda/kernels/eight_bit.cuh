// Rows of numbers as 8 bits with a scale for each. Included by .cu files only.
#pragma once
#include <cuda_fp8.h>

#include <assay/compute/eight_bit.hpp>

#include "kernels/types.cuh"

namespace assay::cuda {

// Of magnitudes, a NaN being the largest: in the order of their bits.
struct LargestMagnitude {
  static constexpr float nothing = 0.0F;
  __device__ __forceinline__ static float join(float a, float b) {
    return __uint_as_float(max(__float_as_uint(a), __float_as_uint(b)));
  }
};

template <int N>
__device__ __forceinline__ float largest_magnitude(float so_far, const float (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) so_far = LargestMagnitude::join(so_far, fabsf(x[i]));
  return so_far;
}

template <__nv_fp8_interpretation_t format>
constexpr float largest_of() {
  return format == __NV_E4M3 ? compute::E4m3::largest() : compute::E5m2::largest();
}

// One instruction rounds two numbers.
template <__nv_fp8_interpretation_t format, int N>
__device__ __forceinline__ Pack<std::uint8_t, N> eight_bits(const float (&x)[N], float scale) {
  Pack<std::uint8_t, N> bits;
  if constexpr (N % 2 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      const __nv_fp8x2_storage_t two =
          __nv_cvt_float2_to_fp8x2(make_float2(x[i] * scale, x[i + 1] * scale), __NV_SATFINITE, format);
      bits.v[i] = static_cast<std::uint8_t>(two);
      bits.v[i + 1] = static_cast<std::uint8_t>(two >> 8);
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) bits.v[i] = __nv_cvt_float_to_fp8(x[i] * scale, __NV_SATFINITE, format);
  }
  return bits;
}

}  // namespace assay::cuda
