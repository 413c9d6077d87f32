#include "measure/statistics.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace assay::host::measure {
namespace {

double mean_of(std::span<const double> x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

// Two passes: the textbook one-pass formula cancels when the spread is small against the mean.
double std_of(std::span<const double> x, double mean) {
  if (x.size() < 2) return 0.0;
  double squares = 0;
  for (const double v : x) squares += (v - mean) * (v - mean);
  return std::sqrt(squares / static_cast<double>(x.size() - 1));
}

double percentile(const std::vector<double>& sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

// A percentile that about one sample in n lies beyond, or more.
std::optional<double> upper_percentile(const std::vector<double>& sorted, double q) {
  constexpr double rounding = 1e-9;
  if (static_cast<double>(sorted.size()) * (1 - q) < 1 - rounding) return std::nullopt;
  return percentile(sorted, q);
}

// Dependent samples also vary less among themselves than around the true mean: the variance is divided by what they
// have kept of it.
double half_width(double std, std::size_t n, double effective_n, double confidence) {
  if (n < 2) return std::numeric_limits<double>::infinity();
  const double count = static_cast<double>(n);
  const double variance = std * std * (count - 1) / count / (1 - 1 / effective_n);
  const boost::math::students_t distribution(effective_n - 1);
  return boost::math::quantile(distribution, 0.5 + confidence / 2) * std::sqrt(variance / effective_n);
}

}  // namespace

Statistics summarize(std::span<const double> samples, double confidence) {
  Statistics s;
  s.n = samples.size();
  s.confidence = confidence;
  if (samples.empty()) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    s.mean = s.std = s.cv = s.min = s.max = s.p50 = s.ci_low = s.ci_high = nan;
    return s;
  }
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  s.mean = mean_of(samples);
  s.std = std_of(samples, s.mean);
  s.cv = s.mean != 0 ? s.std / s.mean : 0.0;
  s.min = sorted.front(), s.max = sorted.back();
  s.p50 = percentile(sorted, 0.50), s.p90 = upper_percentile(sorted, 0.90);
  s.p95 = upper_percentile(sorted, 0.95), s.p99 = upper_percentile(sorted, 0.99);
  s.correlation = correlation_of(samples);
  const double half = samples.size() < 2 ? 0.0 : half_width(s.std, s.n, s.correlation.effective_n, confidence);
  s.ci_low = s.mean - half, s.ci_high = s.mean + half;
  return s;
}

double relative_error(std::span<const double> samples, double confidence) {
  return relative_error(samples, correlation_of(samples), confidence);
}

double relative_error(std::span<const double> samples, const Correlation& correlation, double confidence) {
  if (samples.size() < 2) return std::numeric_limits<double>::infinity();
  const double mean = mean_of(samples);
  if (mean == 0) return std::numeric_limits<double>::infinity();
  return half_width(std_of(samples, mean), samples.size(), correlation.effective_n, confidence) / std::abs(mean);
}

std::optional<double> drift(std::span<const double> samples) {
  if (samples.size() < 6) return std::nullopt;
  const std::size_t third = samples.size() / 3;
  const double mean = mean_of(samples);
  if (mean == 0) return std::nullopt;
  return (mean_of(samples.last(third)) - mean_of(samples.first(third))) / mean;
}

}  // namespace assay::host::measure
