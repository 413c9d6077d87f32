#include "compare/dependence.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay::host::compare {
namespace {

// A run too short to show its correlation is taken to have this one.
constexpr double kUnknownCorrelation = 0.95;
constexpr double kHighestCorrelation = 0.98;
constexpr double kMostRelativeError = 0.9999;
// A drift counts from so many of its standard errors on.
constexpr double kSureDrift = 2;

// The variance of the mean of n steps of such a process, as a share of that of a step.
double share_of_mean(std::size_t n, double correlation) {
  const double count = static_cast<double>(n);
  double sum = 1, power = 1;
  for (std::size_t k = 1; k < n && power > 1e-9; ++k) {
    power *= correlation;
    sum += 2 * (1 - static_cast<double>(k) / count) * power;
  }
  return sum / count;
}

// For deviations from the mean whose squares have this sum.
double correlation_of(const std::vector<double>& deviations, double squares) {
  const double n = static_cast<double>(deviations.size());
  if (n < fewest_steps_that_show_dependence) return kUnknownCorrelation;
  double products = 0;
  for (std::size_t i = 1; i < deviations.size(); ++i) products += deviations[i] * deviations[i - 1];
  const double seen = products / squares, unbiased = seen + (1 + 4 * seen) / n;
  // The standard error of a correlation; near 1 the formula would have none.
  const double error = std::sqrt(std::max(1 - unbiased * unbiased, 0.02) / n);
  return std::clamp(unbiased + error, 0.0, kHighestCorrelation);
}

// From the first step to the last, by least squares.
double drift_of(const std::vector<double>& deviations) {
  const double n = static_cast<double>(deviations.size()), middle = (n - 1) / 2;
  double products = 0;
  for (std::size_t i = 0; i < deviations.size(); ++i) products += (static_cast<double>(i) - middle) * deviations[i];
  return products / (n * (n * n - 1) / 12) * (n - 1);
}

}  // namespace

ErrorOfMean error_of_mean(const std::vector<double>& samples) {
  const double n = static_cast<double>(samples.size());
  const double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / n;
  std::vector<double> deviations;
  double squares = 0;
  for (const double x : samples) {
    deviations.push_back(x / mean - 1);
    squares += deviations.back() * deviations.back();
  }
  ErrorOfMean error;
  error.if_independent = squares / (n - 1) / n;
  if (!(squares > 0)) return error;
  const double share = share_of_mean(samples.size(), correlation_of(deviations, squares));
  error.variance = squares / n * share / (1 - share);
  error.freedom = std::max(1 / share - 1, 1.0);
  const double drift = drift_of(deviations);
  // The slope of n steps scatters by 12 times the variance of their mean.
  if (drift * drift > kSureDrift * kSureDrift * 12 * error.variance) error.variance += drift * drift / 4;
  // In logarithms. A mean that a single step makes may be off by all of itself.
  const double relative = std::min(std::sqrt(error.variance), kMostRelativeError);
  error.variance = std::log1p(-relative) * std::log1p(-relative);
  return error;
}

}  // namespace assay::host::compare
