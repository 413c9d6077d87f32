// Prints what `assay run --dry-run` says of an experiment: which cases there are and which of them are done, how long
// they will take, their memory, the disk, and what the plugin refuses.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "run/experiment_run.hpp"
#include "run/load_experiment.hpp"

namespace assay::host::plan {

// For people, or as one JSON object in a line (docs/experiment.md). Runs nothing. Returns the exit code.
int show_dry_run(const run::LoadedExperiment& loaded, const run::RunOptions& options, bool as_json);

// The same of `assay submit --dry-run`, for nodes with this many GPUs. A machine from which jobs are submitted need not
// have the device of those on which they run: without `device` only what the plugin refuses is printed, for a device of
// the kind that the cases ask for.
int show_batch_dry_run(const run::LoadedExperiment& loaded, std::int64_t gpus_per_node,
                       const std::optional<std::string>& device);

}  // namespace assay::host::plan
