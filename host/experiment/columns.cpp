#include "experiment/columns.hpp"

#include "common/memory_kinds.hpp"
#include "experiment/settings.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace assay::host {
namespace {

constexpr std::array record_columns{"status",   "reason",  "index",       "hash",         "verify",        "drift",
                                    "notes",    "device",  "device.name", "stage",        "phase",         "rank",
                                    "workload", "started", "wall_s.case", "wall_s.setup", "wall_s.measure"};
constexpr std::array phase_statistics{"mean_ms", "std_ms",       "cv",     "cv_percent", "min_ms",     "max_ms",
                                      "p50_ms",  "p90_ms",       "p99_ms", "ci_low_ms",  "ci_high_ms", "mean_s",
                                      "std_s",   "host_mean_ms", "share",  "n"};
constexpr std::array step_metric_statistics{"mean", "std", "min", "max", "last"};
constexpr std::array rates{"gflop_per_s", "tflop_per_s", "gbytes_per_s", "items_per_s"};
constexpr std::string_view memory_prefix = "memory.";

}  // namespace

std::vector<std::string> column_names(const WorkloadSchema& schema) {
  std::vector<std::string> names(record_columns.begin(), record_columns.end());
  for (const auto& param : schema.params) names.push_back(param.name);
  for (const auto& setting : settings_table()) names.push_back(setting.name);
  for (const auto& metric : schema.metrics) {
    if (!metric.per_step)
      names.push_back(metric.name);
    else
      for (const char* statistic : step_metric_statistics) names.push_back(metric.name + "." + statistic);
  }
  std::vector<std::string> phases{"step"};
  phases.insert(phases.end(), schema.phases.begin(), schema.phases.end());
  for (const auto& phase : phases)
    for (const char* statistic : phase_statistics) names.push_back(phase + "." + statistic);
  names.insert(names.end(), rates.begin(), rates.end());
  if (!schema.item_unit.empty()) names.push_back(schema.item_unit + "_per_s");
  for (const char* name : {"memory.peak_mib", "memory.process_peak_mib", "step.device_mean_ms"})
    names.emplace_back(name);
  for (std::size_t kind = 0; kind < memory_kind_count; ++kind)
    names.push_back(std::string(memory_prefix) + memory_kind_name(kind) + ".peak_mib");
  return names;
}

bool is_column(const std::string& column, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), column) != names.end()) return true;
  std::string_view rest = column;
  if (!rest.starts_with(memory_prefix)) return false;
  rest.remove_prefix(memory_prefix.size());
  const auto cut = [&](std::string_view suffix) {
    if (!rest.ends_with(suffix) || rest.size() == suffix.size()) return false;
    rest.remove_suffix(suffix.size());
    return true;
  };
  // Without a second part `.peak_mib` is a kind's, and those are in `names`.
  const bool is_peak = cut(".peak_mib");
  if (!is_peak && !cut(".mib")) return false;
  const auto dot = rest.find('.');
  if (dot == std::string_view::npos) return !is_peak;
  const auto kind = rest.substr(dot + 1);
  for (std::size_t i = 0; i < memory_kind_count; ++i)
    if (dot > 0 && kind == memory_kind_name(i)) return true;
  return false;
}

}  // namespace assay::host
