// Runs in the formats of other programs: one row for each.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "results/tabled_runs.hpp"

namespace assay::host::exports {

struct Format {
  const char* name;  // "openmetrics"
  const char* summary;
  std::string (*write)(const std::vector<results::TabledRun>& runs);
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

}  // namespace assay::host::exports
