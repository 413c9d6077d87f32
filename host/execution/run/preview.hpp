// What a run would do with each case, without doing it: what `--dry-run` shows.
#pragma once
#include <string>
#include <vector>

#include "run/experiment_run.hpp"

namespace assay::host::run {

struct PreviewedCase {
  enum class State { pending, done, again };
  State state = State::pending;
  std::string why;  // of one that runs again: what has changed
};

struct Preview {
  std::string run_folder;   // that would be resumed; "": a new run
  std::string passed_over;  // why it is no newer one; "" where it is the newest
  // In the order of the experiment's cases.
  std::vector<PreviewedCase> cases;
};

// Of --resume. Asks the devices, since what has been finished depends on them, and writes nothing of the run. Throws
// ResumeRefused and what run_experiment() throws.
Preview preview_resumption(const experiment::Experiment& experiment, const RunTarget& target,
                           const RunOptions& options);

}  // namespace assay::host::run
