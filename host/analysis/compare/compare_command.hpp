// `assay compare`: runs beside each other.
#pragma once
#include <optional>
#include <string>
#include <vector>
#include "compare/statistic_words.hpp"

namespace assay::host::compare {

struct CompareRequest {
  std::vector<std::string> runs;
  std::vector<std::string> metric, by, across, cost, fail_if;  // with commas, too
  std::optional<std::string> baseline;
  std::string statistic = word_of(TestOptions().statistic), format = "terminal";
  double threshold = 2, confidence = 95, run_to_run = 0.5, states = 10;  // percent
  bool side_by_side = false, group = false, any = false, explain = false;
};

// Prints the comparison. Returns the exit code, as --fail-if has it. Throws UsageError.
int compare_runs(const CompareRequest& request);

}  // namespace assay::host::compare
