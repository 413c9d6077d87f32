// Where a figure changed over many runs in time. Whether it changed is the verdict of compare (compare/verdict.hpp) on
// the runs before and after; where to look is the largest difference of means within many stretches of the runs.
#pragma once
#include <cstddef>
#include <vector>

#include "compare/verdict.hpp"

namespace assay::host::history {

struct ChangePoint {
  std::size_t at = 0;  // the first run that is otherwise
  // Of the runs from this change to the next against those between the one before and this.
  compare::TestResult verdict;
};

struct ChangeOptions {
  // A change of less than 1% is none: over many runs an interval is narrow, and where machines differ by so much nobody
  // looks for the reason.
  compare::TestOptions test{.threshold = 0.01};
  // Among so many series each one has to hold.
  std::size_t series = 1;
};

// A change needs so many runs on either side: one run that is otherwise is an accident.
inline constexpr std::size_t least_runs_a_side = 2;

// `runs`: in the order of time. The confidence of a change is that of the options among all places where it could be,
// in all series: of a hundred histories in which nothing changes, five have a change in one of them.
std::vector<ChangePoint> find_changes(const std::vector<compare::RunFigure>& runs, const ChangeOptions& options);

}  // namespace assay::host::history
