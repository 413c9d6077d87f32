// Scalar helpers written so that GCC vectorises loops over them. Included by kernel files only (see isa.hpp): all of it
// lives in the instruction set's namespace.
#pragma once
#include <stdint.h>

#ifndef ASSAY_ISA
#error "compiled once per instruction set, with ASSAY_ISA set by the build"
#endif
#define ASSAY_INLINE static inline __attribute__((always_inline))

namespace assay::cpu::ASSAY_ISA {

typedef uint16_t bf16;  // the upper half of a float's bits

ASSAY_INLINE float bits_to_float(uint32_t u) { return __builtin_bit_cast(float, u); }
ASSAY_INLINE uint32_t float_to_bits(float f) { return __builtin_bit_cast(uint32_t, f); }

ASSAY_INLINE float load(const float* p) { return *p; }
ASSAY_INLINE float load(const bf16* p) { return bits_to_float(uint32_t(*p) << 16); }
ASSAY_INLINE void store(float* p, float x) { *p = x; }
// Round to nearest, ties to even; NaN stays NaN.
ASSAY_INLINE void store(bf16* p, float x) {
  const uint32_t u = float_to_bits(x);
  const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  *p = uint16_t((u & 0x7fffffffu) > 0x7f800000u ? ((u >> 16) | 0x40u) : rounded);
}

struct f16 {
  uint16_t bits;
};
// Shifted into place, the exponent is 112 too small: one multiplication mends it, for subnormal numbers too.
ASSAY_INLINE float load(const f16* p) {
  const uint32_t h = p->bits;
  const float scaled = bits_to_float((h & 0x7fffu) << 13) * 0x1p112f;
  const uint32_t magnitude = (h & 0x7c00u) == 0x7c00u ? (0x7f800000u | (h & 0x3ffu) << 13) : float_to_bits(scaled);
  return bits_to_float(magnitude | (h & 0x8000u) << 16);
}
// Round to nearest, ties to even; too large becomes infinite; NaN stays NaN.
ASSAY_INLINE void store(f16* p, float x) {
  const uint32_t u = float_to_bits(x);
  const uint32_t magnitude = u & 0x7fffffffu;
  // Normal: rebias, and round at bit 13. Subnormal: adding 0.5 leaves multiples of 2^-24 in the low bits.
  const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const uint32_t subnormal = float_to_bits(bits_to_float(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t h = magnitude < 0x38800000u ? subnormal : normal;
  h = magnitude >= 0x47800000u ? 0x7c00u : h;
  h = magnitude > 0x7f800000u ? 0x7e00u : h;
  p->bits = uint16_t(h | (u >> 16 & 0x8000u));
}

// e^x within about 1 ulp for x in [-87, 88]; smaller x give 0, larger x give e^88. Cody-Waite reduction to
// |r| <= ln(2)/2, then a polynomial of degree 6.
ASSAY_INLINE float exp_f32(float x) {
  const float clamped = x > 88.0f ? 88.0f : (x < -87.3f ? -87.3f : x);
  const float n = __builtin_rintf(clamped * 1.44269504088896341f);
  float r = clamped - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const float y = p * bits_to_float(uint32_t((int32_t(n) + 127) << 23));
  return x < -87.3f ? 0.0f : y;
}

// The natural logarithm of a normal, positive x, within about 1 ulp (and exact at 1): x = m 2^e with m in
// [sqrt(1/2), sqrt(2)), then the series of the inverse hyperbolic tangent.
ASSAY_INLINE float log_f32(float x) {
  const uint32_t above = float_to_bits(x) - 0x3f3504f3u;
  const float e = float(int32_t(above) >> 23);
  const float m = bits_to_float((above & 0x7fffffu) + 0x3f3504f3u);
  const float s = (m - 1.0f) / (m + 1.0f);
  const float s2 = s * s;
  float p = 1.0f / 9.0f;
  p = p * s2 + 1.0f / 7.0f;
  p = p * s2 + 1.0f / 5.0f;
  p = p * s2 + 1.0f / 3.0f;
  return e * 0.693147181f + (2.0f * s + 2.0f * s * s2 * p);
}

}  // namespace assay::cpu::ASSAY_ISA
