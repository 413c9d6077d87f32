#include "results/summary.hpp"

#include "common/files.hpp"
#include "common/utc.hpp"
#include "experiment/experiment.hpp"
#include "record/json.hpp"
#include "results/case_order.hpp"
#include "results/case_text.hpp"
#include "results/default_columns.hpp"
#include "results/epochs.hpp"
#include "results/reader.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <system_error>

namespace assay::host::results {
namespace {

using Json = nlohmann::ordered_json;

struct Hardware {
  std::string model;
  std::int64_t gpu_count = 0;
};

// What a case ran on, where it ran on something else than the CPU; null otherwise.
const record::Device* gpu_of(const record::CaseRecord& record) {
  const auto& device = record.result.device;
  return device && !device->kind.empty() && device->kind != "cpu" ? &*device : nullptr;
}

Hardware hardware_of(const std::vector<record::CaseRecord>& records, const record::Environment& environment) {
  Hardware hardware;
  for (const record::CaseRecord& record : records) {
    const record::Device* gpu = gpu_of(record);
    if (!gpu) continue;
    if (hardware.model.empty()) hardware.model = gpu->name.empty() ? gpu->kind : gpu->name;
    const std::int64_t ranks = record.identity.ranks.value_or(1);
    hardware.gpu_count = std::max({hardware.gpu_count, std::int64_t{1}, ranks});
  }
  if (!hardware.model.empty()) return hardware;
  hardware.model = environment.fact_or("cpu.model", "");
  for (const record::CaseRecord& record : records)
    if (hardware.model.empty() && record.result.device) hardware.model = record.result.device->name;
  if (hardware.model.empty()) hardware.model = environment.fact_or("cpu.architecture", "cpu");
  return hardware;
}

// The experiment's file as JSON. It was validated before anything ran, so a text that does not parse was altered since.
Json config_json(const std::string& resolved_toml) {
  try {
    std::ostringstream text;
    text << toml::json_formatter(toml::parse(resolved_toml));
    return Json::parse(text.str());
  } catch (const toml::parse_error& e) {
    throw StorageError(
        fmt::format("the run's resolved experiment does not parse: {} (line {}); expected the "
                    "experiment.toml as the run wrote it; restore it",
                    std::string(e.description()), e.source().begin.line));
  }
}

// When the last case ended, by the records alone, so that a summary made later says the same.
std::optional<WallTime> finished_at(const std::vector<record::CaseRecord>& records) {
  std::optional<WallTime> latest;
  for (const record::CaseRecord& record : records) {
    const std::optional<WallTime> started = parse_utc(record.started);
    if (!started) continue;
    const double wall_s = record.result.wall.case_s.value_or(0);
    const WallTime end = *started + std::chrono::milliseconds(std::llround(wall_s * 1e3));
    latest = latest ? std::max(*latest, end) : end;
  }
  return latest;
}

Json totals_json(const experiment::Experiment& experiment, const std::vector<record::CaseRecord>& records) {
  std::map<std::string, std::int64_t> by_status;
  double wall_s = 0;
  Json lines = Json::array();
  for (const record::CaseRecord& record : records) {
    ++by_status[record.result.status_text()];
    wall_s += record.result.wall.case_s.value_or(0);
    const std::string label = case_label(record.identity.axes);
    lines.push_back(fmt::format("{}{}{}", label, label.empty() ? "" : ": ", case_summary(record)));
  }
  return {{"planned", experiment.cases.size()},
          {"finished", records.size()},
          {"by_status", by_status},
          {"wall_s", wall_s},
          {"lines", std::move(lines)}};
}

// Earlier views of this run may bear another model's name: the first one is written before any device is known.
void remove_other_summaries(const std::filesystem::path& run_folder, const std::string& keep,
                            const std::string& stamp) {
  std::error_code error;
  std::vector<std::filesystem::path> stale;
  for (std::filesystem::directory_iterator it(run_folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name != keep && name.starts_with("bench_") && name.ends_with("gpu_" + stamp + ".json"))
      stale.push_back(it->path());
  }
  for (const std::filesystem::path& path : stale) std::filesystem::remove(path, error);
}

}  // namespace

std::string file_name_part(const std::string& model) {
  std::string part;
  for (const char c : model) {
    const bool kept =
        (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
    if (kept)
      part += c;
    else if (!part.empty() && part.back() != '_')
      part += '_';
  }
  while (!part.empty() && part.back() == '_') part.pop_back();
  return part.empty() ? "unknown" : part;
}

std::string summary_file_name(const std::vector<record::CaseRecord>& records, const record::Environment& environment,
                              const std::string& stamp) {
  const Hardware hardware = hardware_of(records, environment);
  return fmt::format("bench_{}_{}gpu_{}.json", file_name_part(hardware.model), hardware.gpu_count, stamp);
}

std::string summary_json(const experiment::Experiment& experiment, const std::vector<record::CaseRecord>& records,
                         const record::Environment& environment, const std::string& stamp) {
  constexpr int indent = 2;
  const std::optional<WallTime> started = parse_utc(stamp);
  const std::optional<WallTime> finished = finished_at(records);
  const Hardware hardware = hardware_of(records, environment);
  const Json metadata{{"experiment", experiment.name},
                      {"description", experiment.description},
                      {"plugin", experiment.plugin},
                      {"started", started ? Json(utc_text(*started)) : Json()},
                      {"finished", finished ? Json(utc_text(*finished)) : Json()},
                      {"host_version", environment.fact_or("assay.version", "unknown")},
                      {"hardware", hardware.model},
                      {"gpus", hardware.gpu_count},
                      {"environment", Json::parse(environment.json())}};
  const auto pretty = [](const Json& json) { return record::json_text(json, indent); };
  std::string text = "{\n\"schema\": 1,\n\"metadata\": " + pretty(metadata);
  text += ",\n\"config\": " + pretty(config_json(experiment.resolved_toml)) + ",\n\"cases\": [";
  for (std::size_t i = 0; i < records.size(); ++i) text += (i ? ",\n" : "\n") + record::to_line(records[i]);
  text += "\n],\n";
  Json totals = totals_json(experiment, records);
  if (Json epochs = epochs_summary_json(records); !epochs.is_null()) {
    totals.emplace("epochs", std::move(epochs));
    text += "\"epochs\": " + pretty(epochs_json(records)) + ",\n";
  }
  text += "\"summary\": " + pretty(totals) + "\n}\n";
  return text;
}

Views write_views(const std::filesystem::path& run_folder, const experiment::Experiment& experiment) {
  CasesFile cases = read_cases(run_folder / "cases.jsonl");
  Views views;
  views.records = current_records(experiment, cases.records);
  views.warnings = std::move(cases.warnings);
  views.table = make_table(
      experiment.output.columns.empty() ? default_columns(experiment, views.records) : experiment.output.columns,
      views.records);
  const auto wants = [&formats = experiment.output.formats](const char* format) {
    return std::find(formats.begin(), formats.end(), format) != formats.end();
  };
  const auto write = [&](const std::string& name, const std::string& text) {
    write_file_atomically(run_folder / name, text);
    views.files.push_back(run_folder / name);
  };
  if (wants("csv")) write("table.csv", to_csv(views.table));
  if (wants("markdown")) write("table.md", to_markdown(views.table));
  if (wants("json")) {
    const std::optional<std::string> stamp = stamp_of_run(std::filesystem::absolute(run_folder).lexically_normal());
    if (!stamp)
      throw StorageError(
          fmt::format("{} is no run folder: expected a name like 20261120T120000Z-9f2c; give it back the "
                      "name under which `assay run` made it",
                      run_folder.string()));
    const std::filesystem::path environment_path = run_folder / "environment.json";
    const std::optional<record::Environment> environment = record::Environment::parse(read_file(environment_path));
    if (!environment)
      throw StorageError(
          fmt::format("{} is no JSON object; expected what the run wrote; restore it", environment_path.string()));
    const std::string name = summary_file_name(views.records, *environment, *stamp);
    write(name, summary_json(experiment, views.records, *environment, *stamp));
    remove_other_summaries(run_folder, name, *stamp);
  }
  return views;
}

}  // namespace assay::host::results
