#include "measure/correlation.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace assay::host::measure {
namespace {

constexpr std::size_t fewest_samples = 3;
constexpr double largest_share = 0.99;     // of the sample before: beyond it no number of samples would be enough
constexpr std::size_t largest_lag = 1000;  // bounds the work, and tau at about twice as many samples

class Series {
 public:
  explicit Series(std::span<const double> samples)
      : samples_(samples),
        mean_(std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size())),
        variance_(covariance(0)) {}

  // The sum over samples `lag` apart is divided by n, as is usual, so that the few of a large lag weigh less.
  double covariance(std::size_t lag) const {
    double sum = 0;
    for (std::size_t i = lag; i < samples_.size(); ++i) sum += (samples_[i] - mean_) * (samples_[i - lag] - mean_);
    return sum / static_cast<double>(samples_.size());
  }
  double variance() const { return variance_; }
  double lag1() const { return covariance(1) / variance_; }
  std::size_t size() const { return samples_.size(); }

 private:
  std::span<const double> samples_;
  double mean_, variance_;
};

double tau_of_neighbours(double lag1, std::size_t n) {
  const double unbiased = lag1 + (1 + 3 * lag1) / static_cast<double>(n);
  const double share = std::clamp(unbiased, 0.0, largest_share);
  return (1 + share) / (1 - share);
}

double tau_of_sequence(const Series& series) {
  const std::size_t most = std::min(series.size() / 2, largest_lag);
  double sum = 0, smallest = std::numeric_limits<double>::infinity();
  for (std::size_t lag = 0; lag + 1 < most; lag += 2) {
    const double pair = series.covariance(lag) + series.covariance(lag + 1);
    if (pair <= 0) break;
    smallest = std::min(smallest, pair);  // the true sums fall: one that rises is noise
    sum += smallest;
  }
  return 2 * sum / series.variance() - 1;
}

}  // namespace

Correlation correlation_of(std::span<const double> samples) {
  const std::size_t n = samples.size();
  const auto count = static_cast<double>(n);
  if (n < fewest_samples) return {0, count};
  const Series series(samples);
  if (!(series.variance() > 0)) return {0, count};
  const double lag1 = series.lag1();
  const double tau = std::max({1.0, tau_of_neighbours(lag1, n), tau_of_sequence(series)});
  return {lag1, std::max(2.0, count / tau)};
}

}  // namespace assay::host::measure
