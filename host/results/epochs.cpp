#include "results/epochs.hpp"

#include <string>

namespace assay::host {
namespace {

using namespace nlohmann::literals;

bool measures_epochs(const Record& record) {
  return record.contains("/metrics/measured_unit/word"_json_pointer) &&
         record["/metrics/measured_unit/word"_json_pointer] == "epoch" &&
         record.contains("/phases/step/samples_ms"_json_pointer);
}

double number_at(const Record& record, const Record::json_pointer& where) {
  return record.contains(where) && record[where].is_number() ? record[where].get<double>() : 0.0;
}

std::string rate_name(const Record& record) {
  const auto where = "/work/item_unit"_json_pointer;
  return (record.contains(where) && record[where].is_string() ? record[where].get<std::string>() : "items") + "_per_s";
}

}  // namespace

Record epochs_json(const std::vector<Record>& records) {
  Record epochs = Record::array();
  for (const Record& record : records) {
    if (!measures_epochs(record)) continue;
    const double items = number_at(record, "/rates/items_per_s"_json_pointer) *
                         number_at(record, "/phases/step/mean_ms"_json_pointer) / 1e3;
    const Record& samples = record["/phases/step/samples_ms"_json_pointer];
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const double wall_time_s = samples[i].get<double>() / 1e3;
      Record epoch{{"case", record.value("index", 0)}, {"epoch", i + 1}, {"wall_time_s", wall_time_s}};
      if (items > 0 && wall_time_s > 0) epoch[rate_name(record)] = items / wall_time_s;
      if (record.contains("step_metrics"))
        for (const auto& [name, metric] : record["step_metrics"].items())
          // What only some steps reported has no epoch to go with.
          if (!epoch.contains(name) && metric.contains("samples") && metric["samples"].size() == samples.size())
            epoch[name] = metric["samples"][i];
      epochs.push_back(std::move(epoch));
    }
  }
  return epochs;
}

Record epochs_summary_json(const std::vector<Record>& records) {
  Record summary = Record::array();
  for (const Record& record : records) {
    if (!measures_epochs(record)) continue;
    Record entry{{"case", record.value("index", 0)},
                 {"epochs", record["/phases/step/samples_ms"_json_pointer].size()},
                 {"mean_epoch_time_s", number_at(record, "/phases/step/mean_ms"_json_pointer) / 1e3}};
    if (const double rate = number_at(record, "/rates/items_per_s"_json_pointer); rate > 0)
      entry[rate_name(record)] = rate;
    entry["peak_memory_mib"] = number_at(record, "/memory/peak_total_mib"_json_pointer);
    for (const auto& utilisation : {"/telemetry/gpu_utilisation_percent/mean"_json_pointer,
                                    "/telemetry/cpu_utilisation_percent/mean"_json_pointer})
      if (!entry.contains("utilisation_percent") && record.contains(utilisation))
        entry["utilisation_percent"] = record[utilisation];
    summary.push_back(std::move(entry));
  }
  return summary.empty() ? Record() : summary;
}

}  // namespace assay::host
