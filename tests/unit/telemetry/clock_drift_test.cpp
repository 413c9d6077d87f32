#include "telemetry/clock_drift.hpp"

#include <gtest/gtest.h>

#include <random>

namespace assay::host::telemetry {
namespace {

std::vector<ClockReading> evenly(const std::vector<double>& mhz) {
  std::vector<ClockReading> readings;
  for (const double clock : mhz) readings.push_back({0.05 * static_cast<double>(readings.size() + 1), 0.05, clock});
  return readings;
}

TEST(ClockDrift, IsTheLastThirdAgainstTheFirst) {
  const auto drift = clock_drift(evenly({1900, 1900, 1850, 1800, 1710, 1710}));
  ASSERT_TRUE(drift);
  EXPECT_DOUBLE_EQ(drift->first_mhz, 1900);
  EXPECT_DOUBLE_EQ(drift->last_mhz, 1710);
  EXPECT_NEAR(drift->change(), -0.1, 1e-12);
  EXPECT_TRUE(drift->is_drift);
  EXPECT_TRUE(clock_drift(evenly({1500, 1500, 1700, 1700, 1900, 1900}))->is_drift)
      << "clocks that rise are no steadier";
}

TEST(ClockDrift, AFewPercentAreNone) {
  EXPECT_FALSE(clock_drift(evenly({1980, 1980, 1950, 1950, 1935, 1935}))->is_drift);
  EXPECT_TRUE(clock_drift(evenly({1980, 1980, 1950, 1950, 1905, 1905}))->is_drift);
}

// At its power cap an H200 goes up and down between 1500 and 1900 MHz (results/published).
TEST(ClockDrift, ScatterAboutASteadyMeanIsNone) {
  std::mt19937 random(7);
  std::normal_distribution<double> scatter(0, 80);
  int found = 0;
  for (int window = 0; window < 500; ++window) {
    std::vector<double> mhz;
    for (int i = 0; i < 12; ++i) mhz.push_back(1750 + scatter(random));
    found += clock_drift(evenly(mhz))->is_drift ? 1 : 0;
  }
  EXPECT_LT(found, 15);
  EXPECT_TRUE(clock_drift(evenly({1900, 1850, 1930, 1880, 1700, 1690, 1720, 1680, 1500, 1530, 1490, 1510}))->is_drift);
}

TEST(ClockDrift, ReadingsCountForTheTimeThatTheyCover) {
  // Many in the first tenth of the window, as they come.
  std::vector<ClockReading> readings;
  for (int i = 1; i <= 10; ++i) readings.push_back({0.01 * i, 0.01, 1000});
  for (int i = 1; i <= 9; ++i) readings.push_back({0.1 + 0.1 * i, 0.1, 1900});
  const auto drift = clock_drift(readings);
  ASSERT_TRUE(drift);
  EXPECT_NEAR(drift->first_mhz, (0.1 * 1000 + 0.2 * 1900) / 0.3, 1);
  EXPECT_DOUBLE_EQ(drift->last_mhz, 1900);
}

TEST(ClockDrift, OfAFewReadingsNothingIsSaid) {
  EXPECT_FALSE(clock_drift({}));
  EXPECT_FALSE(clock_drift(evenly({1900, 1900, 1700, 1500, 1500})));
  // All but one in the first third of the window.
  EXPECT_FALSE(clock_drift({{1, 1, 1900}, {2, 1, 1900}, {3, 1, 1900}, {4, 1, 1900}, {5, 1, 1900}, {20, 15, 1000}}));
}

}  // namespace
}  // namespace assay::host::telemetry
