// assay new-plugin
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "plugin/new_plugin_command.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_new_plugin =
    "Writes a complete plugin project: CMakeLists.txt, a source, NAME.toml, README.md. It builds as it is, with a\n"
    "test that runs it.";

}  // namespace

int new_command(const Arguments& arguments) {
  plugin::NewPluginRequest request;
  Options options("assay new plugin NAME [options]", about_new_plugin);
  options.add("template", request.from,
              "what to begin with: c (C11 over the C border), compute (an operation of the device), cpu (a loop), cuda "
              "(a kernel), ranks (a collective), train (a model on the trainer)");
  options.add("output", request.output, "folder to write; default: ./NAME");
  options.positional("what", request.what, 2);
  if (!options.read(arguments)) return exit_ok;
  return plugin::new_plugin(request);
}

}  // namespace assay::host::cli
