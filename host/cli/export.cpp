// assay export
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "exports/export_command.hpp"

namespace assay::host::cli {
namespace {

const std::string about_export =
    "Writes the last record of each case of the runs in a format that other programs read. Formats:\n";

}  // namespace

int export_command(const Arguments& arguments) {
  exports::ExportRequest request;
  Options options("assay export RUN [RUN ...] --format FORMAT [options]", about_export + exports::format_list());
  options.add("format", request.format, "one of those above");
  options.add("output", request.output,
              "the file to write, whole or not at all, or the folder; without it the standard output");
  options.positional("run", request.runs, -1, "export needs a run");
  if (!options.read(arguments)) return exit_ok;
  return exports::export_runs(request);
}

}  // namespace assay::host::cli
