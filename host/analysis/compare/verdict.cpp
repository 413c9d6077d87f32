#include "compare/verdict.hpp"

#include "compare/ends.hpp"
#include "compare/figure_alone.hpp"
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
// From here on a time does not measure the program.
constexpr double kHopelessShare = 0.25;
// By which the mean over undisturbed steps may be more and still count as no more slow steps.
constexpr double kAsManySlowSteps = 0.002;
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
    result.notes.push_back(fmt::format("{} of {} runs of {} left out: other processes used the machine",
                                       runs.size() - kept.size(), runs.size(), side.label));
    return kept;
  }
  double most = 0;  // which the interval goes by
  for (const RunFigure& run : runs)
    if (is_contended(run)) most = std::max(most, run.waited_share);
  const bool shared = std::any_of(runs.begin(), runs.end(), [](const RunFigure& run) { return run.shared_device; });
  result.notes.push_back(
      shared
          ? fmt::format("other processes computed on the GPU of {}; repeat it when the GPU is free", side.label)
          : fmt::format("{}'s threads waited for other processes {:.0f}% of the time, {}. Rerun on a quieter machine",
                        side.label, most * 100,
                        most < kHopelessShare ? "so its interval is wider" : "and above 25% the effect is not known"));
  return runs;
}

bool have_samples(const std::vector<RunFigure>& runs) {
  return std::all_of(runs.begin(), runs.end(), [](const RunFigure& run) { return !run.samples.empty() || run.exact; });
}

double geometric_mean(const std::vector<RunFigure>& runs, Statistic statistic) {
  double sum = 0;
  for (const RunFigure& run : runs) sum += locate_alone(run, statistic);
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

// Whether "same", or the better one of faster and slower, does not stand: the other figure says that B is worse.
// `center` and `other` are log(B / A) by the two.
bool objects(Outcome outcome, Statistic statistic, double center, double other, bool is_rate, double threshold) {
  const Outcome better = is_rate ? Outcome::higher : Outcome::lower;
  if (outcome != Outcome::same && outcome != better) return false;
  // As times: more is worse.
  const double by_statistic = is_rate ? -center : center, by_other = is_rate ? -other : other;
  const bool is_by_mean = statistic == Statistic::mean;
  const double slow_steps = is_by_mean ? by_statistic - by_other : by_other - by_statistic;  // more of them in B
  if (by_other - by_statistic > threshold && by_other > threshold) return true;
  if (outcome == Outcome::same) return slow_steps > threshold && std::abs(by_other) > threshold;
  // Whoever waits for the steps, waits for their mean.
  return !is_by_mean && slow_steps > threshold && by_other > 0;
}

Scatter scatter_with(Scatter scatter, const Room& room) {
  scatter.room_below = room.below, scatter.room_above = room.above;
  return scatter;
}

// The fewest and the most that a run of both sides has.
std::pair<std::size_t, std::size_t> numbers_of_steps(const std::vector<RunFigure>& a, const std::vector<RunFigure>& b) {
  std::size_t most = 0;
  for (const auto* side : {&a, &b})
    for (const RunFigure& run : *side) most = std::max(most, run.samples.size());
  return {fewest_steps(a, b), most};
}

// Runs of many more steps are taken in parts: see locate().
void note_steps(const std::vector<RunFigure>& a, const std::vector<RunFigure>& b, TestResult& result) {
  const auto [fewest, most] = numbers_of_steps(a, b);
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
      "no interval, so no verdict: {} {}, which does not show how much {} differ by chance. Compare {}several runs a "
      "side: assay compare A1,A2,A3 B1,B2,B3",
      fmt::join(who, " and "),
      is_step ? (one ? "has a single step" : "have a single step each")
              : (one ? "has a figure without its spread" : "have figures without their spread"),
      is_step ? "steps" : "figures", is_step ? "more steps (--set measure.steps=30) or " : "");
}

// What undisturbed steps show where slow ones, which come by chance on both sides, hide it in the mean. It stands where
// the slow steps of these runs do not speak against it: the better side has no more of them.
void ask_undisturbed_steps(TestResult& result, const std::vector<RunFigure>& a, const std::vector<RunFigure>& b,
                           double mean_center, const Room& room, const TestOptions& options) {
  const Interval undisturbed = interval_of(a, b, Statistic::p05, options);
  const double distance = undisturbed.center > 0 ? undisturbed.center - room.below : -undisturbed.center - room.above;
  // A second test of the same runs: the chance of its errors counts twice, that of states is one for both tests.
  const double chance = undisturbed.chance_of(distance) + undisturbed.chance_by_errors(distance);
  if (!undisturbed.known || !(chance < 1 - options.confidence)) return;
  const bool is_lower = undisturbed.center < 0;
  const double half = undisturbed.half(options.confidence);
  const double low = undisturbed.center - half - room.below, high = undisturbed.center + half + room.above;
  if (outcome_of(low, high, std::log1p(options.threshold)) != (is_lower ? Outcome::lower : Outcome::higher)) return;
  const double slow_steps = mean_center - undisturbed.center;  // more in B
  if ((is_lower ? slow_steps : -slow_steps) > kAsManySlowSteps) return;
  result.outcome = is_lower ? Outcome::lower : Outcome::higher;
  result.chance = chance;
  result.scatter = scatter_with(scatter_of(a, b, Statistic::p05, options), room);
  result.notes.push_back(fmt::format(
      "by the {}, {:.4g} ({:.4g} to {:.4g}): slow steps hide it in the mean, and the better side has no more "
      "of them",
      statistic_name(Statistic::p05), std::exp(undisturbed.center), std::exp(low), std::exp(high)));
}

// "same" or the better verdict, to which the other figure objects: surely, or perhaps by chance.
void take_objection(TestResult& result, const TestedSide& side_a, const TestedSide& side_b,
                    const std::vector<RunFigure>& a, const std::vector<RunFigure>& b, const TestOptions& options) {
  const Interval tails = interval_of_tails(a, b, options);
  const double chance = tails.chance_of(std::abs(tails.center));
  const bool is_sure = tails.known && chance < 1 - options.confidence;
  result.outcome = is_sure ? Outcome::differs_in_tail : Outcome::cannot_tell;
  if (is_sure) result.chance = chance;
  result.scatter.reset();  // that of the statistic, which is not in doubt
  result.notes.push_back(
      fmt::format("{}/{} is {:.4g} by the {} and {:.4g} by the {}: the sides differ in their slow steps{}",
                  side_b.label, side_a.label, result.ratio, statistic_name(result.statistic), *result.other_ratio,
                  statistic_name(other_than(result.statistic)), is_sure ? "" : ", perhaps by chance"));
}

// Runs of few steps miss slow ones that come seldom, and their means do not show it: where runs of many more steps
// stand beside them, a difference holds only if undisturbed steps have it, too.
void withhold_of_other_steps(TestResult& result, const std::vector<RunFigure>& a, const std::vector<RunFigure>& b,
                             double center, const TestOptions& options) {
  if (result.outcome != Outcome::lower && result.outcome != Outcome::higher) return;
  const auto [fewest, most] = numbers_of_steps(a, b);
  if (most < kManyTimesTheSteps * fewest) return;
  const double undisturbed = center_of(a, b, Statistic::p05);
  if (undisturbed * center > 0 && std::abs(undisturbed) > std::log1p(options.threshold)) return;
  result.outcome = Outcome::cannot_tell;
  result.notes.push_back(
      fmt::format("runs of {} to {} steps differ in their slow steps alone, which the shorter ones may have missed: "
                  "give both the same measure.steps",
                  fewest, most));
}

// What so few runs would show of a machine with one state.
void note_states(TestResult& result, Interval interval, const Room& room, const TestOptions& options) {
  const double error = 1 - options.confidence;
  if (result.outcome != Outcome::cannot_tell || interval.state_chance < error) return;
  interval.states = interval.state_chance = 0;
  const double half = interval.half(options.confidence);
  const double low = interval.center - half - room.below, high = interval.center + half + room.above;
  if (outcome_of(low, high, std::log1p(options.threshold)) == Outcome::cannot_tell) return;
  const std::size_t runs = std::min(result.runs_a, result.runs_b);
  result.notes.push_back(fmt::format(
      "{} a side: two states of a machine, up to {:g}% apart, would explain the difference. If the machine has one "
      "(--states 0), the interval is {}",
      runs == 1 ? "one run" : fmt::format("{} runs", runs), options.states * 100,
      ends_text(ends_of(result.ratio, std::exp(low), std::exp(high)))));
}

}  // namespace

bool is_contended(const RunFigure& run) {
  return run.timed && (run.waited_share > kContendedShare || run.shared_device);
}

Statistic other_than(Statistic statistic) { return statistic == Statistic::mean ? Statistic::p05 : Statistic::mean; }

const char* statistic_name(Statistic statistic) {
  switch (statistic) {
    case Statistic::p05: return "5th percentile";
    case Statistic::lower_quartile: return "lower quartile";
    case Statistic::median: return "median";
    case Statistic::mean: return "mean";
  }
  return "";
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

// More runs settle whatever fewer do: every error shrinks with their number. So the answer is bracketed, and of cases
// that no number settles, the most are asked about alone.
std::optional<std::size_t> runs_to_settle(const Scatter& scatter, const TestOptions& options, double confidence) {
  constexpr std::size_t kFewestRuns = 2;
  std::size_t low = std::max(kFewestRuns, scatter.runs + 1), high = most_runs_to_settle;
  if (low > high || !settles(scatter, options, confidence, high)) return std::nullopt;
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (settles(scatter, options, confidence, middle))
      high = middle;
    else
      low = middle + 1;
  }
  return high;
}

FigureAlone figure_alone(const TestedSide& side, const TestOptions& options) {
  TestResult ignored;  // takes the notes
  const std::vector<RunFigure> runs = undisturbed(side, ignored);
  FigureAlone alone;
  alone.runs = runs.size();
  alone.by_samples = have_samples(runs);
  alone.statistic = alone.by_samples && !runs.front().scale ? options.statistic : Statistic::mean;
  alone.value = geometric_mean(runs, alone.statistic);
  return alone;
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
  // Other runs of these sides would lie as far apart too often, whatever the interval of normal errors says.
  const bool is_claim = result.outcome == Outcome::lower || result.outcome == Outcome::higher;
  if (is_claim && !(*result.chance < 1 - options.confidence)) {
    result.outcome = Outcome::cannot_tell;
    result.notes.emplace_back(
        "the runs of the sides lie among one another: dealt to two sides at random, too many would "
        "lie as far apart");
  }
  result.scatter = scatter_with(scatter_of(a, b, result.statistic, options), room);
  if (by_samples && result.statistic != Statistic::mean) note_steps(a, b, result);
  if (by_samples && result.statistic == Statistic::mean)
    withhold_of_other_steps(result, a, b, interval.center, options);
  if (by_samples && a.front().timed) {
    const double other = center_of(a, b, other_than(result.statistic));
    result.other_ratio = std::exp(other);
    if (objects(result.outcome, result.statistic, interval.center, other, is_rate, std::log1p(options.threshold))) {
      take_objection(result, side_a, side_b, a, b, options);
      return result;
    }
  }
  if (result.outcome == Outcome::cannot_tell && result.statistic == Statistic::mean && by_samples && a.front().timed &&
      !is_rate)
    ask_undisturbed_steps(result, a, b, interval.center, room, options);
  note_states(result, interval, room, options);
  if (result.outcome == Outcome::cannot_tell)
    result.runs_to_settle = runs_to_settle(*result.scatter, options, options.confidence);
  return result;
}

}  // namespace assay::host::compare
