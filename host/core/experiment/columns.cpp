#include "experiment/columns.hpp"

#include "experiment/settings.hpp"
#include "record/columns.hpp"

namespace assay::host::experiment {

std::vector<std::string> column_names(const plugin::WorkloadSchema& schema) {
  record::WorkloadNames names;
  for (const auto& param : schema.params) names.params.push_back(param.name);
  for (const auto& setting : settings_table()) names.settings.push_back(setting.name);
  for (const auto& metric : schema.metrics)
    (metric.per_step ? names.step_metrics : names.case_metrics).push_back(metric.name);
  names.phases = schema.phases;
  names.item_unit = schema.item_unit;
  std::vector<std::string> columns = record::column_names(names);
  columns.insert(columns.end(), record::run_columns.begin(), record::run_columns.end());
  return columns;
}

}  // namespace assay::host::experiment
