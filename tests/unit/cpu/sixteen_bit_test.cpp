#include <assay/compute/sixteen_bit.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace assay::compute {
namespace {

// By the definition of a format with so many bits of exponent and mantissa.
double value_of_bits(std::uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1, exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  const double mantissa = bits & ((1 << mantissa_bits) - 1), sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa == 0 ? sign * INFINITY : NAN;
  const double whole = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  return sign * std::ldexp(whole, (exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
}

void expect_same(double found, double expected, std::uint32_t bits) {
  ASSERT_EQ(std::isnan(found), std::isnan(expected)) << std::hex << bits;
  if (std::isnan(expected)) return;
  ASSERT_EQ(found, expected) << std::hex << bits;
  ASSERT_EQ(std::signbit(found), std::signbit(expected)) << std::hex << bits;
}

TEST(SixteenBit, EveryPatternHasItsValue) {
  for (std::uint32_t i = 0; i <= 0xffff; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    expect_same(static_cast<double>(float_of_fp16(bits)), value_of_bits(bits, 5, 10), i);
    expect_same(static_cast<double>(float_of_bf16(bits)), value_of_bits(bits, 8, 7), i);
    expect_same(static_cast<double>(float_of_bf16(bf16_of_float(float_of_bf16(bits)))), value_of_bits(bits, 8, 7), i);
  }
}

TEST(SixteenBit, RoundsToNearestAndTiesToEven) {
  const auto rounded = [](std::uint32_t bits) { return bf16_of_float(std::bit_cast<float>(bits)); };
  EXPECT_EQ(rounded(0x3f800000), 0x3f80);
  EXPECT_EQ(rounded(0x3f807fff), 0x3f80);
  EXPECT_EQ(rounded(0x3f808000), 0x3f80);  // half way: the even one
  EXPECT_EQ(rounded(0x3f818000), 0x3f82);
  EXPECT_EQ(rounded(0x3f808001), 0x3f81);
  EXPECT_EQ(rounded(0x7f7fffff), 0x7f80);  // beyond the largest
  EXPECT_TRUE(std::isnan(float_of_bf16(rounded(0x7f800001)))) << "its mantissa's upper bits alone would be infinity";
}

}  // namespace
}  // namespace assay::compute
