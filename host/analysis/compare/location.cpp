#include "compare/location.hpp"

#include "compare/dependence.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

namespace assay::host::compare {
namespace {

// So many consecutive steps may resemble each other so much that they are worth one.
constexpr double kStepsWorthOne = 5;
// From so many steps on there are some beyond the 5th percentile.
constexpr std::size_t kStepsWithATail = 40;
// Distances of a normal distribution, in standard deviations: from the 5th percentile to the quartile, and from there
// to the median.
constexpr double kTailToQuartile = 0.9704;
constexpr double kQuartileToMedian = 0.6745;
// The fewest steps that have a standard deviation: what an unknown number of them is taken for.
constexpr std::size_t kFewestWithSpread = 2;

double quantile(std::vector<double>& x, double q) {
  const double position = q * static_cast<double>(x.size() - 1);
  const auto below = x.begin() + static_cast<std::ptrdiff_t>(position);
  std::nth_element(x.begin(), below, x.end());
  const double rest = position - std::floor(position);
  return rest > 0 ? *below + rest * (*std::min_element(below + 1, x.end()) - *below) : *below;
}

// Consecutive steps resemble each other: whole stretches of them are left out, one after the other. At most twenty, at
// least five, else about as many as each has steps.
std::size_t stretches(std::size_t n) {
  if (n < 5) return n;
  return std::clamp<std::size_t>(static_cast<std::size_t>(std::sqrt(static_cast<double>(n))), 5, 20);
}

// Delete-a-group jackknife of what `figure` makes of samples.
template <class Figure>
double variance_of(const std::vector<double>& samples, const Figure& figure) {
  const std::size_t n = samples.size(), groups = stretches(n);
  std::vector<double> without;
  for (std::size_t g = 0; g < groups; ++g) {
    const auto begin = samples.begin() + static_cast<std::ptrdiff_t>(g * n / groups);
    const auto end = samples.begin() + static_cast<std::ptrdiff_t>((g + 1) * n / groups);
    std::vector<double> rest(samples.begin(), begin);
    rest.insert(rest.end(), end, samples.end());
    without.push_back(figure(rest));
  }
  const double count = static_cast<double>(groups);
  const double mean = std::accumulate(without.begin(), without.end(), 0.0) / count;
  double squares = 0;
  for (const double x : without) squares += (x - mean) * (x - mean);
  return (count - 1) / count * squares;
}

double of_few_steps(double deviation, std::size_t n) {
  return deviation * std::sqrt(std::min(1.0, kStepsWorthOne / static_cast<double>(n)));
}

// By the steps that were disturbed least: the quarter of them, or the half where that is but a few.
double restlessness(const std::vector<double>& samples) {
  const double quartile = location(samples, Statistic::lower_quartile);
  const double deviation = samples.size() >= kStepsWithATail
                               ? std::log(quartile / location(samples, Statistic::p05)) / kTailToQuartile
                               : std::log(location(samples, Statistic::median) / quartile) / kQuartileToMedian;
  return of_few_steps(deviation, samples.size());
}

}  // namespace

double location(std::vector<double> samples, Statistic statistic) {
  if (statistic == Statistic::mean)
    return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
  return quantile(samples, statistic == Statistic::median ? 0.5 : statistic == Statistic::lower_quartile ? 0.25 : 0.05);
}

double log_location(const std::vector<double>& samples, Statistic statistic, std::size_t steps_each) {
  const std::size_t n = samples.size();
  if (steps_each < kFewestWithSpread || steps_each >= n || statistic == Statistic::mean)
    return std::log(location(samples, statistic));
  // Stretches of that many steps from the first step to the last; they overlap where the run is no multiple of it.
  const std::size_t count = (n + steps_each - 1) / steps_each;
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = samples.begin() + static_cast<std::ptrdiff_t>(i * (n - steps_each) / (count - 1));
    sum += std::log(location({begin, begin + static_cast<std::ptrdiff_t>(steps_each)}, statistic));
  }
  return sum / static_cast<double>(count);
}

std::size_t fewest_steps(const std::vector<RunFigure>& a, const std::vector<RunFigure>& b) {
  std::size_t fewest = 0;
  for (const auto* side : {&a, &b})
    for (const RunFigure& run : *side)
      if (const std::size_t n = run.samples.size(); n >= kFewestWithSpread && (fewest == 0 || n < fewest)) fewest = n;
  return fewest;
}

Located locate(const RunFigure& run, Statistic statistic, std::size_t steps_each) {
  Located l;
  if (run.exact) {
    l.log_value = std::log(run.mean);
  } else if (run.samples.size() >= kFewestWithSpread && statistic == Statistic::mean) {
    l.log_value = log_location(run.samples, statistic, steps_each);
    const ErrorOfMean error = error_of_mean(run.samples);
    l.variance = error.variance, l.freedom = error.freedom, l.least_variance = error.if_independent;
  } else if (run.samples.size() >= kFewestWithSpread) {
    const auto figure = [&](const std::vector<double>& of) { return log_location(of, statistic, steps_each); };
    l.log_value = figure(run.samples);
    l.variance = l.least_variance = variance_of(run.samples, figure);
    l.freedom = static_cast<double>(stretches(run.samples.size()) - 1);
    l.restless = restlessness(run.samples);
  } else {
    l.log_value = std::log(run.samples.empty() ? run.mean : run.samples.front());
    const std::size_t n = run.n.value_or(kFewestWithSpread);
    l.spread_known = run.samples.empty() && run.std && n >= kFewestWithSpread;
    if (l.spread_known) {
      const double cv = *run.std / run.mean;
      l.variance = l.least_variance = cv * cv / static_cast<double>(n);
      l.freedom = static_cast<double>(n - 1);
      l.restless = of_few_steps(cv, n);
    }
  }
  if (run.scale) l.log_value = std::log(*run.scale) - l.log_value;
  return l;
}

double locate_alone(const RunFigure& run, Statistic statistic, std::size_t steps_each) {
  if (run.exact || run.samples.size() < kFewestWithSpread) return locate(run, statistic, steps_each).log_value;
  const double value = log_location(run.samples, statistic, steps_each);
  return run.scale ? std::log(*run.scale) - value : value;
}

Located locate_tail(const RunFigure& run, std::size_t steps_each) {
  Located l;
  if (run.samples.size() < kFewestWithSpread) {
    l.spread_known = false;
    return l;
  }
  const auto tail = [steps_each](const std::vector<double>& of) {
    return log_location(of, Statistic::mean, steps_each) - log_location(of, Statistic::p05, steps_each);
  };
  l.log_value = tail(run.samples);
  l.variance = l.least_variance = variance_of(run.samples, tail);
  l.freedom = static_cast<double>(stretches(run.samples.size()) - 1);
  return l;
}

}  // namespace assay::host::compare
