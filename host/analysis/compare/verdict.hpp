// Is B faster than A? From the samples of both sides to a ratio with its interval, and a verdict, with the limits of
// waiting and of contended runs. docs/compare.md has the reasoning and the study behind the defaults.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace assay::host::compare {

enum class Statistic { p05, lower_quartile, median, mean };  // p05: the 5th percentile
const char* statistic_name(Statistic statistic);             // "5th percentile", ...
// The figure that stands beside a statistic: that of undisturbed steps beside the mean, and the mean beside any other.
Statistic other_than(Statistic statistic);

struct TestOptions {
  double threshold = 0.02;    // two sides whose ratio lies within 1 + threshold, either way, are the same
  double confidence = 0.95;   // of the interval
  double run_to_run = 0.005;  // relative; how far single runs of one thing differ beyond what their steps show
  Statistic statistic = Statistic::mean;
  // Relative: how far apart two states of a machine may lie, in either of which a run may be as a whole. 0: it has one.
  double states = 0.1;
};

// What one run says about one metric of one case. All values are positive.
struct RunFigure {
  std::vector<double> samples;  // of the steps, in order; empty: the record keeps none
  double mean = 0;              // used where there are no samples
  std::optional<double> std;    // without it the spread of a figure without samples is not known
  std::optional<std::size_t> n;
  // The metric is scale / time where the samples are times: a rate.
  std::optional<double> scale;
  bool exact = false;               // accounted, not measured: no spread (memory)
  bool timed = false;               // a time or a rate: what else ran on the machine matters
  double waited_share = 0;          // of the time that the run wanted to compute, others had the processor
  bool shared_device = false;       // others computed on its GPU: how much that took, nobody knows
  std::optional<double> started_s;  // since any moment that all runs share
};
// Whether others took so much of a time, or of a rate, that the run's own record has a note of it.
bool is_contended(const RunFigure& run);

// How runs of two sides scatter, in logarithms: what an estimate of further runs goes by.
struct Scatter {
  double center = 0;  // of log(B / A)
  // The variance of one run of A plus one of B: as measured between runs, and as assumed however well they agree.
  double measured_variance = 0, assumed_variance = 0;
  double variance_of_floors = 0;          // what remains however many runs there are
  double room_below = 0, room_above = 0;  // by what waiting cost, the interval is longer
  std::size_t runs = 1;                   // a side, that have shown it
  double states = 0;                      // how far two states of the machine may lie apart
};

// differs: of words. differs_in_tail: not by the statistic, or for the better, but by slow steps or by undisturbed ones
// for the worse, by more than the threshold.
enum class Outcome { lower, higher, same, differs, differs_in_tail, cannot_tell };

struct TestResult {
  Outcome outcome = Outcome::cannot_tell;  // of B against A
  double value_a = 0, value_b = 0;         // the statistic; over several runs the geometric mean
  double ratio = 0;                        // B / A
  std::optional<double> low, high;         // the interval of the ratio; none when the spread is not known
  Statistic statistic = Statistic::mean;   // the one that both sides could give
  // The ratio of the other figure: of the 5th percentile, the time of a step that nothing disturbed, or of the mean
  // where the statistic is another. None where there are no samples, and of what is no time.
  std::optional<double> other_ratio;
  bool by_samples = true;              // else from the means and standard deviations in the records
  std::size_t runs_a = 0, runs_b = 0;  // that took part
  std::vector<std::string> notes;      // what a reader of the verdict should know
  // The chance of such a ratio, or one farther from 1, where the sides do not differ; none where nothing is by chance.
  std::optional<double> chance;
  // Beside "cannot tell": about so many runs a side in all, taken in turns, would give a verdict, by what these
  // runs have shown. None where more runs would not help: the spread is not known, or others use the GPU.
  std::optional<std::size_t> runs_to_settle;
  std::optional<Scatter> scatter;  // of the statistic
};

// One side of a test: its runs, at least one, and its name in the notes.
struct TestedSide {
  std::string label;
  std::vector<RunFigure> runs;
};

TestResult compare_figures(const TestedSide& a, const TestedSide& b, const TestOptions& options);

// How many runs a side, in all, would give a verdict in four of five attempts, if the sides differ by as much as now.
// `confidence` is that of faster and slower, which is higher where a comparison has many cases; "same" is by
// options.confidence. Nothing where no number up to `most_runs_to_settle` does.
inline constexpr std::size_t most_runs_to_settle = 500;
std::optional<std::size_t> runs_to_settle(const Scatter& scatter, const TestOptions& options, double confidence);
// This answers whether `runs` a side would give such a verdict.
bool settles(const Scatter& scatter, const TestOptions& options, double confidence, std::size_t runs);

// The statistic of one run's samples.
double location(std::vector<double> samples, Statistic statistic);

}  // namespace assay::host::compare
