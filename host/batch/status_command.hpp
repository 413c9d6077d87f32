// `assay status` and `assay cancel`: how a batch stands, and its end.
#pragma once
#include <optional>
#include <string>

namespace assay::host::batch {

struct StatusRequest {
  std::string run;              // as batch_run() takes it
  std::optional<double> watch;  // seconds between questions to the scheduler
  bool json = false, all = false;
};

// Both throw UsageError, and return the exit code.
int show_status(const StatusRequest& request);
int cancel(const std::string& run);

}  // namespace assay::host::batch
