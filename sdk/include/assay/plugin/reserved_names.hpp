// Names of columns that every results table has (docs/record.md, "Column names"). A parameter or a metric of the same
// name would hide the column or be hidden by it, and a reader would get the wrong one. A test compares these lists with
// the columns of the host.
#pragma once
#include <array>
#include <string_view>

namespace assay {

inline constexpr std::array<std::string_view, 38> reserved_names{"status",
                                                                 "reason",
                                                                 "index",
                                                                 "repeat",
                                                                 "hash",
                                                                 "verify",
                                                                 "drift",
                                                                 "notes",
                                                                 "device",
                                                                 "gflop_per_s",
                                                                 "tflop_per_s",
                                                                 "gbytes_per_s",
                                                                 "items_per_s",
                                                                 "mfu",
                                                                 "mfu_measured",
                                                                 "bound_percent",
                                                                 "bound_percent_measured",
                                                                 "j_per_item",
                                                                 "items_per_j",
                                                                 "communication_tax",
                                                                 "silent_step_ms",
                                                                 "memory_snapshot",
                                                                 "utilisation_percent",
                                                                 "validity",
                                                                 "stage",
                                                                 "phase",
                                                                 "part",
                                                                 "rank",
                                                                 "workload",
                                                                 "started",
                                                                 "ranks",
                                                                 "copies",
                                                                 "spread",
                                                                 "host",
                                                                 "environment",
                                                                 "run",
                                                                 "experiment",
                                                                 "speedup"};

// The part before the first dot of a column: "memory.peak_mib", "run.device".
inline constexpr std::array<std::string_view, 18> reserved_groups{
    "step",    "memory",  "telemetry", "validity", "sampling", "peak",  "device", "wall_s", "straggler",
    "by_rank", "measure", "run",       "cluster",  "profile",  "assay", "plugin", "files",  "verify"};

// Phases whose statistics ("straggler.share") are columns of the host.
inline constexpr std::array<std::string_view, 2> reserved_phases{"step", "straggler"};

namespace detail {
template <class List>
constexpr bool is_among(std::string_view name, const List& list) noexcept {
  for (const std::string_view one : list)
    if (name == one) return true;
  return false;
}
}  // namespace detail

// For a parameter or a metric.
constexpr bool is_reserved_name(std::string_view name) noexcept {
  const auto dot = name.find('.');
  if (dot == std::string_view::npos) return detail::is_among(name, reserved_names);
  return detail::is_among(name.substr(0, dot), reserved_groups) || name.ends_with(".ratio");
}
constexpr bool is_reserved_phase(std::string_view name) noexcept { return detail::is_among(name, reserved_phases); }

}  // namespace assay
