// assay kernels
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "console/kernels_command.hpp"
#include "plan/counted_beside_plan.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_kernels =
    "Prints where the time of a step goes on the device, from a run with [profile] kernels = true: for each case,\n"
    "its step and each phase, the share of matrix products, attention and softmax, how busy the device was, and\n"
    "the longest kernel. --by counter prints bytes, operations and bound of each kernel, from a run with\n"
    "[profile] ncu = true. RUN is a run folder, a cases.jsonl or a summary bench_*.json. docs/record.md,\n"
    "\"Kernels\" and \"Counters\", explains the columns.";

}  // namespace

int kernels_command(const Arguments& arguments) {
  console::KernelsRequest request;
  Arguments plugin_path;
  Options options("assay kernels RUN [options]", about_kernels);
  options.add("by", request.by,
              "a row for each phase, class or kernel (default: phase; with --case or --top, kernel), or counter: for "
              "each\nkernel that Nsight Compute has counted (default where no case has others), or plan: for each kind "
              "of\noperation, what was counted beside what `assay plan` says that it takes");
  options.add("case", request.cases, "this case alone, by its number from 1; may be repeated");
  options.add("top", request.top, "so many classes or kernels of each phase, the longest");
  options.add("plugin-path", plugin_path, "with --by plan: folder with plugins, searched first; repeatable");
  options.add("format", request.format, "or markdown, csv, json");
  options.add_json(request.format);
  options.positional("run", request.run, "no run is given; expected a run folder");
  if (!options.read(arguments)) return exit_ok;
  request.beside_plan = [&](const auto& records) {
    return plan::counted_beside_plan(records, request.run, plugin_path);
  };
  return console::show_kernels(request);
}

}  // namespace assay::host::cli
