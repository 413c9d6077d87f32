// To numbers of 8 bits (assay/compute/eight_bit.hpp has the formats).
#pragma once
#include <stdint.h>

#include "math.hpp"

namespace assay::cpu::ASSAY_ISA {

template <int mantissa_bits, int exponent_bias, uint32_t largest_bits>
struct EightBits {
  static constexpr uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
  static constexpr float power_of_two(int exponent) {
    return __builtin_bit_cast(float, uint32_t(exponent + 127) << 23);
  }
  // The smallest normal number; below it numbers are as far apart as right above it.
  static constexpr float least_normal = power_of_two(1 - exponent_bias);
  // A number whose last bit is the distance of the small ones.
  static constexpr float anchor = power_of_two(1 - exponent_bias - mantissa_bits + 23);
  static constexpr int cut = 23 - mantissa_bits;
  static constexpr uint32_t rebias = uint32_t(127 - exponent_bias) << mantissa_bits;
  static constexpr uint32_t largest = (largest_bits + rebias) << cut;  // as a float's bits

  // To nearest even; beyond the largest number it is that one. A NaN stays one.
  ASSAY_INLINE uint8_t of(float x) {
    const uint32_t all = bits_of(x), magnitude = all & 0x7fffffffu;
    // The mantissa of a normal number is cut, and rounding may carry into the exponent.
    const uint32_t normal = ((magnitude + ((1u << (cut - 1)) - 1) + (magnitude >> cut & 1u)) >> cut) - rebias;
    // A small one is rounded by being added to the anchor.
    const float size = __builtin_bit_cast(float, magnitude);
    const uint32_t small = bits_of(size + anchor) - bits_of(anchor);
    uint32_t bits = size < least_normal ? small : normal;
    bits = magnitude >= largest ? largest_bits : bits;
    bits = magnitude > 0x7f800000u ? 0x7fu : bits;
    return uint8_t(bits | (all >> 31) << 7);
  }

  // What the bits stand for. e4m3 alone has no infinity: its NaN is what follows the largest number.
  ASSAY_INLINE float value_of(uint8_t bits) {
    const uint32_t magnitude = bits & 0x7fu;
    const float small = float(magnitude) * power_of_two(1 - exponent_bias - mantissa_bits);
    const float normal = __builtin_bit_cast(float, (magnitude + rebias) << cut);
    const float size = magnitude > largest_bits            ? __builtin_nanf("")
                       : (magnitude >> mantissa_bits) == 0 ? small
                                                           : normal;
    return bits & 0x80u ? -size : size;
  }

  // For numbers up to `max_abs`, as compute::eight_bit_scale has it.
  struct Scale {
    float scale, inverse;
  };
  ASSAY_INLINE Scale scale_for(float max_abs) {
    constexpr float most = __builtin_bit_cast(float, largest);
    const float m = max_abs < 0x1p-100f ? 0x1p-100f : max_abs;
    if (!(m <= 0x1.fffffep127f)) return {__builtin_nanf(""), __builtin_nanf("")};
    const uint32_t exponent = __builtin_bit_cast(uint32_t, most / m) >> 23;
    return {__builtin_bit_cast(float, exponent << 23), __builtin_bit_cast(float, (254 - exponent) << 23)};
  }
};

// The larger magnitude, a NaN being the largest.
ASSAY_INLINE float larger_magnitude(float max_abs, float x) {
  const uint32_t a = __builtin_bit_cast(uint32_t, max_abs), b = __builtin_bit_cast(uint32_t, x) & 0x7fffffffu;
  return __builtin_bit_cast(float, a > b ? a : b);
}

using E4m3 = EightBits<3, 7, 0x7e>;
using E5m2 = EightBits<2, 15, 0x7b>;

}  // namespace assay::cpu::ASSAY_ISA
