// Asks all checks of a plugin, each probe in a separate process: what crashes or hangs is a finding of the check
// that was being asked.
#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "common/usage_error.hpp"
#include "validate/report.hpp"

namespace assay::host::validate {

struct Request {
  std::filesystem::path file;
  std::string workload;                        // "": all of them
  int level = highest_level;                   // up to which
  std::string device = "auto";                 // "cpu", "cuda"; auto: the CPU where the workload runs on it
  std::vector<std::string> set;                // "key=value": parameters of the case
  std::chrono::milliseconds deadline{60'000};  // of each process
  bool in_process = false;                     // in this one, for a debugger: the first crash is the end
  std::function<void(const std::string&)> tell_progress = [](const std::string&) {};
};

// A mistake in what was requested: a parameter that there is not, a workload that there is not.
class RequestError : public UsageError {
 public:
  using UsageError::UsageError;
};

// Throws RequestError.
Report validate(const Request& request);

}  // namespace assay::host::validate
