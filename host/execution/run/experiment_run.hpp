// Carries one experiment out: the run folder, the plan, a record for each case, the views.
#pragma once
#include <optional>

#include "experiment/experiment.hpp"
#include "results/view_file.hpp"
#include "run/run_listener.hpp"
#include "run/target.hpp"
#include "wireup/rank_source.hpp"

namespace assay::host::run {

// The Kth of N parts of a sweep. Each part is a separate run, whose folder's name says which it is.
struct SweepPart {
  std::int64_t number = 1, count = 1;
};

// Ends the name of such a part's folder: "-part-2-of-8"; "" of a whole run.
std::string suffix_of_part(const std::optional<SweepPart>& part);

struct RunOptions {
  bool resume = false;
  bool start_new = false;    // with `resume`, where the newest run is of another experiment
  bool any_machine = false;  // with `resume`: what another machine has finished counts
  bool in_process = false;
  std::optional<results::ViewFile> view_file;    // the file, beside the run folder, that gets a view of the run
  std::optional<wireup::LaunchedRank> launched;  // with other processes, which this one leads
  std::optional<SweepPart> part;                 // the experiment has the cases of this part alone
};

// Runs what is to be run and writes the views. Returns the exit code. Throws ResumeRefused, StorageError when the disk
// refuses (finished cases are kept then, too), WireupError when other processes of the launch do not come, and
// LaunchError when no process can be started to ask for the device.
int run_experiment(const experiment::Experiment& experiment, const RunTarget& target, const RunOptions& options,
                   RunListener& listener);

}  // namespace assay::host::run
