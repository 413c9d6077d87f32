// Where a figure changed over many runs in time. A change has to hold against two ideas of runs among which nothing
// changes: levels that resemble the ones before them, and runs that could stand in any order, however they scatter.
// docs/history.md has the methods and what they were measured to do.
#pragma once
#include <cstddef>
#include <vector>

#include "compare/verdict.hpp"

namespace assay::host::history {

struct ChangePoint {
  std::size_t at = 0;                                        // the first run after it
  std::size_t before = 0;                                    // the last run before it that is no outlier
  compare::Outcome outcome = compare::Outcome::cannot_tell;  // lower or higher
  // The ratio of the level from this change to the next to that before this change, with its interval.
  double ratio = 1, low = 1, high = 1;
};

struct ChangeOptions {
  // A change of less than 1% is not reported: over many runs an interval is narrow, and where machines differ by so
  // much nobody looks for the reason.
  double threshold = 0.01;
  // So many of a hundred series without a change report none; also that of the interval of a ratio.
  double confidence = 0.95;
  // Several series share the error that the confidence leaves: this one has a share of it.
  double share = 1;
};

// A change needs so many runs on either side: one run that is otherwise is an accident.
inline constexpr std::size_t least_runs_a_side = 2;

// `levels`: the logarithm of each run's figure, in the order of time. The same levels have the same changes.
std::vector<ChangePoint> find_changes(const std::vector<double>& levels, const ChangeOptions& options);

// The changes of several series. Where few of them change, each has to hold as if it were one of many; where many do,
// less so: the false ones are the share of the confidence's error among those reported (Benjamini and Hochberg).
std::vector<std::vector<ChangePoint>> find_changes(const std::vector<std::vector<double>>& series,
                                                   const ChangeOptions& options);

}  // namespace assay::host::history
