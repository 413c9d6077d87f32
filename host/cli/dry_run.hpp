// Prints what `assay run --dry-run` says of an experiment: which cases there are and which of them are done, how long
// they will take, their memory, the disk, and what the plugin refuses.
#pragma once
#include "cli/load_experiment.hpp"
#include "run/experiment_run.hpp"

namespace assay::host::cli {

// For people, or as one JSON object in a line (docs/experiment.md). Runs nothing. Returns the exit code.
int show_dry_run(const LoadedExperiment& loaded, const run::RunOptions& options, bool as_json);

}  // namespace assay::host::cli
