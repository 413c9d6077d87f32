#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference.hpp"

namespace attention {
namespace {

class AttentionError : public testing::Test {
 protected:
  AttentionError() : expected_(3, 2) {
    expected_.value = {1, 2, 0, 0, -3, 4};
    expected_.magnitude = {10, 0, 0.1};
  }
  Rows expected_;
  std::vector<float> got_{1, 2, 0, 0, -3, 4};
};

TEST_F(AttentionError, RightIsZero) { EXPECT_EQ(worst_error(got_, expected_, 0), 0); }

TEST_F(AttentionError, IsRelativeToTheTermsOfItsRow) {
  got_[0] += 0.5F;
  EXPECT_NEAR(worst_error(got_, expected_, 0), 0.05, 1e-7);
  got_[4] += 0.25F;
  EXPECT_NEAR(worst_error(got_, expected_, 0), 2.5, 1e-6);
}

TEST_F(AttentionError, ARowWithoutTermsMustBeExact) {
  got_[2] = 1e-30F;
  EXPECT_EQ(worst_error(got_, expected_, 0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(worst_error(got_, expected_, 1e-20), 0);
}

TEST_F(AttentionError, WhatIsForgivenIsTakenOff) {
  got_[0] += 0.5F;
  EXPECT_NEAR(worst_error(got_, expected_, 0.3), 0.02, 1e-7);
}

TEST_F(AttentionError, NanIsInfinitelyWrong) {
  got_[1] = NAN;
  EXPECT_EQ(worst_error(got_, expected_, 1e9), std::numeric_limits<double>::infinity());
}

TEST_F(AttentionError, TermsThatAreNotFiniteForgiveNothing) {
  got_[0] = 100;
  for (const double magnitude : {double{NAN}, double{INFINITY}}) {
    expected_.magnitude[0] = magnitude;
    EXPECT_EQ(worst_error(got_, expected_, 0), std::numeric_limits<double>::infinity()) << magnitude;
  }
}

TEST_F(AttentionError, ALostRowIsInfinitelyWrong) {
  got_.resize(4);
  EXPECT_EQ(worst_error(got_, expected_, 0), std::numeric_limits<double>::infinity());
}

TEST(AttentionRows, AreRisingAndHaveBothEnds) {
  EXPECT_EQ(spread_rows(5, 9), (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(spread_rows(9, 3), (std::vector<std::int64_t>{0, 4, 8}));
  EXPECT_EQ(spread_rows(9, 0), (std::vector<std::int64_t>{8}));
  EXPECT_EQ(spread_rows(1, 4), (std::vector<std::int64_t>{0}));
  const auto many = spread_rows(65'536, 17);
  ASSERT_EQ(many.size(), 17u);
  for (std::size_t i = 1; i < many.size(); ++i) EXPECT_LT(many[i - 1], many[i]);
}

}  // namespace
}  // namespace attention
