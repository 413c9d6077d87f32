// assay import
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "imports/import_command.hpp"

namespace assay::host::cli {
namespace {

const std::string about_import =
    "Takes results of other programs as the records of a run, so that `assay compare`, `table`, `report` and\n"
    "`history` know them. What a file does not say is not in the records. Formats:\n";

}  // namespace

int import_command(const Arguments& arguments) {
  imports::ImportRequest request;
  Options options("assay import FILE [FILE ...] [options]", about_import + imports::format_list());
  options.add("format", request.format, "which it is; without it as the file looks");
  options.add("name", request.name, "what was measured, where the file does not say: all_reduce, of nccl-tests");
  options.add("experiment", request.experiment, "the name of the run's folder; otherwise by format and name");
  options.add("step", request.step,
              "METRIC=UNIT: of pytorch, which metric is the time of a step, and its unit (latency=us); repeatable");
  options.add("date", request.date,
              "when it was measured (2026-11-03); otherwise as the file says, or when it was written");
  options.add("host", request.host, "the machine");
  options.add("device", request.device, "the device's name");
  options.add("revision", request.revision, "of the source that was measured");
  options.add("again", request.again, "imports a file that a run has already, as another measurement");
  options.add("output", request.output, "the folder for results (default: results)");
  options.positional("file", request.files, -1, "import needs a file");
  if (!options.read(arguments)) return exit_ok;
  return imports::import_files(request);
}

}  // namespace assay::host::cli
