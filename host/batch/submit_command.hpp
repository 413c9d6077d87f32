// `assay submit`: experiments as a batch on a site of any kind (site_kinds.hpp).
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>
#include "batch/site.hpp"
#include "run/load_experiment.hpp"

namespace assay::host::batch {

struct SubmitRequest {
  std::vector<std::string> experiments;  // files, or the folder of a run
  std::vector<std::string> set, filter, plugin_path;
  std::optional<std::string> site, device, resubmit, output;
  bool dry_run = false, check = false;
  // Prints what the cases will take, for a dry run. Returns the exit code.
  std::function<int(const run::LoadedExperiment&, const Site&)> plan_of_batch;
};

// Submits, shows, checks or goes on, as the request says. Returns the exit code. Throws UsageError,
// SchedulerError, StorageError.
int submit(const SubmitRequest& request);

}  // namespace assay::host::batch
