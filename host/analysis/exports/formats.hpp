// Runs in the formats of other programs: one row for each.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "results/tabled_runs.hpp"

namespace assay::host::exports {

struct ExportedFile {
  std::string place;  // within the folder that is written: "small/20261103T102030Z-4f2a/0-heads-8/events.out..."
  std::string bytes;
};

struct Format {
  const char* name;  // "openmetrics"
  const char* summary;
  std::string (*write)(const std::vector<results::TabledRun>& runs);  // null where the format is a folder
  std::vector<ExportedFile> (*write_folder)(const std::vector<results::TabledRun>& runs);
};
std::span<const Format> all_formats();
// Throws UsageError, which names what there is.
const Format& format_of(const std::string& name);

// A text file for Prometheus (node_exporter's textfile collector, or any that reads OpenMetrics 1.0): gauges of the
// last record of each case, labelled with workload, axes, machine, device and run.
std::string openmetrics(const std::vector<results::TabledRun>& runs);
// google_benchmark_json writes a file that google-benchmark's tools/compare.py reads: a repetition for each sample of a
// step.
std::string google_benchmark_json(const std::vector<results::TabledRun>& runs);
// Lines of :::MLLOG, a run from run_start to run_stop for each case.
std::string mlperf_lines(const std::vector<results::TabledRun>& runs);
// Trace events: a process for each run, in it the cases with their stages, and the steps.
std::string chrome_trace(const std::vector<results::TabledRun>& runs);
// Scalars of each case, and a text with its parameters. The same run gives the same files: to write it once more
// doubles nothing.
std::vector<ExportedFile> tensorboard_events(const std::vector<results::TabledRun>& runs);

}  // namespace assay::host::exports
