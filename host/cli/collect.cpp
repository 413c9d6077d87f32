// assay collect
#include "batch/collect_command.hpp"
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "compare/node_ranking.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_collect =
    "Brings the records of a batch's shards into the folder of its run, with tables and summary, as if one machine "
    "had\n"
    "run it: at any time, while jobs run, and again. With several folders (the parts that `assay run --shard K/N`\n"
    "leaves) it makes one run of them.";

}  // namespace

int collect_command(const Arguments& arguments) {
  batch::CollectRequest request;
  Options options("assay collect RUN | FOLDER... [options]", about_collect);
  options.add("output", request.output,
              "a .csv, .md or .json file for a view of the run; or, with several folders, a folder for results");
  options.add("plugin-path", request.plugin_path, "folder with plugins, searched first; repeatable");
  options.add("quiet", request.quiet, "print no table");
  options.add("json", request.json, "print one JSON event per line on standard output");
  options.positional("run", request.runs, -1,
                     "collect needs the folder of a run that was submitted as a batch, or of several runs");
  if (!options.read(arguments)) return exit_ok;
  request.node_ranking = compare::node_ranking_of;
  return batch::collect(request);
}

}  // namespace assay::host::cli
