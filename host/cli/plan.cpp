// assay plan
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "plan/plan_command.hpp"
#include "plugin/device_words.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_plan =
    "Predicts each case without running it and without its device: memory by kind and whether it fits, the\n"
    "minimum time of a step, with --from an expected time, and node-hours and disk of all cases. Exit code 1: no\n"
    "case could be planned, one is refused, or one does not fit while [run] allow lacks \"oom\"; 2: a wrong\n"
    "command line or experiment; 0: otherwise.";

}  // namespace

int plan_command(const Arguments& arguments) {
  plan::PlanRequest request;
  Options options("assay plan EXPERIMENT.toml [options]", about_plan);
  options.add("device", request.device,
              "the device that is planned for: h200, h100, ..., or this machine's: " +
                  plugin::device_words_in_sentence() + " (default: as [run] device says)");
  options.add("device-file", request.device_file, "a file that describes it, which `assay describe-device` writes");
  options.add("from", request.from, "an earlier run on the same device, by which times are expected; repeatable");
  options.add("largest", request.largest, "a parameter: its largest value that fits, for each case");
  options.add("set", request.set, "key=value: change a parameter or a setting of the file (dotted names); repeatable");
  options.add("filter", request.filter, "key=value: plan only the cases that match; repeatable");
  options.add("plugin-path", request.plugin_path, "folder with plugins, searched first; repeatable");
  options.add("json", request.json, "print JSON");
  options.positional("experiment", request.experiment, "plan needs an experiment file, or the name of a workload");
  if (!options.read(arguments)) return exit_ok;
  return plan::plan_experiment(request);
}

}  // namespace assay::host::cli
