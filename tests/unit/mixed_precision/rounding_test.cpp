#include "rounding.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace mixed_precision {
namespace {

using assay::compute::DType;
using assay::compute::SumOptions;
using assay::compute::SumOrder;

TEST(ExactSum, LosesNothingToCancellation) {
  EXPECT_EQ(exact_sum(std::vector<double>{1e100, 1.0, -1e100, 1e-30}), 1.0);
  EXPECT_EQ(exact_sum(std::vector<double>{1.0, 1e100, 1.0, -1e100}), 2.0);
  EXPECT_EQ(exact_sum(std::vector<double>{}), 0.0);
}

TEST(ExactSum, RoundsOnce) {
  EXPECT_EQ(exact_sum(std::vector<double>(10, 0.1)), 1.0);  // one after the other: 0.9999999999999999
  // Half way between two doubles, and a little more: up, where rounding twice would go to the even one below.
  EXPECT_EQ(exact_sum(std::vector<double>{1.0, 0x1p-53, 0x1p-106}), 1.0 + 0x1p-52);
  EXPECT_EQ(exact_sum(std::vector<double>{1.0, 0x1p-53, -0x1p-106}), 1.0);
}

TEST(RoundTo, Fp16) {
  EXPECT_EQ(round_to(0.01F, DType::f16), 0.01000213623046875F);
  EXPECT_EQ(round_to(65519.0F, DType::f16), 65504.0F);
  EXPECT_EQ(round_to(-65520.0F, DType::f16), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(round_to(0x1p-24F, DType::f16), 0x1p-24F);  // the smallest number
  EXPECT_EQ(round_to(0x1p-25F, DType::f16), 0.0F);      // half of it: to even
  EXPECT_EQ(round_to(0x1.8p-25F, DType::f16), 0x1p-24F);
  EXPECT_TRUE(std::isnan(round_to(NAN, DType::f16)));
}

TEST(RoundTo, Bf16TiesToEven) {
  EXPECT_EQ(round_to(0.01F, DType::bf16), 0.010009765625F);
  EXPECT_EQ(round_to(257.0F, DType::bf16), 256.0F);
  EXPECT_EQ(round_to(259.0F, DType::bf16), 260.0F);
  EXPECT_EQ(round_to(0.1F, DType::f32), 0.1F);
}

TEST(UlpAt, IsTheDistanceToTheNextNumber) {
  EXPECT_EQ(ulp_at(10.0, DType::f32), 0x1p-20);
  EXPECT_EQ(ulp_at(10.0, DType::f16), 0x1p-7);
  EXPECT_EQ(ulp_at(-10.0, DType::bf16), 0x1p-4);
  EXPECT_EQ(ulp_at(0.0, DType::f16), 0x1p-24);
}

// The orders differ in what they lose of 1 + 4 * 2^-24, where one addition at a time loses all of it.
TEST(OrderedSum, EachOrderRoundsWhereItSays) {
  const std::vector<float> terms{1.0F, 0x1p-24F, 0x1p-24F, 0x1p-24F, 0x1p-24F};
  const auto sum = [&](SumOrder order) { return ordered_sum(terms, {.order = order, .chunk = 3}); };
  EXPECT_EQ(sum(SumOrder::sequential), 1.0F);
  EXPECT_EQ(sum(SumOrder::chunked), 1.0F + 0x1p-23F);   // (1), then the two small ones of the second chunk
  EXPECT_EQ(sum(SumOrder::pairwise), 1.0F + 0x1p-22F);  // (1 + 2^-24), then 3 * 2^-24: 1.5 units, to even
  EXPECT_EQ(sum(SumOrder::compensated), 1.0F + 0x1p-22F);
}

TEST(OrderedSum, ATermIsConvertedFirstOnlyWhenAsked) {
  const std::vector<float> terms{256.0F, 1.5F};
  EXPECT_EQ(ordered_sum(terms, {.accumulator = DType::bf16}), 258.0F);
  const std::vector<float> fine{256.0F, 1.0078125F};  // 1 + 2^-7 is a bf16 number, 1 + 2^-8 is not
  EXPECT_EQ(ordered_sum(fine, {.accumulator = DType::bf16}), 258.0F);
  const std::vector<float> between{256.0F, 1.00390625F};
  EXPECT_EQ(ordered_sum(between, {.accumulator = DType::bf16}), 258.0F);
  EXPECT_EQ(ordered_sum(between, {.accumulator = DType::bf16, .upcast_terms = true}), 256.0F);
}

}  // namespace
}  // namespace mixed_precision
