#include "results/epochs.hpp"

#include "record/columns.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace assay::host::results {
namespace {

using Json = nlohmann::ordered_json;

// The step of a case whose steps are epochs, else null.
const record::Phase* measured_epochs(const record::CaseRecord& record) {
  const record::CaseMetric* unit = record::find(record.result.metrics, "measured_unit");
  const record::Phase* step = record::step_of(record.result);
  return unit && unit->word == "epoch" && step && !step->samples_ms.empty() ? step : nullptr;
}

std::string rate_name(const record::CaseRecord& record) {
  return (record.result.work ? record.result.work->item_unit : std::string("items")) + "_per_s";
}

double items_per_s(const record::CaseRecord& record) {
  return record.result.rates ? record.result.rates->items_per_s.value_or(0) : 0;
}

// "index" counts from 0; a record without one is taken for the first.
std::int64_t case_number(const record::CaseRecord& record) { return std::max<std::int64_t>(record.identity.index, 0); }

std::optional<double> peak_memory_of_step(const record::CaseRecord& record, std::size_t step, std::size_t steps) {
  const auto& memory = record.result.memory;
  if (!memory || !memory->step_peak_mib || memory->step_peak_mib->samples.size() != steps) return std::nullopt;
  return memory->step_peak_mib->samples[step];
}

std::optional<double> utilisation_of_step(const record::CaseRecord& record, std::size_t step, std::size_t steps) {
  const auto& telemetry = record.result.telemetry;
  if (!telemetry || telemetry->step_utilisation_percent.size() != steps) return std::nullopt;
  return telemetry->step_utilisation_percent[step];
}

}  // namespace

Json epochs_json(const std::vector<record::CaseRecord>& records) {
  Json epochs = Json::array();
  for (const record::CaseRecord& record : records) {
    const record::Phase* step = measured_epochs(record);
    if (!step) continue;
    const double items = items_per_s(record) * step->mean_ms.value_or(0) / 1e3;
    for (std::size_t i = 0; i < step->samples_ms.size(); ++i) {
      const double wall_time_s = step->samples_ms[i] / 1e3;
      Json epoch{{"case", case_number(record)}, {"epoch", i + 1}, {"wall_time_s", wall_time_s}};
      if (record.identity.repeat) epoch.emplace("repeat", *record.identity.repeat);
      if (items > 0 && wall_time_s > 0) epoch.emplace(rate_name(record), items / wall_time_s);
      if (const auto peak_mib = peak_memory_of_step(record, i, step->samples_ms.size()))
        epoch.emplace("peak_memory_mib", *peak_mib);
      if (const auto percent = utilisation_of_step(record, i, step->samples_ms.size()))
        epoch.emplace("utilisation_percent", *percent);
      if (record.result.step_metrics)
        for (const auto& [name, metric] : *record.result.step_metrics)
          // What only some steps reported has no epoch to go with.
          if (metric.samples.size() == step->samples_ms.size()) epoch.emplace(name, metric.samples[i]);
      epochs.push_back(std::move(epoch));
    }
  }
  return epochs;
}

Json epochs_summary_json(const std::vector<record::CaseRecord>& records) {
  Json summary = Json::array();
  for (const record::CaseRecord& record : records) {
    const record::Phase* step = measured_epochs(record);
    if (!step) continue;
    Json entry{{"case", case_number(record)},
               {"epochs", step->samples_ms.size()},
               {"mean_epoch_time_s", step->mean_ms.value_or(0) / 1e3}};
    if (const double rate = items_per_s(record); rate > 0) entry.emplace(rate_name(record), rate);
    entry.emplace("peak_memory_mib", record.result.memory ? record.result.memory->peak_total_mib.value_or(0) : 0.0);
    if (const auto utilisation = record::cell_of(record, "utilisation_percent").number())
      entry.emplace("utilisation_percent", *utilisation);
    summary.push_back(std::move(entry));
  }
  return summary.empty() ? Json() : summary;
}

}  // namespace assay::host::results
