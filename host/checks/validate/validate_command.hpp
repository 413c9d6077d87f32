// `assay validate`: asks of a plugin all that a host can check.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace assay::host::validate {

struct ValidateRequest {
  std::string plugin;  // a file, a name on the plugin path, or "PLUGIN:WORKLOAD"
  std::vector<std::string> plugin_path, set;
  std::optional<int> level;
  std::optional<std::string> device;
  std::optional<double> timeout;  // seconds
  bool strict = false, in_process = false, json = false, all = false;
};

// Prints the report. Returns exit_failed where there are errors. Throws UsageError.
int validate_plugin(const ValidateRequest& request);

}  // namespace assay::host::validate
