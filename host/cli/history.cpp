// assay history
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "history/history_command.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_history =
    "Shows a figure of each case over all runs that lie below the folders of results: a line of it in time, and\n"
    "since when it is slower or faster, with what else changed then. NAME is an experiment or a workload; without\n"
    "it all are shown. An index makes it quick, and can be deleted.";

}  // namespace

int history_command(const Arguments& arguments) {
  history::HistoryRequest request;
  std::vector<std::string> names;
  Options options("assay history [NAME] [options]", about_history);
  options.add("metric", request.metric,
              "what to follow, as for `assay compare`: step, a phase, a rate, memory, a metric, a column");
  options.add("since", request.since, "runs from a day on (2026-11-03), or of an age (30d, 4w)");
  options.add("results", request.results, "a folder of results (default: results); repeatable");
  options.add("threshold", request.threshold, "changes below this many percent count as none");
  options.add("statistic", request.statistic, compare::statistic_help);
  options.add("with-ab", request.with_ab, "also the turns of `assay ab`");
  options.add("json", request.json, "print one JSON object");
  options.positional("name", names, 1);
  if (!options.read(arguments)) return exit_ok;
  if (!names.empty()) request.name = names.front();
  return history::show_history(request);
}

}  // namespace assay::host::cli
