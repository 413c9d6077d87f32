// assay list
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "doctor/list_command.hpp"

namespace assay::host::cli {

int list_command(const Arguments& arguments) {
  doctor::ListRequest request;
  Options options("assay list [options]", "Lists the workload plugins and the devices that this host finds.");
  options.add("json", request.json, "print JSON");
  options.add("plugin-path", request.plugin_path, "folder with plugins, searched first; may be repeated");
  if (!options.read(arguments)) return exit_ok;
  return doctor::list_plugins_and_devices(request);
}

}  // namespace assay::host::cli
