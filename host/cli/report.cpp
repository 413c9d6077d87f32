// assay report
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "report/report_command.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_report =
    "Makes one HTML file of runs: what was run and how far to trust it, every case, plots of steps, phases,\n"
    "memory, scaling, roofline, telemetry and ranks, and the logs of what failed. With two runs or more it has\n"
    "their comparison, the first one being the baseline, with --history their cases over time. The file needs no\n"
    "server. RUN is as for 'assay compare': a run folder, a cases.jsonl, a summary bench_*.json, a folder with\n"
    "several of these below it, or runs of one side joined by commas.\n\n"
    "Of a single run folder the report is RUN/report.html, else report.html in the current folder. --format svg\n"
    "and png write a single plot, drawn by Chromium, which has to be installed.";

}  // namespace

int report_command(const Arguments& arguments) {
  report::ReportRequest request;
  Options options("assay report RUN [RUN ...] [options]", about_report);
  options.add("output,o", request.output, "the file to write; its folder is made where it is missing");
  options.add("open", request.open, "show the page with what opens HTML here");
  options.add("format", request.format, "html (the default), or svg, png: one plot; as -o ends otherwise");
  options.add("plot", request.plot,
              "which one: comparison, history, steps, distribution, phases, memory, scaling, roofline, telemetry, "
              "ranks");
  options.add("width", request.width, "of a single plot, in pixels");
  options.add("dark", request.dark, "a single plot on dark paper");
  options.add("by", request.by, "an input that varies within the run: its values are compared; repeatable");
  options.add("baseline", request.baseline, "the value of --by that is the baseline");
  options.add("across", request.across, "an input in which compared cases may differ, such as execution; repeatable");
  options.add("any", request.any, "also compares cases of other numbers of ranks");
  options.add("history", request.history,
              "also the runs before and after of the same cases, and since when they are slower or faster");
  options.add("metric", request.metric, "with --history: what to follow (default: step), as for `assay history`");
  options.add("since", request.since, "with --history: runs from a day on (2026-11-03), or of an age (30d, 4w)");
  options.add("results", request.results, "with --history: a folder of results (default: results); repeatable");
  options.add("force", request.force, "replace the file, whatever it is");
  options.positional("run", request.runs);
  if (!options.read(arguments)) return exit_ok;
  return report::make_report(request);
}

}  // namespace assay::host::cli
