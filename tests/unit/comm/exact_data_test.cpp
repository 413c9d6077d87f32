#include <gtest/gtest.h>
#include <assay/comm/exact_data.hpp>
#include <cmath>
#include <cstring>
#include <string>

namespace assay::comm {
namespace {

using compute::DType;

constexpr DType dtypes[] = {DType::f32, DType::bf16, DType::f16};

float round_trip(DType dtype, std::int32_t value) {
  const std::uint32_t bits = bits_of(dtype, value);
  std::byte bytes[4];
  std::memcpy(bytes, &bits, sizeof bytes);
  return value_of(dtype, bytes);
}

TEST(ExactData, EveryIntegerUpToTheLimitKeepsItsValue) {
  for (const DType dtype : dtypes) {
    const std::int32_t limit = largest_integer(dtype);
    for (std::int32_t v = 0; v <= limit; v += limit > 4096 ? 4093 : 1)
      for (const std::int32_t value : {v, -v})
        ASSERT_EQ(round_trip(dtype, value), static_cast<float>(value)) << name_of(dtype);
    EXPECT_EQ(round_trip(dtype, limit), static_cast<float>(limit));
  }
  EXPECT_EQ(largest_integer(DType::bf16), 256);
  EXPECT_EQ(largest_integer(DType::f16), 2048);
}

TEST(ExactData, HalfPrecisionAsIeeeHasIt) {
  EXPECT_EQ(bits_of(DType::f16, 1), 0x3c00u);
  EXPECT_EQ(bits_of(DType::f16, -2), 0xc000u);
  EXPECT_EQ(bits_of(DType::f16, 2047), 0x67ffu);
  const auto value = [](std::uint16_t bits) {
    std::byte bytes[2];
    std::memcpy(bytes, &bits, sizeof bytes);
    return value_of(DType::f16, bytes);
  };
  EXPECT_EQ(value(0x0001), std::ldexp(1.0F, -24));  // the smallest subnormal
  EXPECT_EQ(value(0x7bff), 65504.0F);
  EXPECT_EQ(value(0xfc00), -INFINITY);
  EXPECT_TRUE(std::isnan(value(0xffff)));
}

// In whatever order: every partial sum is at most the sum of magnitudes.
TEST(ExactData, NoPartialSumLeavesTheDtype) {
  for (const DType dtype : dtypes)
    for (const Reduction reduction : {Reduction::sum, Reduction::average})
      for (const std::int32_t ranks : {1, 2, 3, 6, 48, 256}) {
        if (ranks == 256 && dtype != DType::bf16) continue;  // its limit
        const ExactData data(dtype, reduction, ranks);
        std::vector<std::int64_t> magnitude(static_cast<std::size_t>(ExactData::period));
        std::vector<std::int64_t> sum(magnitude.size());
        for (std::int32_t rank = 0; rank < ranks; ++rank) {
          const auto sent = data.sent_by(rank);
          for (std::size_t i = 0; i < sent.size(); ++i) magnitude[i] += std::abs(sent[i]), sum[i] += sent[i];
        }
        const auto reduced = data.reduced();
        std::int64_t other_than_zero = 0;
        for (std::size_t i = 0; i < sum.size(); ++i) {
          ASSERT_LE(magnitude[i], largest_integer(dtype)) << name_of(dtype) << ", " << ranks << " ranks";
          ASSERT_EQ(reduced[i] * (reduction == Reduction::average ? ranks : 1), sum[i]);
          other_than_zero += reduced[i] != 0 ? 1 : 0;
        }
        EXPECT_GT(other_than_zero, ExactData::period / 4) << name_of(dtype) << ", " << ranks << " ranks";
      }
}

TEST(ExactData, MaximaComeFromEveryRankAndBothSigns) {
  const ExactData data(DType::f32, Reduction::max, 2);
  const auto first = data.sent_by(0), second = data.sent_by(1), reduced = data.reduced();
  int of_first = 0, negative = 0;
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    ASSERT_EQ(reduced[i], std::max(first[i], second[i]));
    of_first += reduced[i] == first[i] ? 1 : 0, negative += reduced[i] < 0 ? 1 : 0;
  }
  EXPECT_GT(of_first, ExactData::period / 3);
  EXPECT_LT(of_first, ExactData::period * 2 / 3);
  EXPECT_GT(negative, ExactData::period / 8);
}

TEST(ExactData, AWholePeriodLiesBetweenPositionsThatLookAlike) {
  const auto sent = ExactData(DType::bf16, Reduction::sum, 2).sent_by(0);
  for (const std::size_t shift : {1u, 2u, 64u, 1024u, 4096u, 32768u}) {
    std::size_t same = 0;
    for (std::size_t i = 0; i < sent.size(); ++i) same += sent[i] == sent[(i + shift) % sent.size()] ? 1 : 0;
    EXPECT_LT(same, sent.size() / 50) << shift;
  }
}

TEST(ExactData, AToleranceOnlyWhereALibraryMayRound) {
  EXPECT_EQ(ExactData(DType::bf16, Reduction::sum, 6).tolerance(), 0);
  EXPECT_EQ(ExactData(DType::bf16, Reduction::average, 4).tolerance(), 0);
  const double tolerance = ExactData(DType::bf16, Reduction::average, 6).tolerance();
  EXPECT_GT(tolerance, 0);
  EXPECT_LT(tolerance, 0.5);  // the nearest other result is 1 away
  EXPECT_LT(ExactData(DType::f32, Reduction::average, 6).tolerance(), 1e-5);
}

TEST(ExactData, AveragesThatTheDtypeCannotHoldAreUnsupported) {
  try {
    ExactData(DType::bf16, Reduction::average, 257);
    FAIL() << "accepted";
  } catch (const assay::Error& e) {
    EXPECT_EQ(e.status(), ASSAY_UNSUPPORTED);
  }
  EXPECT_NO_THROW(ExactData(DType::bf16, Reduction::sum, 1000));
}

}  // namespace
}  // namespace assay::comm
