// `assay plan`: what the cases of an experiment will take.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace assay::host::plan {

struct PlanRequest {
  std::string experiment;  // a file
  std::vector<std::string> from, set, filter, plugin_path;
  std::optional<std::string> device, device_file, largest;
  bool json = false;
};

// Prints the plan. Returns the exit code. Throws UsageError.
int plan_experiment(const PlanRequest& request);

}  // namespace assay::host::plan
