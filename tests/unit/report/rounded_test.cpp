#include "report/rounded.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace assay::host::report {
namespace {

TEST(Rounded, HasFiveDigitsInShortText) {
  EXPECT_EQ(rounded(6.5826863).dump(), "6.5827");
  EXPECT_EQ(rounded(0.000123456789).dump(), "0.00012346");
  EXPECT_EQ(rounded(143155.9375).dump(), "143160");
  EXPECT_EQ(rounded(128625408.0).dump(), "128630000");
  EXPECT_EQ(rounded(-2.5).dump(), "-2.5");
  EXPECT_EQ(rounded(0.0).dump(), "0");
  EXPECT_EQ(rounded(700.0).dump(), "700");
  EXPECT_EQ(rounded(99999.6).dump(), "100000");
}

TEST(Rounded, WhatIsNoNumberIsNull) {
  EXPECT_TRUE(rounded(std::numeric_limits<double>::quiet_NaN()).is_null());
  EXPECT_TRUE(rounded(std::numeric_limits<double>::infinity()).is_null());
  EXPECT_TRUE(rounded(std::optional<double>()).is_null());
}

TEST(Rounded, VerySmallAndVeryLargeNumbersAreThere) {
  EXPECT_NEAR(rounded(1.23456789e-310).get<double>(), 1.23456789e-310, 1e-312);
  EXPECT_NEAR(rounded(1.23456789e300).get<double>(), 1.2346e300, 1e290);
}

}  // namespace
}  // namespace assay::host::report
