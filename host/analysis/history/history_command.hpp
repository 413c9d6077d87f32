// `assay history`: a figure over all runs in time.
#pragma once
#include <optional>
#include <string>
#include <vector>
#include "compare/statistic_words.hpp"

namespace assay::host::history {

struct HistoryRequest {
  std::string name;  // an experiment or a workload; "": all
  std::string metric = "step", statistic = compare::word_of(compare::TestOptions().statistic);
  std::optional<std::string> since;
  std::vector<std::string> results;  // folders
  double threshold = 1;              // percent
  bool with_ab = false, json = false;
};

// Makes the index anew where it is damaged. Throws UsageError.
int show_history(const HistoryRequest& request);

}  // namespace assay::host::history
