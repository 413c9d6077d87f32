// assay compare
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "compare/compare_command.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_compare =
    "Compares runs, case by case: the ratio with its interval, and a verdict. The first run is the baseline. RUN is\n"
    "a run folder, a cases.jsonl, a summary bench_*.json, or a folder with several of these below it, each then a\n"
    "separate side. Commas join several runs of one side: 'assay compare a1,a2,a3 b1,b2,b3'. Take them in turns\n"
    "(a1, b1, a2, ...), so that changes of the machine affect both sides.\n\n"
    "With --by the cases of one run are the sides: 'assay compare RUN --by execution --baseline eager'. Of a\n"
    "folder with runs of several experiments an overview comes first: 'assay compare results'.";

}  // namespace

int compare_command(const Arguments& arguments) {
  compare::CompareRequest request;
  Options options("assay compare RUN [RUN ...] [options]", about_compare);
  options.add("metric,m", request.metric,
              "what to compare: step (the default), a phase, items_per_s or another rate, memory, a metric of the "
              "workload, or all; may be repeated, or several separated by commas");
  options.add("side-by-side", request.side_by_side, "all metrics in one table, without their intervals");
  options.add("by", request.by,
              "an input that varies within the run, such as execution: each of its values is a side; several separated "
              "by commas: each combination");
  options.add("baseline", request.baseline,
              "the value of --by that is the baseline, the first one otherwise; of several keys a value each, with "
              "commas");
  options.add("group", request.group, "a folder of several runs is one side of several runs");
  options.add("threshold", request.threshold, "differences up to this many percent count as the same");
  options.add("confidence", request.confidence, "percent, of the interval");
  options.add("run-to-run", request.run_to_run,
              "percent by which runs of one thing are taken to differ at least; several runs a side show whether it is "
              "more");
  options.add("statistic", request.statistic, compare::statistic_help);
  options.add("states", request.states, compare::states_help);
  options.add("across", request.across, "inputs that may differ, such as execution or context_length");
  options.add("any", request.any, "compare cases of other numbers of ranks, too");
  options.add_words("cost", request.cost,
                    "dollars per GPU and hour, one per side in their order, also with commas: adds items per dollar");
  options.add("fail-if", request.fail_if, "exit with 1 if a case is slower; also differs, cannot-tell, unmatched");
  options.add("explain", request.explain, "say how it was tested, below the tables");
  options.add("format", request.format, "or markdown, csv, json");
  options.add_json(request.format);
  options.positional("run", request.runs);
  if (!options.read(arguments)) return exit_ok;
  return compare::compare_runs(request);
}

}  // namespace assay::host::cli
