// assay submit
#include "batch/submit_command.hpp"
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "plan/dry_run.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_submit =
    "Submits experiments as a batch to Slurm, to hosts over ssh or to Kubernetes. Cases of one shape (nodes,\n"
    "ranks a node) fill shards up to the site's time limit by their budgets; each shape is one array of jobs.\n"
    "With the folder of a run it continues a submission that was cut off, or, with --resubmit, submits cases\n"
    "again.";

}  // namespace

int submit_command(const Arguments& arguments) {
  batch::SubmitRequest request;
  Options options("assay submit EXPERIMENT.toml... | RUN [options]", about_submit);
  options.add("site", request.site, "a name that `assay site` prints, or the path of a site file");
  options.add("dry-run", request.dry_run,
              "print scripts, shards, node-hours and what the cases will take; write and queue nothing");
  options.add("device", request.device,
              "with --dry-run: the device of the nodes, as for `assay plan`: h200, h100, ...");
  options.add(
      "check", request.check,
      "ask Slurm about every setting of the site, check its hosts, or ask its Kubernetes; write and queue nothing");
  options.add(
      "resubmit", request.resubmit,
      "lost,cancelled,failed,quarantined,blocked, or statuses such as unsupported: the cases of the newest batch that "
      "are so");
  options.add("set", request.set, "key=value, as for `assay run`; repeatable");
  options.add("filter", request.filter, "key=value, as for `assay run`; repeatable");
  options.add("output", request.output, "folder for results instead of [output] dir");
  options.add("plugin-path", request.plugin_path, "folder with plugins, searched first; repeatable");
  options.positional("experiment", request.experiments, -1, "submit needs an experiment file, or the folder of a run");
  if (!options.read(arguments)) return exit_ok;
  request.plan_of_batch = [&](const run::LoadedExperiment& loaded, const batch::Site& site) {
    return plan::show_batch_dry_run(loaded, site.gpus_per_node, request.device);
  };
  return batch::submit(request);
}

}  // namespace assay::host::cli
