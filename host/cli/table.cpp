// assay table
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "results/table_command.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_table =
    "Makes a table of the cases of one run or several. RUN is a run folder, a cases.jsonl, a summary\n"
    "bench_*.json, or a folder with several of these below it. With several runs the first column is the run.\n\n"
    "Without --columns the terminal and md show the default columns of the run's table, and of several runs also\n"
    "their differences; csv and json also have machine, device, files, revision, and each parameter and setting.";

}  // namespace

int table_command(const Arguments& arguments) {
  results::TableRequest request;
  Options options("assay table RUN [RUN ...] [options]", about_table);
  options.add("columns", request.columns,
              "names separated by commas; patterns such as 'step.*'; all; default; repeatable");
  options.add("filter", request.filter,
              "column=value, or with a list (status=ok,oom), !=, <, <=, >, >=: only the rows that match; repeatable");
  options.add("format", request.format, "terminal, md, csv or json; without it as the name of --output ends");
  options.add_json(request.format);
  options.add("output", request.output, "a .csv, .md or .json file to write in place of the terminal");
  options.positional("run", request.runs);
  if (!options.read(arguments)) return exit_ok;
  return results::make_table(request);
}

}  // namespace assay::host::cli
