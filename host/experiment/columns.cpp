#include "experiment/columns.hpp"

#include "common/memory_kinds.hpp"
#include "experiment/column_names.hpp"
#include "experiment/settings.hpp"

#include <algorithm>
#include <string_view>

namespace assay::host {
namespace {

constexpr std::string_view memory_prefix = "memory.";

}  // namespace

std::vector<std::string> column_names(const WorkloadSchema& schema) {
  std::vector<std::string> names(core_columns.begin(), core_columns.end());
  const auto add = [&names](const auto& group, const std::string& prefix = "") {
    for (const ColumnName name : group) names.push_back(prefix + std::string(name));
  };
  for (const auto& param : schema.params) names.push_back(param.name);
  for (const auto& setting : settings_table()) names.push_back(setting.name);
  for (const auto& metric : schema.metrics) {
    if (metric.per_step)
      add(step_metric_statistics, metric.name + ".");
    else
      names.push_back(metric.name);
  }
  add(phase_statistics, "step.");
  for (const auto& phase : schema.phases) add(phase_statistics, phase + ".");
  add(rate_columns);
  if (!schema.item_unit.empty()) names.push_back(schema.item_unit + "_per_s");
  add(measured_columns);
  for (std::size_t kind = 0; kind < memory_kind_count; ++kind)
    names.push_back(std::string(memory_prefix) + memory_kind_name(kind) + ".peak_mib");
  add(telemetry_columns);
  for (const ColumnName figure : telemetry_figures) add(telemetry_statistics, "telemetry." + std::string(figure) + ".");
  add(place_columns);
  add(rank_columns);
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
