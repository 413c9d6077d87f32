// `assay status` and `assay cancel`: how a batch stands, and its end.
#pragma once
#include <optional>
#include <string>

namespace assay::host::batch {

struct StatusRequest {
  std::string run;              // as batch_run() takes it
  std::optional<double> watch;  // seconds between questions to the scheduler
  bool json = false, all = false;
  bool unhealthy = false;  // the nodes alone that failed the health check, as JSON; exit code 1 where there are any
};

// Both throw UsageError, and return the exit code.
int show_status(const StatusRequest& request);
int cancel(const std::string& run);

}  // namespace assay::host::batch
