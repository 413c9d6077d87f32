#include "measure/correlation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace assay::host::measure {
namespace {

// Each sample is `share` of the one before, and something new.
std::vector<double> series(double share, std::size_t n) {
  std::mt19937_64 random(11);
  std::normal_distribution<> normal;
  std::vector<double> x;
  for (double last = normal(random); x.size() < n; last = share * last + std::sqrt(1 - share * share) * normal(random))
    x.push_back(1000 + last);
  return x;
}

TEST(Correlation, OfKnownSeries) {
  for (const double share : {0.0, 0.5, 0.9}) {
    const Correlation c = correlation_of(series(share, 4000));
    EXPECT_NEAR(c.lag1, share, 0.05);
    const double expected = 4000 * (1 - share) / (1 + share);
    EXPECT_GT(c.effective_n, expected * 0.6) << share;
    EXPECT_LT(c.effective_n, expected * 1.4) << share;
  }
}

TEST(Correlation, WhatLastsLongerThanNeighboursIsSeen) {
  std::vector<double> x;
  std::mt19937_64 random(3);
  std::normal_distribution<> normal;
  // Noise on a slow wave: neighbours resemble each other little, and yet all of a half wave.
  for (int i = 0; i < 2000; ++i) x.push_back(100 + (i / 250 % 2 ? 0.7 : -0.7) + normal(random));
  const Correlation c = correlation_of(x);
  EXPECT_LT(c.lag1, 0.5);
  EXPECT_LT(c.effective_n, 100);
}

TEST(Correlation, OfWhatDoesNotVaryThereIsNone) {
  EXPECT_EQ(correlation_of(std::vector<double>(10, 5.0)).effective_n, 10);
  EXPECT_EQ(correlation_of(std::vector<double>{1, 2}).effective_n, 2);
  EXPECT_EQ(correlation_of({}).effective_n, 0);
  EXPECT_EQ(correlation_of(std::vector<double>{1, NAN, 3}).effective_n, 3);
}

TEST(Correlation, AlternatingSamplesAreWorthNoMoreThanTheyAre) {
  std::vector<double> x;
  for (int i = 0; i < 100; ++i) x.push_back(i % 2);
  EXPECT_EQ(correlation_of(x).effective_n, 100);
}

}  // namespace
}  // namespace assay::host::measure
