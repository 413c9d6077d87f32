// Sides in, verdicts out.
#pragma once
#include "common/usage_error.hpp"
#include "compare/differences.hpp"
#include "compare/matching.hpp"
#include "compare/metric.hpp"
#include "compare/side_facts.hpp"
#include "compare/sides.hpp"
#include "compare/verdict.hpp"
#include "record/cell.hpp"

#include <optional>
#include <string>
#include <vector>

namespace assay::host::compare {

// No record of any side has a metric of that name. The text names those that there are.
class NoMetricError : public UsageError {
 public:
  using UsageError::UsageError;
};

struct ComparisonOptions {
  std::vector<std::string> metrics{"step"};  // "all": every phase, rate and metric that the records have, and memory
  TestOptions test;
  MatchRules rules;
  std::vector<double> dollars_per_gpu_hour;  // per side, or none
};

// One side's part in one case and metric.
struct Entry {
  enum class Kind { baseline, compared, refused, missing } kind = Kind::missing;
  std::string reason;                    // of a refusal
  bool failed = false;                   // refused since this side's case is not ok while the baseline's is
  std::optional<double> value;           // the statistic of the metric
  int digits = record::measured_digits;  // of the value, where it is shown
  std::optional<std::string> word;       // in its place, where the metric is a word
  std::optional<double> ratio;           // to the baseline
  // Its interval, as in Ends: one that is missing alone is open, and without both the spread is not known.
  std::optional<double> low, high;
  Outcome outcome = Outcome::cannot_tell;
  std::string verdict;  // its word; empty for the baseline
  bool worse = false;
  Statistic statistic = Statistic::mean;
  std::optional<double> other_ratio;  // as in TestResult
  bool by_samples = true;             // else from means and standard deviations
  std::size_t runs = 0;               // of this side that took part
  std::optional<double> items_per_dollar;
  std::vector<std::string> notes;
  // As in TestResult; the adjusted chance is that among all verdicts of the comparison.
  std::optional<double> chance, adjusted_chance;
  std::optional<std::size_t> runs_to_settle;
  std::optional<Scatter> scatter;
};

struct ComparedCase {
  std::string workload;
  std::vector<std::string> axis_values;  // of Comparison::axes; "" where it has none
  std::string unit;
  std::vector<Entry> entries;  // one per side, the baseline first
};

struct ComparedMetric {
  std::string name;
  Direction better = Direction::lower_is_better;
  std::vector<ComparedCase> cases;  // those of the baseline
};

struct Comparison {
  std::vector<Side> sides;
  MatchRules rules;                     // by which their cases were found
  std::vector<SideFacts> side_facts;    // one per side
  std::vector<std::string> side_notes;  // how the sides were made
  Differences differences;
  std::vector<std::string> axes;  // that distinguish the cases
  std::vector<ComparedMetric> metrics;
  std::size_t family = 0;              // measured verdicts, among which each one has to hold
  std::string item_unit;               // of items per dollar: "tokens"; "items" where workloads differ
  std::vector<std::string> unmatched;  // a line per case that only one side has
  std::vector<std::string> unknown;    // a line per side with inputs that it or the baseline does not say
};

// At least two sides. Throws NoMetricError.
Comparison compare_sides(std::vector<Side> sides, const ComparisonOptions& options);

// What `--fail-if` asks about.
struct FailIf {
  bool slower = false, cannot_tell = false, unmatched = false;
  bool differs = false;  // of words
  bool asks() const { return slower || cannot_tell || unmatched || differs; }
};
// The reasons to fail, a line each; none: all is well. A case that is not ok on one side while it is on the baseline
// is a reason to each of them but cannot_tell, and a comparison that compared nothing is one to slower.
std::vector<std::string> reasons_to_fail(const Comparison& comparison, const FailIf& fail_if);

// "size=small pass=forward", for a line of text.
std::string case_name(const Comparison& comparison, const ComparedCase& c);

}  // namespace assay::host::compare
