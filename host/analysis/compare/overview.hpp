// All runs below a folder: what each one is, and which of them have cases in common.
#pragma once
#include "compare/comparison.hpp"

#include <optional>
#include <string>
#include <vector>

namespace assay::host::compare {

struct RunRow {
  std::string path;  // below the folder
  std::string experiment, workload, started, device;
  std::size_t cases = 0, ok = 0;
  std::optional<double> step_mean_ms, items_per_s;  // the mean over the cases that are ok
  std::optional<std::size_t> group;                 // in which it is compared
};

struct Overview {
  std::string folder;
  std::vector<RunRow> runs;
  // Runs that share cases, or are of one experiment and workload: two or more each, the oldest first. Not more than
  // `most_compared_runs`, the newest.
  std::vector<std::vector<std::size_t>> groups;
  std::vector<std::string> skipped;   // what is not compared, and why
  std::vector<std::string> warnings;  // torn lines and the like, for the user
};

inline constexpr std::size_t most_compared_runs = 8;

// Nothing where the argument is a run, or a folder with less than two of them, or with runs of one group alone directly
// in it: these are the sides of one comparison. Records are not kept: there may be hundreds of runs.
std::optional<Overview> overview_of(const std::string& folder);

// Reads the runs of the group again. Throws NoMetricError.
Comparison compare_group(const Overview& overview, std::size_t group, const ComparisonOptions& options);

std::string group_title(const Overview& overview, std::size_t group);  // "Comparison 1: decoder-sizes, 3 runs"

// For people; at most `width_columns` wide where the table allows it.
std::string overview_text(const Overview& overview, std::size_t width_columns);
std::string overview_markdown(const Overview& overview);
std::string overview_csv(const Overview& overview);
// `comparisons` as comparison_json() spells them.
std::string overview_json(const Overview& overview, const std::vector<std::string>& comparisons);

}  // namespace assay::host::compare
