// assay validate
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "validate/validate_command.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_validate =
    "Checks a plugin as any host can, without knowing it. PLUGIN is a file, or a name on the plugin path;\n"
    "'PLUGIN:WORKLOAD' checks one of several workloads. Exit code 0: no error, 1: errors, 2: a wrong command line.";

}  // namespace

int validate_command(const Arguments& arguments) {
  validate::ValidateRequest request;
  Options options("assay validate PLUGIN [options]", about_validate);
  options.add("level", request.level,
              "1: what it declares; 2: also whole lives of its workloads; 3 (the default): also lives with refused and "
              "changed memory");
  options.add("all", request.all, "print each check, also those that passed or were not asked");
  options.add("json", request.json, "print JSON");
  options.add("set", request.set,
              "KEY=VALUE: a parameter of the case that is tried, as in `assay run`; may be repeated");
  options.add("device", request.device, "cpu or cuda; auto is the CPU where the workload runs on it");
  options.add("timeout", request.timeout, "seconds that each probe, a process, may take (default 60)");
  options.add("strict", request.strict, "a warning is a failure, too: exit code 1");
  options.add("in-process", request.in_process, "check in this process, for a debugger");
  options.add("plugin-path", request.plugin_path, "folder with plugins, searched first; may be repeated");
  options.positional("plugin", request.plugin, "validate needs a plugin; expected a file such as ./my_plugin.so");
  if (!options.read(arguments)) return exit_ok;
  return validate::validate_plugin(request);
}

}  // namespace assay::host::cli
