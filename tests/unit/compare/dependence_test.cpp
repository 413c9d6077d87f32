#include "compare/dependence.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace assay::host::compare {
namespace {

// One up, one down.
std::vector<double> alternating(std::size_t n) {
  std::vector<double> samples;
  for (std::size_t i = 0; i < n; ++i) samples.push_back(i % 2 == 0 ? 10.1 : 9.9);
  return samples;
}

std::vector<double> growing(std::size_t n, double by) {
  std::vector<double> samples;
  for (std::size_t i = 0; i < n; ++i)
    samples.push_back(10 * (1 + by * static_cast<double>(i) / static_cast<double>(n - 1)));
  return samples;
}

TEST(Dependence, FewStepsCountAsThoughTheyWereOne) {
  const ErrorOfMean few = error_of_mean(alternating(10));
  EXPECT_GT(few.variance, 50 * few.if_independent);
  EXPECT_DOUBLE_EQ(few.freedom, 1);
  const ErrorOfMean many = error_of_mean(alternating(100));
  EXPECT_NEAR(many.variance, many.if_independent, 5e-3 * many.if_independent);
  EXPECT_NEAR(many.freedom, 99, 1e-6);
}

TEST(Dependence, StepsThatResembleOneAnotherAreWorthFewer) {
  std::vector<double> samples;
  for (int i = 0; i < 60; ++i) samples.push_back(i / 5 % 2 == 0 ? 10.1 : 9.9);
  const ErrorOfMean error = error_of_mean(samples);
  EXPECT_NEAR(error.variance / error.if_independent, 8.049, 0.02 * 8.049);
  EXPECT_NEAR(error.freedom, 7.330, 0.02 * 7.330);
}

// Squared: the variance is a quarter of the square of the drift.
TEST(Dependence, HalfOfADriftIsAnError) {
  std::vector<double> samples = growing(400, 0.1);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] += i % 2 == 0 ? 0.5 : -0.5;
  const double by = 1.0 / 10.5;  // of the mean
  const ErrorOfMean error = error_of_mean(samples);
  EXPECT_NEAR(error.variance, by * by / 4, 0.05 * by * by / 4);
}

}  // namespace
}  // namespace assay::host::compare
