// assay status
#include "batch/status_command.hpp"
#include "cli/options.hpp"
#include "common/exit_code.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_status =
    "Prints how a batch stands. RUN is the folder that `assay submit` printed, or that of an experiment's runs, which\n"
    "means its newest batch.";

}  // namespace

int status_command(const Arguments& arguments) {
  batch::StatusRequest request;
  Options options("assay status RUN [options]", about_status);
  options.add("watch", request.watch, "SECONDS: print again, this often, until the batch is over");
  options.add("json", request.json, "one JSON object");
  options.add("unhealthy", request.unhealthy,
              "print the nodes alone that failed the site's health check, as JSON; exit code 1 where there are any");
  options.add("all", request.all, "every case and attempt, however many they are");
  options.positional("run", request.run, "status needs the folder of a run that was submitted as a batch");
  if (!options.read(arguments)) return exit_ok;
  return batch::show_status(request);
}

}  // namespace assay::host::cli
