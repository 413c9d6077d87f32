// Vectors as wide as the instruction set, for the kernels whose speed must not hang on the auto-vectoriser: row
// reductions, exponentials, matrix tiles. GCC's vector extension, and intrinsics only where the compiler's own choice
// is poor. Included by kernel files only.
//
// Rows are walked by `each` in whole vectors and one part of a vector at the end: the body is written once, and the
// loads and stores take the span that says which it is.
#pragma once
#include <stdint.h>

#include <utility>

#include "math.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace assay::cpu::ASSAY_ISA {

#if defined(__AVX512F__)
constexpr int lanes = 16;
#elif defined(__AVX2__)
constexpr int lanes = 8;
#else
constexpr int lanes = 4;
#endif

typedef float Vec __attribute__((vector_size(4 * lanes)));
typedef int32_t IntVec __attribute__((vector_size(4 * lanes)));
typedef uint32_t BitVec __attribute__((vector_size(4 * lanes)));
typedef uint16_t HalfBits __attribute__((vector_size(2 * lanes)));
typedef float VecAnywhere __attribute__((vector_size(4 * lanes), aligned(4), may_alias));
typedef uint16_t HalfBitsAnywhere __attribute__((vector_size(2 * lanes), aligned(2), may_alias));

template <int... I>
using Lanes = std::integer_sequence<int, I...>;
using AllLanes = std::make_integer_sequence<int, lanes>;

ASSAY_INLINE Vec splat(float x) { return x - Vec{}; }

// ---- loads and stores ----------------------------------------------------------------------------------------------
ASSAY_INLINE Vec load_vec(const float* p) { return *reinterpret_cast<const VecAnywhere*>(p); }
// g++ 12 splits these two conversions into halves on AVX-512. (Masks that take all: without one, its header sets off
// the warning of uninitialized values.)
ASSAY_INLINE BitVec widen(HalfBits h) {
#if defined(__AVX512F__)
  return reinterpret_cast<BitVec>(_mm512_maskz_cvtepu16_epi32(0xffff, reinterpret_cast<__m256i>(h)));
#else
  return __builtin_convertvector(h, BitVec);
#endif
}
ASSAY_INLINE HalfBits narrow(BitVec u) {
#if defined(__AVX512F__)
  return reinterpret_cast<HalfBits>(_mm512_maskz_cvtepi32_epi16(0xffff, reinterpret_cast<__m512i>(u)));
#else
  return __builtin_convertvector(u, HalfBits);
#endif
}
ASSAY_INLINE Vec load_vec(const bf16* p) {
  return reinterpret_cast<Vec>(widen(*reinterpret_cast<const HalfBitsAnywhere*>(p)) << 16);
}
ASSAY_INLINE void store_vec(float* p, Vec x) { *reinterpret_cast<VecAnywhere*>(p) = x; }
// Round to nearest, ties to even; NaN stays NaN. The processor's own conversion takes numbers below 2^-126 for 0.
ASSAY_INLINE void store_vec(bf16* p, Vec x) {
#if defined(__AVX512BF16__)
  *reinterpret_cast<HalfBitsAnywhere*>(p) = reinterpret_cast<HalfBits>(_mm512_cvtneps_pbh(x));
#else
  const BitVec u = reinterpret_cast<BitVec>(x);
  const BitVec rounded = u + 0x7fffu + ((u >> 16) & 1u);
  const BitVec kept = x == x ? rounded : (u | 0x400000u);
  *reinterpret_cast<HalfBitsAnywhere*>(p) = narrow(kept >> 16);
#endif
}

struct Whole {
  static constexpr int count = lanes;
};
struct Part {
  int count;
};
template <class T>
ASSAY_INLINE Vec load_span(const T* p, Whole, float = 0.0f) {
  return load_vec(p);
}
// The lanes past the span hold `rest`.
template <class T>
ASSAY_INLINE Vec load_span(const T* p, Part span, float rest = 0.0f) {
  alignas(sizeof(Vec)) float lane[lanes];
  for (int i = 0; i < lanes; ++i) lane[i] = rest;
  for (int i = 0; i < span.count; ++i) lane[i] = load(p + i);
  return load_vec(lane);
}
template <class T>
ASSAY_INLINE void store_span(T* p, Vec x, Whole) {
  store_vec(p, x);
}
template <class T>
ASSAY_INLINE void store_span(T* p, Vec x, Part span) {
  alignas(sizeof(Vec)) float lane[lanes];
  store_vec(lane, x);
  for (int i = 0; i < span.count; ++i) store(p + i, lane[i]);
}
// The vector with `rest` in the lanes past the span.
ASSAY_INLINE Vec only(Vec x, Whole, float) { return x; }
ASSAY_INLINE Vec only(Vec x, Part span, float rest) {
  IntVec lane;
  for (int i = 0; i < lanes; ++i) lane[i] = i;
  return lane < span.count ? x : splat(rest);
}
// body(index, span) over [0, n).
template <class Body>
ASSAY_INLINE void each(int64_t n, Body body) {
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(i, Whole{});
  if (i < n) body(i, Part{int(n - i)});
}

// ---- across lanes --------------------------------------------------------------------------------------------------
template <int distance, int... I>
ASSAY_INLINE Vec swap_lanes(Vec v, Lanes<I...>) {
  return __builtin_shufflevector(v, v, (I ^ distance)...);
}
ASSAY_INLINE Vec max_vec(Vec a, Vec b) { return a > b ? a : b; }
ASSAY_INLINE float sum_lanes(Vec v) {
  if constexpr (lanes > 8) v += swap_lanes<8 % lanes>(v, AllLanes{});
  if constexpr (lanes > 4) v += swap_lanes<4 % lanes>(v, AllLanes{});
  v += swap_lanes<2>(v, AllLanes{});
  v += swap_lanes<1>(v, AllLanes{});
  return v[0];
}
ASSAY_INLINE float max_lanes(Vec v) {
  if constexpr (lanes > 8) v = max_vec(v, swap_lanes<8 % lanes>(v, AllLanes{}));
  if constexpr (lanes > 4) v = max_vec(v, swap_lanes<4 % lanes>(v, AllLanes{}));
  v = max_vec(v, swap_lanes<2>(v, AllLanes{}));
  v = max_vec(v, swap_lanes<1>(v, AllLanes{}));
  return v[0];
}
// Sum of body(index, span) over [0, n) and over lanes. Four running sums: one would wait for each addition to finish.
template <class Body>
ASSAY_INLINE float sum_each(int64_t n, Body body) {
  Vec s0{}, s1{}, s2{}, s3{};
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 += body(i, Whole{});
    s1 += body(i + lanes, Whole{});
    s2 += body(i + 2 * lanes, Whole{});
    s3 += body(i + 3 * lanes, Whole{});
  }
  for (; i + lanes <= n; i += lanes) s0 += body(i, Whole{});
  if (i < n) s1 += body(i, Part{int(n - i)});
  return sum_lanes((s0 + s1) + (s2 + s3));
}

// ---- exponentials --------------------------------------------------------------------------------------------------
// Adding and subtracting this rounds to an integer, and leaves that integer in the low bits of the sum.
constexpr float rounding_shift = 12582912.0f;  // 1.5 * 2^23

ASSAY_INLINE Vec power_of_two(Vec shifted) {  // 2^n from n + rounding_shift, for n in [-126, 127]
  const IntVec n = reinterpret_cast<IntVec>(shifted) - int32_t(0x4b400000);
  return reinterpret_cast<Vec>((n + 127) << 23);
}

// 2^x within 2 ulp for x in [-125.5, 127]; smaller x (and -inf) give 0, larger x give 2^127, NaN stays NaN. 2^0 is
// exactly 1. The coefficients interpolate (2^f - 1) / f at six Chebyshev nodes of [-1/2, 1/2]: error 1e-8.
ASSAY_INLINE Vec exp2_vec(Vec x) {
  Vec t = x < -125.5f ? splat(-125.5f) : x;
  t = t > 127.0f ? splat(127.0f) : t;
  const Vec shifted = t + rounding_shift;
  const Vec f = t - (shifted - rounding_shift);
  Vec p = f * 1.5453163e-4f + 1.3390863e-3f;
  p = p * f + 9.6180830e-3f;
  p = p * f + 5.5503570e-2f;
  p = p * f + 0.24022651f;
  p = p * f + 0.69314718f;
  p = p * f + 1.0f;
  return x < -125.5f ? Vec{} : p * power_of_two(shifted);
}

// e^x within 2 ulp for x in [-87, 88]; smaller x (and -inf) give 0, larger x give e^88, NaN stays NaN.
ASSAY_INLINE Vec exp_vec(Vec x) {
  Vec t = x < -87.0f ? splat(-87.0f) : x;
  t = t > 88.0f ? splat(88.0f) : t;
  const Vec shifted = t * 1.44269504f + rounding_shift;
  const Vec n = shifted - rounding_shift;
  Vec r = t - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  Vec p = r * 1.3933634e-3f + 8.3691487e-3f;
  p = p * r + 4.1666467e-2f;
  p = p * r + 0.16666505f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return x < -87.0f ? Vec{} : p * power_of_two(shifted);
}

// tanh within a few ulp: the series where the other form would cancel.
ASSAY_INLINE Vec tanh_vec(Vec x) {
  const Vec x2 = x * x;
  Vec p = x2 * (62.0f / 2835.0f) - 17.0f / 315.0f;
  p = p * x2 + 2.0f / 15.0f;
  p = p * x2 - 1.0f / 3.0f;
  const Vec near = x + x * x2 * p;
  const Vec far = 1.0f - 2.0f / (1.0f + exp_vec(2.0f * x));
  return x2 < 0.0625f ? near : far;
}

}  // namespace assay::cpu::ASSAY_ISA
