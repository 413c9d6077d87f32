// assay cancel
#include "batch/status_command.hpp"
#include "cli/options.hpp"
#include "common/exit_code.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_cancel =
    "Takes the jobs of a batch out of the queue and ends those that run. Finished cases are kept; the others are\n"
    "`lost`, and `assay submit RUN --resubmit lost` runs them.";

}  // namespace

int cancel_command(const Arguments& arguments) {
  std::string run;
  Options options("assay cancel RUN", about_cancel);
  options.positional("run", run, "cancel needs the folder of a run that was submitted as a batch");
  if (!options.read(arguments)) return exit_ok;
  return batch::cancel(run);
}

}  // namespace assay::host::cli
