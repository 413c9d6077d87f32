// `assay doctor`: looks at this machine before anyone measures on it.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace assay::host::doctor {

struct DoctorRequest {
  std::vector<std::string> plugin_path;
  std::optional<std::string> output;  // the folder for results that is meant
  std::optional<std::string> root;    // stands for /
  bool json = false;
};

// Prints what it finds. Returns exit_failed where there is an error or a warning. Throws UsageError.
int examine(const DoctorRequest& request);

}  // namespace assay::host::doctor
