// `assay collect`: the records of a batch, or of several runs, in one run.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>
#include "record/case_record.hpp"

namespace assay::host::batch {

struct CollectRequest {
  std::vector<std::string> runs;  // one that was submitted as a batch, or several
  std::vector<std::string> plugin_path;
  std::optional<std::string> output;
  bool quiet = false, json = false;
  // The text that ranks nodes, "" of records that do; for people or as JSON.
  std::function<std::string(const std::vector<record::CaseRecord>&, const std::vector<std::string>& nodes, bool json)>
      node_ranking;
};

// Returns the exit code. Throws UsageError.
int collect(const CollectRequest& request);

}  // namespace assay::host::batch
