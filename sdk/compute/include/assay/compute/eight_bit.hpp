// Floating-point numbers of 8 bits, on the host: from their bits. The devices' kernels make them.
//
// e4m3 has four bits of exponent and three of mantissa, no infinity and one NaN, 0x7f; e5m2 has five and two, and keeps
// IEEE's infinities and NaNs (Micikevicius et al. 2022, "FP8 Formats for Deep Learning", arXiv:2209.05433).
#pragma once
#include <bit>
#include <cstdint>

namespace assay::compute {

template <int mantissa_bits, int exponent_bias, std::uint32_t largest_bits>
struct EightBit {
  // The smallest normal number is 2^least_exponent; below it numbers are as far apart as right above it.
  static constexpr int least_exponent = 1 - exponent_bias;

  static constexpr float to_float(std::uint8_t bits) noexcept {
    const std::uint32_t magnitude = bits & 0x7fU, exponent = magnitude >> mantissa_bits;
    const std::uint32_t mantissa = magnitude & ((1U << mantissa_bits) - 1);
    const std::uint32_t sign = (bits & 0x80U) << 24;
    if (magnitude > largest_bits) {
      const bool is_infinite = mantissa == 0;  // only e5m2: the code after e4m3's largest number has a mantissa
      return std::bit_cast<float>(sign | 0x7f800000U | (is_infinite ? 0U : 0x400000U));
    }
    float value = 0;
    if (exponent == 0)
      value = static_cast<float>(mantissa) * power_of_two(least_exponent - mantissa_bits);
    else
      value = std::bit_cast<float>((exponent + 127 - exponent_bias) << 23 | mantissa << (23 - mantissa_bits));
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }

  static constexpr float largest() noexcept { return to_float(largest_bits); }

 private:
  static constexpr float power_of_two(int exponent) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
  }
};

using E4m3 = EightBit<3, 7, 0x7e>;   // up to 448
using E5m2 = EightBit<2, 15, 0x7b>;  // up to 57344

// What numbers are multiplied by before they are rounded to 8 bits, and what those stand for then: the largest power of
// two that leaves `max_abs`, or 2^-100 where that is less, within `largest`. A power of two costs no bit of a
// floating-point number, and numbers with one scale become those with another without a second rounding, but for the
// smallest. Both NaN where the largest magnitude is not finite.
struct EightBitScale {
  float scale, inverse;
};
constexpr EightBitScale eight_bit_scale(float max_abs, float largest) noexcept {
  const float m = max_abs < 0x1p-100F ? 0x1p-100F : max_abs;
  if (!(m <= 0x1.fffffep127F)) return {std::bit_cast<float>(0x7fc00000U), std::bit_cast<float>(0x7fc00000U)};
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(largest / m) >> 23;  // of a positive, normal number
  return {std::bit_cast<float>(exponent << 23), std::bit_cast<float>((254 - exponent) << 23)};
}

}  // namespace assay::compute
