#include "compare/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

namespace assay::host::compare {
namespace {

// Above this the run's own record has a note that it was contended.
constexpr double kContendedShare = 0.05;
// Threads that wait for one another lose more than each of them waited.
constexpr double kWaitAmplification = 2.0;
// From here on a time says nothing about the program.
constexpr double kHopelessShare = 0.25;
// So many consecutive steps may resemble each other so much that they are worth one.
constexpr double kStepsWorthOne = 5;
// From so many steps on there are some beyond the 5th percentile.
constexpr std::size_t kStepsWithATail = 40;
// Of a normal distribution, in standard deviations: from the 5th percentile to the quartile, and from there to the
// median.
constexpr double kTailToQuartile = 0.9704;
constexpr double kQuartileToMedian = 0.6745;
// What remains however many runs a side has: it was another hour, the binary lies elsewhere.
constexpr double kFloorOfGroup = 0.002;
// The fewest steps that have a standard deviation: what an unknown number of them is taken for.
constexpr std::size_t kFewestWithSpread = 2;

struct Located {
  double log_value = 0;
  double variance = 0;  // of log_value, by the run's own steps
  double freedom = 1;   // degrees, of that variance
  double restless = 0;  // how far its steps, few as they are, let the run itself be off
  bool spread_known = true;
};

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

// Delete-a-group jackknife.
double variance_of_location(const std::vector<double>& samples, Statistic statistic) {
  const std::size_t n = samples.size(), groups = stretches(n);
  std::vector<double> without;
  for (std::size_t g = 0; g < groups; ++g) {
    const auto begin = samples.begin() + static_cast<std::ptrdiff_t>(g * n / groups);
    const auto end = samples.begin() + static_cast<std::ptrdiff_t>((g + 1) * n / groups);
    std::vector<double> rest(samples.begin(), begin);
    rest.insert(rest.end(), end, samples.end());
    without.push_back(std::log(location(std::move(rest), statistic)));
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

Located locate(const RunFigure& run, Statistic statistic) {
  Located l;
  if (run.exact) {
    l.log_value = std::log(run.mean);
  } else if (run.samples.size() >= kFewestWithSpread) {
    l.log_value = std::log(location(run.samples, statistic));
    l.variance = variance_of_location(run.samples, statistic);
    l.freedom = static_cast<double>(stretches(run.samples.size()) - 1);
    // By the steps that were disturbed least: the quarter of them, or the half where that is but a few.
    const double quartile = location(run.samples, Statistic::lower_quartile);
    const double deviation = run.samples.size() >= kStepsWithATail
                                 ? std::log(quartile / location(run.samples, Statistic::p05)) / kTailToQuartile
                                 : std::log(location(run.samples, Statistic::median) / quartile) / kQuartileToMedian;
    l.restless = of_few_steps(deviation, run.samples.size());
  } else {
    l.log_value = std::log(run.samples.empty() ? run.mean : run.samples.front());
    const std::size_t n = run.n.value_or(kFewestWithSpread);
    l.spread_known = run.samples.empty() && run.std && n >= kFewestWithSpread;
    if (l.spread_known) {
      const double cv = *run.std / run.mean;
      l.variance = cv * cv / static_cast<double>(n);
      l.freedom = static_cast<double>(n - 1);
      l.restless = of_few_steps(cv, n);
    }
  }
  if (run.scale) l.log_value = std::log(*run.scale) - l.log_value;
  return l;
}

struct Interval {
  double center = 0, half = 0;  // of log(B/A)
  bool known = true;
};

double mean_of(const std::vector<Located>& runs) {
  double sum = 0;
  for (const Located& run : runs) sum += run.log_value;
  return sum / static_cast<double>(runs.size());
}

double t_quantile(double freedom, double confidence) {
  constexpr double kAsGoodAsNormal = 1e6;
  const double p = 0.5 + confidence / 2;
  if (!(freedom < kAsGoodAsNormal)) return boost::math::quantile(boost::math::normal_distribution<>(), p);
  return boost::math::quantile(boost::math::students_t_distribution<>(std::max(freedom, 1.0)), p);
}

// Several runs on both sides: what runs differ by is measured.
Interval interval_of_groups(const std::vector<Located>& a, const std::vector<Located>& b, const TestOptions& options) {
  double squares = 0, variance = 0;
  for (const auto* side : {&a, &b}) {
    const double mean = mean_of(*side);
    for (const Located& run : *side) squares += (run.log_value - mean) * (run.log_value - mean);
  }
  const double freedom = static_cast<double>(a.size() + b.size() - 2);
  // Few runs may agree by chance.
  const double between = std::max(squares / freedom, options.run_to_run * options.run_to_run);
  for (const auto* side : {&a, &b}) {
    double within = 0;
    for (const Located& run : *side) within += run.variance / static_cast<double>(side->size());
    variance += std::max(between, within) / static_cast<double>(side->size());
  }
  const double half = t_quantile(freedom, options.confidence) * std::sqrt(variance + 2 * kFloorOfGroup * kFloorOfGroup);
  return {mean_of(b) - mean_of(a), half, true};
}

// A single run on a side: what runs differ by is assumed, more of it where the steps themselves are restless.
// Degrees of freedom as Welch and Satterthwaite have them, the assumed part counting as known.
Interval interval_of_single_runs(const std::vector<Located>& a, const std::vector<Located>& b,
                                 const TestOptions& options) {
  double variance = 0, per_freedom = 0;
  bool known = true;
  for (const auto* side : {&a, &b}) {
    const double share = 1.0 / static_cast<double>(side->size() * side->size());
    for (const Located& run : *side) {
      const double assumed = std::max(options.run_to_run, run.restless);
      variance += share * (run.variance + assumed * assumed);
      per_freedom += share * share * run.variance * run.variance / run.freedom;
      known = known && run.spread_known;
    }
  }
  const double freedom = per_freedom > 0 ? variance * variance / per_freedom : INFINITY;
  return {mean_of(b) - mean_of(a), t_quantile(freedom, options.confidence) * std::sqrt(variance), known};
}

Interval interval_of(const std::vector<RunFigure>& a, const std::vector<RunFigure>& b, Statistic statistic,
                     const TestOptions& options) {
  std::vector<Located> located_a, located_b;
  for (const RunFigure& run : a) located_a.push_back(locate(run, statistic));
  for (const RunFigure& run : b) located_b.push_back(locate(run, statistic));
  const auto exact = [](const RunFigure& run) { return run.exact; };
  if (std::all_of(a.begin(), a.end(), exact) && std::all_of(b.begin(), b.end(), exact))
    return {mean_of(located_b) - mean_of(located_a), 0, true};
  return a.size() > 1 && b.size() > 1 ? interval_of_groups(located_a, located_b, options)
                                      : interval_of_single_runs(located_a, located_b, options);
}

bool is_contended(const RunFigure& run) {
  return run.timed && (run.waited_share > kContendedShare || run.shared_device);
}

// In logarithms: by how much shorter the time might have been, had the run had the machine to itself.
double possible_gain(const std::vector<RunFigure>& runs) {
  double worst = 0;
  for (const RunFigure& run : runs) {
    if (!is_contended(run)) continue;
    if (run.shared_device || run.waited_share >= kHopelessShare) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, run.waited_share);
  }
  return -std::log(1 - kWaitAmplification * worst);
}

// Runs that had the machine to themselves, where a side has such; the others say little.
std::vector<RunFigure> undisturbed(const TestedSide& side, TestResult& result) {
  const std::vector<RunFigure>& runs = side.runs;
  std::vector<RunFigure> kept;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(kept), [](const RunFigure& r) { return !is_contended(r); });
  if (kept.size() == runs.size()) return runs;
  if (!kept.empty()) {
    result.notes.push_back(fmt::format("{} of {} runs of {} left out: others used the machine meanwhile",
                                       runs.size() - kept.size(), runs.size(), side.label));
    return kept;
  }
  double least = 1;
  for (const RunFigure& run : runs) least = std::min(least, run.waited_share);
  const bool shared = std::any_of(runs.begin(), runs.end(), [](const RunFigure& run) { return run.shared_device; });
  result.notes.push_back(
      shared ? fmt::format("others computed on the GPU of {} meanwhile; repeat it when it is free", side.label)
             : fmt::format("{} waited for the processor {:.0f}% of its time: the interval allows "
                           "for it; repeat it on a quieter machine",
                           side.label, least * 100));
  return runs;
}

bool have_samples(const std::vector<RunFigure>& runs) {
  return std::all_of(runs.begin(), runs.end(), [](const RunFigure& run) { return !run.samples.empty() || run.exact; });
}

double geometric_mean(const std::vector<RunFigure>& runs, Statistic statistic) {
  std::vector<Located> located;
  for (const RunFigure& run : runs) located.push_back(locate(run, statistic));
  return std::exp(mean_of(located));
}

}  // namespace

const char* statistic_name(Statistic statistic) {
  switch (statistic) {
    case Statistic::p05: return "5th percentile";
    case Statistic::lower_quartile: return "lower quartile";
    case Statistic::median: return "median";
    case Statistic::mean: return "mean";
  }
  return "";
}

double location(std::vector<double> samples, Statistic statistic) {
  if (statistic == Statistic::mean)
    return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
  return quantile(samples, statistic == Statistic::median ? 0.5 : statistic == Statistic::lower_quartile ? 0.25 : 0.05);
}

TestResult compare_figures(const TestedSide& side_a, const TestedSide& side_b, const TestOptions& options) {
  TestResult result;
  const std::vector<RunFigure> a = undisturbed(side_a, result), b = undisturbed(side_b, result);
  result.runs_a = a.size(), result.runs_b = b.size();
  const bool by_samples = result.by_samples = have_samples(a) && have_samples(b);
  result.statistic = by_samples ? options.statistic : Statistic::mean;
  result.value_a = geometric_mean(a, result.statistic), result.value_b = geometric_mean(b, result.statistic);
  const Interval interval = interval_of(a, b, result.statistic, options);
  result.ratio = std::exp(interval.center);
  if (!interval.known) {
    result.notes.emplace_back("a single figure without its spread");
    return result;
  }
  // A run that waited could have been faster, not slower. Of a rate, faster is more.
  const bool rate = a.front().scale.has_value();
  const double gain_a = possible_gain(a), gain_b = possible_gain(b);
  const double low = interval.center - interval.half - (rate ? gain_a : gain_b);
  const double high = interval.center + interval.half + (rate ? gain_b : gain_a);
  result.low = std::exp(low), result.high = std::exp(high);
  const double threshold = std::log1p(options.threshold);
  if (low >= -threshold && high <= threshold)
    result.outcome = Outcome::same;
  else if (low > 0)
    result.outcome = Outcome::higher;
  else if (high < 0)
    result.outcome = Outcome::lower;

  if (!by_samples || result.statistic == Statistic::mean || gain_a > 0 || gain_b > 0 || a.front().exact) return result;
  // Slow steps that only one side has do not show in a low percentile.
  const Interval means = interval_of(a, b, Statistic::mean, options);
  const bool means_differ = means.center - means.half > threshold || means.center + means.half < -threshold;
  if (means_differ && result.outcome == Outcome::same) {
    result.outcome = Outcome::cannot_tell;
    result.notes.push_back(
        fmt::format("the means differ (ratio {:.4g}): one side has more slow steps", std::exp(means.center)));
  }
  return result;
}

}  // namespace assay::host::compare
