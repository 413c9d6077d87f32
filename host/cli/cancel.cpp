// assay cancel RUN
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/batch_commands.hpp"
#include "cli/options.hpp"

namespace assay::host::cli {

int cancel_command(const Arguments& arguments) {
  const ParsedOptions options = parse_options(
      arguments, "assay cancel RUN",
      "Takes the jobs of a batch out of the queue and ends those that run. Finished cases are kept; the others are\n"
      "`lost`, and `assay submit RUN --resubmit lost` runs them.",
      boost::program_options::options_description("Options"), "run");
  if (options.help) return run::exit_ok;
  if (!options.values.count("run")) throw UsageError("cancel needs the folder of a run that was submitted as a batch");
  const std::filesystem::path run = batch_run(options.values["run"].as<std::vector<std::string>>().front());
  const batch::Submission submission = batch::read_submission(run);
  const batch::Slurm slurm;
  // Jobs are found in the queue, not by the files: a job whose number was lost is found, too, and none of another
  // user's is hit.
  std::set<std::string> jobs;
  for (const batch::QueuedJob& job : slurm.queue(submission.users))
    for (const batch::SubmittedArray& array : submission.arrays)
      if (job.is_active() && job.comment == batch::comment_of(array.id)) jobs.insert(job.array);
  if (jobs.empty()) {
    fmt::print("nothing of {} is in the queue\n", run.string());
    return run::exit_ok;
  }
  slurm.cancel({jobs.begin(), jobs.end()});
  fmt::print("cancelled: {} job{}; finished cases are kept\n", jobs.size(), jobs.size() == 1 ? "" : "s");
  return run::exit_ok;
}

}  // namespace assay::host::cli
