// assay describe
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "validate/describe_command.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_describe =
    "Prints what a workload declares: parameters with type, default and range, phases, metrics.\n"
    "PLUGIN is a name on the plugin path, 'plugin:workload', or a path with a slash to a .so file.";

}  // namespace

int describe_command(const Arguments& arguments) {
  validate::DescribeRequest request;
  Options options("assay describe PLUGIN [options]", about_describe);
  options.add("json", request.json, "print JSON");
  options.add("plugin-path", request.plugin_path, "folder with plugins, searched first; may be repeated");
  options.positional("plugin", request.plugin, "describe needs the name of a plugin; 'assay list' shows them");
  if (!options.read(arguments)) return exit_ok;
  return validate::describe(request);
}

}  // namespace assay::host::cli
