// What is wrong in a part of a tensor, or by a factor, must not drown in the norm of the whole; and which parts are
// looked at.
#include <gtest/gtest.h>

#include <assay/verification/block_difference.hpp>
#include <assay/verification/sampling.hpp>
#include <cmath>
#include <limits>
#include <vector>

namespace assay::train {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// 100 blocks of numbers of like size, without a pattern of 256.
std::vector<float> tensor() {
  std::vector<float> values(100 * verification::BlockDifference::block_elements);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = (i * 7 % 13 < 6 ? -1.0F : 1.0F);
  return values;
}

TEST(BlockDifference, FindsABlockThatIsMissing) {
  const std::vector<float> expected = tensor();
  std::vector<float> found = expected;
  std::fill_n(found.end() - 256, 256, 0.0F);
  const verification::BlockDifference difference(found, expected);
  EXPECT_NEAR(difference.whole(), 0.1, 1e-12) << "which 16 bits may be off by";
  EXPECT_NEAR(difference.worst_block(), 1, 1e-12);
}

TEST(BlockDifference, FindsAFactorAmongRoundings) {
  const std::vector<float> expected = tensor();
  std::vector<float> found = expected, rounded = expected;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const float noise = i * 37 % 101 < 50 ? -0.02F : 0.02F;
    rounded[i] += noise;
    found[i] = expected[i] * 1.01F + noise;
  }
  EXPECT_NEAR(verification::BlockDifference(found, expected).factor(), 0.01, 1e-3);
  EXPECT_LT(verification::BlockDifference(rounded, expected).factor(), 1e-3);
  EXPECT_LT(verification::BlockDifference(found, expected).whole(), 0.03) << "as much as the roundings alone";
}

TEST(BlockDifference, OfZeroIsMeasuredByTheScale) {
  const std::vector<float> zero(300), tiny(300, 1e-9F);
  EXPECT_EQ(verification::BlockDifference(zero, zero).whole(), 0);
  EXPECT_EQ(verification::BlockDifference(tiny, zero).whole(), infinity);
  EXPECT_NEAR(verification::BlockDifference(tiny, zero).whole(1e-3), 1e-6, 1e-9);
  EXPECT_NEAR(verification::BlockDifference(tiny, zero).worst_block(1e-3), 1e-6, 1e-9);
  EXPECT_EQ(verification::BlockDifference(tiny, zero).factor(1e-3), 0);
}

TEST(BlockDifference, IsInfiniteWhereANumberIsNot) {
  std::vector<float> expected = tensor(), found = expected;
  found[700] = NAN;
  for (const verification::BlockDifference& d :
       {verification::BlockDifference(found, expected), verification::BlockDifference(expected, found)}) {
    EXPECT_EQ(d.whole(), infinity);
    EXPECT_EQ(d.worst_block(), infinity);
    EXPECT_EQ(d.factor(), infinity);
  }
  found.resize(3);
  EXPECT_EQ(verification::BlockDifference(found, expected).whole(), infinity);
  EXPECT_EQ(verification::BlockDifference(found, expected).worst_block(), infinity);
}

TEST(BlockDifference, AddsUpInAnyPieces) {
  const std::vector<float> expected = tensor();
  std::vector<float> found = expected;
  for (std::size_t i = 0; i < found.size(); i += 100) found[i] += 0.5F;
  verification::BlockDifference pieces;
  for (std::size_t begin = 0; begin < found.size(); begin += 1000) {
    const auto end = static_cast<std::ptrdiff_t>(std::min(found.size(), begin + 1000));
    const auto first = static_cast<std::ptrdiff_t>(begin);
    pieces.add({found.begin() + first, found.begin() + end}, {expected.begin() + first, expected.begin() + end});
  }
  const verification::BlockDifference whole(found, expected);
  EXPECT_DOUBLE_EQ(pieces.whole(), whole.whole());
  EXPECT_DOUBLE_EQ(pieces.worst_block(), whole.worst_block());
}

TEST(SpreadSpans, AreWholeWhereThatIsAffordable) {
  EXPECT_EQ(compute::spread_spans(100, 100, 10), (std::vector<compute::ElementSpan>{{0, 100}}));
  EXPECT_EQ(compute::spread_spans(5, 100, 10), (std::vector<compute::ElementSpan>{{0, 5}}));
}

TEST(SpreadSpans, HaveBothEndsAndAreEven) {
  EXPECT_EQ(compute::spread_spans(100, 30, 10), (std::vector<compute::ElementSpan>{{0, 10}, {45, 10}, {90, 10}}));
  const auto few = compute::spread_spans(std::int64_t{1} << 40, 1, 256);
  ASSERT_EQ(few.size(), 2u) << "both ends at least";
  EXPECT_EQ(few[1].first + few[1].count, std::int64_t{1} << 40);
}

TEST(SampledElements, AreAllOfASmallParameterAndAShareOfALargeOne) {
  ParameterSet set({});
  set.add({{"large", {1 << 20}}});
  set.add({{"small", {100}}});
  EXPECT_EQ(verification::sampled_elements(set, 0, 1 << 18), ((1 << 18) * (std::int64_t{1} << 20)) / ((1 << 20) + 100));
  EXPECT_EQ(verification::sampled_elements(set, 1, 1 << 18), 100);
  EXPECT_EQ(verification::sampled_elements(set, 0, 1 << 21), 1 << 20);
}

}  // namespace
}  // namespace assay::train
