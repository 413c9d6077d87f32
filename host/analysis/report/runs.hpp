// From the arguments of `assay report` to what a page is made of: the runs, and which of them are compared.
#pragma once
#include "compare/comparison.hpp"
#include "compare/split.hpp"
#include "history/series.hpp"
#include "results/tabled_runs.hpp"

#include <optional>
#include <string>
#include <vector>

namespace assay::host::report {

struct ReportedRun {
  std::string label;  // of the side that it belongs to: "A"; of several runs of a side "A1", "A2"
  std::string path;   // as given, or below what was given
  results::TabledRun table;
};

// Runs beside each other, or why they cannot be.
struct ReportedComparison {
  std::optional<compare::Comparison> comparison;
  std::string refusal;
};

// The runs that were made of the same cases over time.
struct ReportedHistory {
  history::SeriesFound found;
  history::SeriesOptions options;
};

struct ReportedRuns {
  std::vector<ReportedRun> runs;
  std::vector<ReportedComparison> comparisons;
  std::optional<ReportedHistory> history;  // where it was asked for
  compare::TestOptions test;               // of all comparisons
  std::vector<std::string> warnings;       // for the user, one line each
};

// What is compared with what.
struct ComparisonRules {
  compare::MatchRules match;
  compare::SplitRules split;  // with keys, the cases of one run are the sides
};

// Arguments as for `assay compare`: with several runs the first one is the baseline. Of a folder with runs of several
// experiments those are compared that belong together. Throws results::NoRunError where nothing given is a run, or no
// run has a record, compare::SplitError, and StorageError.
ReportedRuns read_runs(const std::vector<std::string>& given, const ComparisonRules& rules = {});

}  // namespace assay::host::report
