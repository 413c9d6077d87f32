#include "measure/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace assay::host::measure {
namespace {

TEST(Statistics, OfAKnownSample) {
  const std::vector<double> x = {9, 4, 5, 4, 5, 2, 7, 4};  // in an order without memory
  const Statistics s = summarize(x);
  EXPECT_EQ(s.n, 8u);
  EXPECT_DOUBLE_EQ(s.mean, 5.0);
  EXPECT_NEAR(s.std, 2.1380899352993950, 1e-12);  // sqrt(32 / 7)
  EXPECT_NEAR(s.cv, 0.4276179870598790, 1e-12);
  EXPECT_EQ(s.min, 2);
  EXPECT_EQ(s.max, 9);
  EXPECT_DOUBLE_EQ(s.p50, 4.5);
  EXPECT_EQ(s.correlation.effective_n, 8);
  // t(0.975, 7) = 2.364624251592785
  EXPECT_NEAR(s.ci_high - s.mean, 2.364624251592785 * 2.1380899352993950 / std::sqrt(8.0), 1e-9);
  EXPECT_NEAR(s.mean - s.ci_low, s.ci_high - s.mean, 1e-12);
}

TEST(Statistics, OneSampleHasNoSpread) {
  const std::vector<double> x = {3.5};
  const Statistics s = summarize(x);
  EXPECT_EQ(s.mean, 3.5);
  EXPECT_EQ(s.std, 0);
  EXPECT_EQ(s.p50, 3.5);
}

// The 95th percentile of ten samples would lie between the two largest of them, and be called what it is not.
TEST(Statistics, APercentileNeedsASampleBeyondIt) {
  std::vector<double> x;
  for (int i = 1; i <= 100; ++i) x.push_back(i);
  const auto of = [&](std::size_t n) { return summarize(std::span(x).first(n)); };
  EXPECT_FALSE(of(9).p90);
  EXPECT_NEAR(*of(10).p90, 9.1, 1e-12);  // position 8.1
  EXPECT_FALSE(of(19).p95);
  EXPECT_NEAR(*of(20).p95, 19.05, 1e-12);
  EXPECT_FALSE(of(99).p99);
  EXPECT_NEAR(*of(100).p99, 99.01, 1e-12);
}

TEST(Statistics, NoSamplesGiveNoFigures) {
  const Statistics s = summarize({});
  EXPECT_EQ(s.n, 0u);
  EXPECT_TRUE(std::isnan(s.mean));
  EXPECT_TRUE(std::isnan(s.p50));
  EXPECT_FALSE(s.p95);
}

// A one-pass formula loses the spread of large, close values.
TEST(Statistics, SpreadOfLargeCloseValues) {
  const std::vector<double> x = {1e9 + 1, 1e9 + 2, 1e9 + 3};
  EXPECT_NEAR(summarize(x).std, 1.0, 1e-6);
}

TEST(RelativeError, InfiniteBelowTwoSamples) { EXPECT_TRUE(std::isinf(relative_error(std::vector<double>{5}, 0.95))); }

TEST(RelativeError, ShrinksWithSamples) {
  std::vector<double> x;
  for (int i = 0; i < 100; ++i) x.push_back(i % 2 ? 99 : 101);
  EXPECT_LT(relative_error(x, 0.95), relative_error(std::span(x).first(10), 0.95));
}

TEST(Drift, OfARamp) {
  const std::vector<double> x = {1, 1, 2, 2, 3, 3};
  EXPECT_DOUBLE_EQ(*drift(x), 1.0);  // (3 - 1) / 2
  EXPECT_FALSE(drift(std::span(x).first(5)).has_value());
}

}  // namespace
}  // namespace assay::host::measure
