#include "rounding.hpp"

#include <gtest/gtest.h>
#include <assay/plugin.hpp>

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

std::string objection(const std::vector<float>& given, const std::vector<float>& stored) {
  try {
    check_stored(given, stored, DType::bf16, "term");
  } catch (const assay::Error& e) {
    return e.what();
  }
  return "";
}

TEST(CheckStored, NamesTheFirstNumberThatIsNotTheNearest) {
  EXPECT_EQ(objection({0.01F, 1.0F, NAN}, {0.010009765625F, 1.0F, NAN}), "");
  EXPECT_EQ(objection({1.0F, 3.0F}, {1.0F, 0.0F}),
            "term 1 is stored as 0.000000 in bf16, and rounded on the host it is 3.000000");
  EXPECT_NE(objection({0.01F}, {0.00994873046875F}), "") << "cut off";
  EXPECT_NE(objection({1.0F}, {NAN}), "");
  EXPECT_NE(objection({1.0F, 1.0F}, {1.0F}), "");
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

// By hand, of one lane: four columns of 17 rows, of which 16 go to the next level, and what is left over.
TEST(OrderedSum, ACascadeHasFourColumnsOfBlocksForEachLane) {
  std::vector<float> terms(17 * 4 + 3, 0.0F);
  terms[0] = 1.0F;
  const auto sum = [&](std::int64_t lanes) { return ordered_sum(terms, {.order = SumOrder::cascade, .lanes = lanes}); };
  terms[4] = terms[8] = 0x1p-24F;  // of the column of 1, in its block
  EXPECT_EQ(sum(1), 1.0F);
  terms[4] = terms[8] = 0.0F;
  terms[1] = terms[2] = 0x1p-24F;  // of other columns: added to it one after the other
  EXPECT_EQ(sum(1), 1.0F);
  terms[2] = 0.0F;
  terms[5] = 0x1p-24F;  // of one other column: together
  EXPECT_EQ(sum(1), 1.0F + 0x1p-23F);
  terms[1] = terms[5] = 0.0F;
  terms[16 * 4] = terms[17 * 4] = 0x1p-24F;  // of the last row, which level 0 has; and of what fills no row
  EXPECT_EQ(sum(1), 1.0F);
  terms[17 * 4] = 0.0F;
  EXPECT_EQ(sum(2), 1.0F);
  terms[17 * 4 + 2] =
      0x1p-24F;  // with two lanes the last term fills no vector: both go to 1 in turn, the last one first
  EXPECT_EQ(sum(2), 1.0F);
}

TEST(OrderedSum, OfACascadeIsThatOfTorch) {
  std::vector<float> terms(20000, 0.001F);
  terms[0] = 1.0F;
  const float sum = ordered_sum(terms, {.order = SumOrder::cascade, .lanes = 8});
  EXPECT_EQ(sum, 20.99900246F);
  EXPECT_EQ(ordered_sum(std::span(terms).first(7), {.order = SumOrder::cascade, .lanes = 8}),
            ordered_sum(std::span(terms).first(7), {.order = SumOrder::cascade, .lanes = 1}));
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
