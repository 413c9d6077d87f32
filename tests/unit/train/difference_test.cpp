// What verifications compare with: nothing that is not a number may pass for a small difference.
#include <gtest/gtest.h>

#include <assay/compute/difference.hpp>
#include <assay/verification/sampling.hpp>
#include <cmath>
#include <limits>
#include <vector>

namespace assay::compute {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

double relative(const std::vector<float>& found, const std::vector<float>& expected, double scale = 0) {
  return verification::relative_difference(found, expected, scale);
}

TEST(Difference, IsRelativeToWhatIsExpected) {
  EXPECT_EQ(relative({3, 4}, {3, 4}), 0);
  EXPECT_DOUBLE_EQ(relative({3, 5}, {3, 4}), 0.2);
  EXPECT_DOUBLE_EQ(relative({0, 0}, {3, 4}), 1);
}

TEST(Difference, OfZeroIsMeasuredByTheScaleOfRounding) {
  EXPECT_EQ(relative({0, 0}, {0, 0}), 0);
  EXPECT_EQ(relative({1e-9F, 0}, {0, 0}), infinity) << "nothing says how large a rounding error may be";
  EXPECT_NEAR(relative({1e-9F, 0}, {0, 0}, 1e-3), 1e-6, 1e-12);
  EXPECT_NEAR(relative({1e-9F, 0}, {-1e-9F, 0}, 1e-3), 2e-6, 1e-12) << "two roundings of zero";
  EXPECT_DOUBLE_EQ(relative({3, 5}, {3, 4}, 1e-3), 0.2) << "where the truth is larger, the scale says nothing";
}

TEST(Difference, IsInfiniteWhereANumberIsNot) {
  for (const float odd : {NAN, INFINITY, -INFINITY})
    for (const std::size_t place : {0, 1, 2}) {
      std::vector<float> spoiled{0.9F, 0.5F, 0.01F};
      const std::vector<float> sound = spoiled;
      spoiled[place] = odd;
      EXPECT_EQ(relative(spoiled, sound), infinity) << odd;
      EXPECT_EQ(relative(sound, spoiled), infinity) << odd;
      EXPECT_EQ(relative(spoiled, spoiled), infinity) << odd << " twice is no agreement";
      EXPECT_EQ(relative(spoiled, sound, 1e30), infinity) << odd;
    }
}

TEST(Difference, OfAnotherLengthIsInfinite) {
  EXPECT_EQ(relative({1, 2}, {1, 2, 3}), infinity);
  EXPECT_EQ(relative({1, 2, 3}, {1, 2}), infinity);
  EXPECT_EQ(relative({}, {1}), infinity);
}

TEST(Worst, KeepsNotANumber) {
  Worst worst;
  for (const double difference : {0.9, not_a_number, 0.01}) worst.add(difference);
  EXPECT_TRUE(std::isnan(worst.value()));
  EXPECT_FALSE(worst.within(infinity));
}

TEST(Worst, SaysWhichItWas) {
  Worst worst;
  EXPECT_TRUE(worst.within(0));
  worst.add(0.1, 7);
  worst.add(0.3, 8);
  worst.add(0.3, 9);
  worst.add(0.2, 10);
  EXPECT_EQ(worst.value(), 0.3);
  EXPECT_EQ(worst.index(), 8u);
  EXPECT_TRUE(worst.within(0.3));
  EXPECT_FALSE(worst.within(0.29));
  worst.add(not_a_number, 11);
  worst.add(infinity, 12);
  EXPECT_EQ(worst.index(), 11u);
}

TEST(Worst, OfTwoIsNotANumberWhereOneIs) {
  EXPECT_EQ(worse(1, 2), 2);
  EXPECT_EQ(worse(2, 1), 2);
  EXPECT_TRUE(std::isnan(worse(not_a_number, 2)));
  EXPECT_TRUE(std::isnan(worse(2, not_a_number)));
}

}  // namespace
}  // namespace assay::compute
