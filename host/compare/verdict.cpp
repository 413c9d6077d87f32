#include "compare/verdict.hpp"

#include "compare/interval.hpp"
#include "compare/location.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace assay::host::compare {
namespace {

// Above this the run's own record has a note that it was contended.
constexpr double kContendedShare = 0.05;
// Threads that wait for one another lose more than each of them waited.
constexpr double kWaitAmplification = 2.0;
// From here on a time says nothing about the program.
constexpr double kHopelessShare = 0.25;
// The means only object to a verdict: for that it is enough that they would be wrong in one of five such cases.
constexpr double kConfidenceOfMeans = 0.8;
// From so many times the steps on, a note says that the longer runs were taken in parts.
constexpr std::size_t kManyTimesTheSteps = 2;
// The number of runs is estimated so that they settle it in four of five attempts: in standard deviations of a normal
// distribution.
constexpr double kFourOfFive = 0.8416;

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

// Runs that had the machine to themselves, where a side has at least two of them; the others say little. With one of
// several left, nobody would know any more how far runs differ on a machine that is restless, as the others show.
std::vector<RunFigure> undisturbed(const TestedSide& side, TestResult& result) {
  const std::vector<RunFigure>& runs = side.runs;
  std::vector<RunFigure> kept;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(kept), [](const RunFigure& r) { return !is_contended(r); });
  if (kept.size() == runs.size()) return runs;
  if (kept.size() > 1) {
    result.notes.push_back(fmt::format("{} of {} runs of {} left out: others used the machine meanwhile",
                                       runs.size() - kept.size(), runs.size(), side.label));
    return kept;
  }
  double least = 1;
  for (const RunFigure& run : runs)
    if (is_contended(run)) least = std::min(least, run.waited_share);
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
  double sum = 0;
  for (const RunFigure& run : runs) sum += locate(run, statistic).log_value;
  return std::exp(sum / static_cast<double>(runs.size()));
}

// By what waiting cost, the interval is longer in either direction.
struct Room {
  double below = 0, above = 0;
};

Room room_of(const std::vector<RunFigure>& a, const std::vector<RunFigure>& b) {
  // A run that waited could have been faster, not slower. Of a rate, faster is more.
  const bool is_rate = a.front().scale.has_value();
  const double gain_a = possible_gain(a), gain_b = possible_gain(b);
  return is_rate ? Room{gain_a, gain_b} : Room{gain_b, gain_a};
}

Outcome outcome_of(double low, double high, double threshold) {
  if (low >= -threshold && high <= threshold) return Outcome::same;
  if (low > 0) return Outcome::higher;
  return high < 0 ? Outcome::lower : Outcome::cannot_tell;
}

// Slow steps that only one side has do not show in a low percentile: what it says does not stand against the means.
class GuardByMeans {
 public:
  GuardByMeans(const Interval& percentiles, const Interval& means, const Room& room, bool few_runs,
               const TestOptions& options)
      : percentiles_(percentiles), means_(means), room_(room), few_runs_(few_runs), options_(options) {}

  bool objects_to(Outcome outcome) const {
    if (outcome == Outcome::same) return differ_beyond_threshold();
    return (outcome == Outcome::lower || outcome == Outcome::higher) && (point_elsewhere(outcome) || fall_short());
  }

 private:
  double threshold() const { return std::log1p(options_.threshold); }

  bool differ_beyond_threshold() const {
    const double half = means_.half(kConfidenceOfMeans);
    return means_.center - half - room_.below > threshold() || means_.center + half + room_.above < -threshold();
  }

  // How far the means lie in the other direction than the outcome. Of single runs nobody knows how far the means of
  // runs scatter: theirs have to differ at least half as much, in the same direction.
  bool point_elsewhere(Outcome outcome) const {
    if (few_runs_)
      return means_.center * percentiles_.center <= 0 || 2 * std::abs(means_.center) < std::abs(percentiles_.center);
    const double by = outcome == Outcome::lower ? means_.center - room_.below : -means_.center - room_.above;
    return by > means_.half(kConfidenceOfMeans);
  }

  // They differ less than the percentiles, by more than chance, and perhaps not at all.
  bool fall_short() const {
    const double half = means_.half(options_.confidence) + std::max(room_.below, room_.above);
    const bool other_ratio = std::abs(means_.center - percentiles_.center) > half;
    const bool same_direction = means_.center * percentiles_.center > 0;
    const bool farther = same_direction && std::abs(means_.center) > std::abs(percentiles_.center);
    const bool differ_too = same_direction && std::abs(means_.center) > half;
    return other_ratio && !farther && !differ_too;
  }

  const Interval& percentiles_;
  const Interval& means_;
  Room room_;
  bool few_runs_;
  const TestOptions& options_;
};

Scatter scatter_with(Scatter scatter, const Room& room) {
  scatter.room_below = room.below, scatter.room_above = room.above;
  return scatter;
}

bool settles(const Scatter& scatter, const TestOptions& options, double confidence, std::size_t runs) {
  const Interval expected = expected_interval(scatter, runs);
  const double margin = kFourOfFive * std::sqrt(scatter.measured_variance / static_cast<double>(runs));
  const double half = expected.half(options.confidence) + margin, threshold = std::log1p(options.threshold);
  const double low = scatter.center - half - scatter.room_below, high = scatter.center + half + scatter.room_above;
  if (low >= -threshold && high <= threshold) return true;
  const double distance =
      scatter.center > 0 ? scatter.center - scatter.room_below : -scatter.center - scatter.room_above;
  return expected.chance_of(distance - margin) < 1 - confidence;
}

// Runs of many more steps are taken in parts: see locate().
void note_steps(const std::vector<RunFigure>& a, const std::vector<RunFigure>& b, TestResult& result) {
  const std::size_t fewest = fewest_steps(a, b);
  std::size_t most = 0;
  for (const auto* side : {&a, &b})
    for (const RunFigure& run : *side) most = std::max(most, run.samples.size());
  if (fewest > 0 && most >= kManyTimesTheSteps * fewest)
    result.notes.push_back(
        fmt::format("runs of {} to {} steps: the longer ones count by stretches of {} steps", fewest, most, fewest));
}

// Why there is no interval, and what to run for one.
std::string why_no_interval(const TestedSide& side_a, const TestedSide& side_b) {
  std::vector<std::string> who;
  bool is_step = true;
  for (const TestedSide* side : {&side_a, &side_b})
    for (const RunFigure& run : side->runs)
      if (!locate(run, Statistic::mean).spread_known) {
        if (who.empty() || who.back() != side->label) who.push_back(side->label);
        is_step = is_step && run.samples.size() == 1;
      }
  const bool one = who.size() == 1;
  return fmt::format(
      "no interval, and so no verdict: {} {}, which does not say how much {} differ by chance; {}several runs a side "
      "tell it: assay compare A1,A2,A3 B1,B2,B3",
      fmt::join(who, " and "),
      is_step ? (one ? "has a single step" : "have a single step each")
              : (one ? "tells a figure without its spread" : "tell figures without their spread"),
      is_step ? "steps" : "figures", is_step ? "more steps (--set measure.steps=30) or " : "");
}

// Where several runs a side show by their means that they differ by more than the threshold, it is the slow steps that
// do, and more runs would not bring the percentiles to say so.
std::optional<TestResult> sure_by_means(const TestedSide& a, const TestedSide& b, TestOptions options) {
  options.statistic = Statistic::mean;
  TestResult result = compare_figures(a, b, options);
  const double threshold = 1 + options.threshold;
  const bool is_beyond = result.low && result.high && (*result.low > threshold || *result.high < 1 / threshold);
  if (!is_beyond) return std::nullopt;
  result.notes.emplace_back("the sides differ in their slow steps, which a low percentile does not see: by the means");
  return result;
}

}  // namespace

bool is_contended(const RunFigure& run) {
  return run.timed && (run.waited_share > kContendedShare || run.shared_device);
}

const char* statistic_name(Statistic statistic) {
  switch (statistic) {
    case Statistic::p05: return "5th percentile";
    case Statistic::lower_quartile: return "lower quartile";
    case Statistic::median: return "median";
    case Statistic::mean: return "mean";
  }
  return "";
}

std::optional<std::size_t> runs_to_settle(const Scatter& scatter, const TestOptions& options, double confidence) {
  constexpr std::size_t kFewestRuns = 2;
  for (std::size_t runs = std::max(kFewestRuns, scatter.runs + 1); runs <= most_runs_to_settle; ++runs)
    if (settles(scatter, options, confidence, runs)) return runs;
  return std::nullopt;
}

TestResult compare_figures(const TestedSide& side_a, const TestedSide& side_b, const TestOptions& options) {
  TestResult result;
  const std::vector<RunFigure> a = undisturbed(side_a, result), b = undisturbed(side_b, result);
  result.runs_a = a.size(), result.runs_b = b.size();
  const bool by_samples = result.by_samples = have_samples(a) && have_samples(b);
  // What a rate is worth, slow steps decide as well.
  const bool is_rate = a.front().scale.has_value();
  result.statistic = by_samples && !is_rate ? options.statistic : Statistic::mean;
  result.value_a = geometric_mean(a, result.statistic), result.value_b = geometric_mean(b, result.statistic);
  const Interval interval = interval_of(a, b, result.statistic, options);
  result.ratio = std::exp(interval.center);
  if (!interval.known) {
    result.notes.push_back(why_no_interval(side_a, side_b));
    return result;
  }
  const Room room = room_of(a, b);
  const double half = interval.half(options.confidence);
  const double low = interval.center - half - room.below, high = interval.center + half + room.above;
  result.low = std::exp(low), result.high = std::exp(high);
  result.outcome = outcome_of(low, high, std::log1p(options.threshold));
  if (a.front().exact) return result;

  result.chance =
      interval.chance_of(interval.center > 0 ? interval.center - room.below : -interval.center - room.above);
  result.scatter = scatter_with(scatter_of(a, b, result.statistic, options), room);
  const bool by_percentile = by_samples && result.statistic != Statistic::mean;
  if (by_percentile) note_steps(a, b, result);
  if (result.outcome == Outcome::cannot_tell)
    result.runs_to_settle = runs_to_settle(*result.scatter, options, options.confidence);
  if (!by_percentile) return result;
  const Interval means = interval_of(a, b, Statistic::mean, options);
  if (!GuardByMeans(interval, means, room, a.size() < 2 || b.size() < 2, options).objects_to(result.outcome))
    return result;
  if (result.outcome == Outcome::same && a.size() > 1 && b.size() > 1)
    if (auto by_means = sure_by_means(side_a, side_b, options)) return *by_means;
  result.notes.push_back(fmt::format(
      "the means differ from what the {} says (ratio {:.4g}): one side has more slow steps; --statistic mean "
      "compares the means",
      statistic_name(result.statistic), std::exp(means.center)));
  result.outcome = Outcome::cannot_tell;
  result.objected = true;
  result.runs_to_settle =
      runs_to_settle(scatter_with(scatter_of(a, b, Statistic::mean, options), room), options, options.confidence);
  return result;
}

}  // namespace assay::host::compare
