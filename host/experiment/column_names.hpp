// The names of columns that no workload decides (docs/record.md, "Column names"): for the check of an experiment and
// for the cells of a table.
#pragma once
#include <algorithm>
#include <array>
#include <string_view>

namespace assay::host {

using ColumnName = std::string_view;

// These come before anything that a workload or an experiment names likewise, and the last two groups after it.
inline constexpr std::array<ColumnName, 8> core_columns{"status", "reason", "index", "hash",
                                                        "verify", "drift",  "notes", "device"};
inline constexpr std::array<ColumnName, 9> place_columns{
    "device.name", "stage", "phase", "rank", "workload", "started", "wall_s.case", "wall_s.setup", "wall_s.measure"};
inline constexpr std::array<ColumnName, 6> rank_columns{
    "ranks", "spread", "straggler.rank", "straggler.share", "by_rank.step_mean_ms.min", "by_rank.step_mean_ms.max"};
inline constexpr std::array<ColumnName, 17> phase_statistics{
    "mean_ms", "std_ms",    "cv",         "cv_percent", "min_ms", "max_ms",       "p50_ms", "p90_ms", "p95_ms",
    "p99_ms",  "ci_low_ms", "ci_high_ms", "mean_s",     "std_s",  "host_mean_ms", "share",  "n"};
inline constexpr std::array<ColumnName, 5> step_metric_statistics{"mean", "std", "min", "max", "last"};
inline constexpr std::array<ColumnName, 4> rate_columns{"gflop_per_s", "tflop_per_s", "gbytes_per_s", "items_per_s"};
inline constexpr std::array<ColumnName, 3> measured_columns{"memory.peak_mib", "memory.process_peak_mib",
                                                            "step.device_mean_ms"};
// What the device told of itself over the measured window.
inline constexpr std::array<ColumnName, 9> telemetry_columns{"utilisation_percent",
                                                             "validity",
                                                             "validity.text",
                                                             "telemetry.samples",
                                                             "telemetry.energy_j",
                                                             "telemetry.throttle",
                                                             "telemetry.foreign_processes",
                                                             "telemetry.foreign_memory_mib",
                                                             "telemetry.utilisation_span_s"};
inline constexpr std::array<ColumnName, 6> telemetry_figures{"gpu_utilisation_percent",
                                                             "cpu_utilisation_percent",
                                                             "sm_clock_mhz",
                                                             "memory_clock_mhz",
                                                             "power_w",
                                                             "temperature_c"};
inline constexpr std::array<ColumnName, 3> telemetry_statistics{"mean", "min", "max"};

template <std::size_t N>
bool is_one_of(std::string_view name, const std::array<ColumnName, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace assay::host
