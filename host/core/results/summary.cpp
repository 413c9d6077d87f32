#include "results/summary.hpp"

#include "common/files.hpp"
#include "common/parallel.hpp"
#include "common/utc.hpp"
#include "experiment/experiment.hpp"
#include "record/json.hpp"
#include "results/case_order.hpp"
#include "results/case_text.hpp"
#include "results/column_choice.hpp"
#include "results/default_columns.hpp"
#include "results/epochs.hpp"
#include "results/reader.hpp"
#include "results/run_source.hpp"
#include "results/shared_columns.hpp"
#include "results/table_page.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>

namespace assay::host::results {
namespace {

using Json = nlohmann::ordered_json;

using Records = std::vector<record::CaseRecord>;

// The model of what the cases ran on; of a part whose cases reached no device, that of the run's others.
std::string hardware_of(const SummaryPart& part, const Records& of_run, const record::Environment& environment) {
  const auto first_name = [&](auto&& name_of) -> std::string {
    for (const Records* records : {&part.records(), &of_run})
      for (const record::CaseRecord& record : *records)
        if (record.result.device)
          if (std::string name = name_of(*record.result.device); !name.empty()) return name;
    return "";
  };
  if (part.on_gpu)
    return first_name([](const record::Device& device) {
      return device.kind == "cpu" ? "" : device.name.empty() ? device.kind : device.name;
    });
  if (std::string model = environment.fact_or("cpu.model", ""); !model.empty()) return model;
  if (std::string name = first_name([](const record::Device& device) { return device.name; }); !name.empty())
    return name;
  return environment.fact_or("cpu.architecture", "cpu");
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

// Parameters that the file leaves to a preset stand in it as in the records, where all cases have the same.
void add_resolved_params(Json& config, const std::vector<record::CaseRecord>& records) {
  if (records.empty() || !config.contains("workload")) return;
  Json& params = config["workload"]["params"];
  for (const auto& [name, value] : records.front().identity.params) {
    const bool swept = record::find(records.front().identity.axes, name) != nullptr;
    const bool same = std::all_of(records.begin(), records.end(), [&, &key = name, &first = value](const auto& other) {
      const Value* found = record::find(other.identity.params, key);
      return found && *found == first;
    });
    if (same && !swept) params[name] = host::to_json(value);
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

Json totals_json(const SummaryPart& part) {
  std::map<std::string, std::int64_t> by_status;
  double wall_s = 0;
  Json lines = Json::array();
  for (const record::CaseRecord& record : part.records()) {
    ++by_status[record.result.status_text()];
    wall_s += record.result.wall.case_s.value_or(0);
    const std::string label = case_label(record.identity.axes, record.identity.repeat);
    lines.push_back(fmt::format("{}{}{}", label, label.empty() ? "" : ": ", case_summary(record)));
  }
  return {{"planned", part.planned},
          {"finished", part.records().size()},
          {"by_status", by_status},
          {"wall_s", wall_s},
          {"lines", std::move(lines)}};
}

// Earlier views of this run may bear another model's name, which is known when the first case has run, or hold cases
// that have another number of ranks since.
void remove_other_summaries(const std::filesystem::path& run_folder, const std::set<std::string>& keep,
                            const std::string& stamp) {
  std::error_code error;
  std::vector<std::filesystem::path> stale;
  for (std::filesystem::directory_iterator it(run_folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!keep.contains(name) && name.starts_with("bench_") && name.ends_with("_" + stamp + ".json"))
      stale.push_back(it->path());
  }
  for (const std::filesystem::path& path : stale) std::filesystem::remove(path, error);
}

// What a summary says of its run beside the cases.
struct RunFacts {
  std::string stamp;
  record::Environment environment;
  Environments environments;  // by the ids that records name
};

RunFacts facts_of(const std::filesystem::path& run_folder, std::vector<std::string>& warnings) {
  const std::optional<std::string> stamp = stamp_of_run(std::filesystem::absolute(run_folder).lexically_normal());
  if (!stamp)
    throw StorageError(
        fmt::format("{} is no run folder: expected a name like 20261120T120000Z-9f2c; give it back the "
                    "name under which `assay run` made it",
                    run_folder.string()));
  const std::filesystem::path environment_path = run_folder / "environment.json";
  std::optional<record::Environment> environment = record::Environment::parse(read_file(environment_path));
  if (!environment)
    throw StorageError(
        fmt::format("{} is no JSON object; expected what the run wrote; restore it", environment_path.string()));
  return {*stamp, std::move(*environment), read_environments(run_folder, warnings)};
}

// Those that the records name, so that the summary reports as much of each as the run's folder.
Json environments_json(const Records& records, const Environments& environments) {
  Json json = Json::object();
  for (const record::CaseRecord& record : records)
    if (const auto found = environments.find(record.environment);
        found != environments.end() && !json.contains(record.environment))
      json[record.environment] = Json::parse(found->second.json());
  return json;
}

std::string page_of(const RunSource& source, const experiment::Experiment& experiment, const Views& views) {
  const auto allow = experiment.cases.empty() ? std::vector<std::string>{} : experiment.cases.front().run.allow;
  return table_page(views.table, views.records, allow, source);
}

std::string text_of_view(ViewFormat format, const std::filesystem::path& run_folder, const RunSource& source,
                         const experiment::Experiment& experiment, Views& views) {
  if (format == ViewFormat::csv) return to_csv(views.full_table);
  if (format == ViewFormat::markdown) return page_of(source, experiment, views);
  const RunFacts facts = facts_of(run_folder, views.warnings);
  return summary_json(experiment, whole_run(experiment, views.records), views.records, facts.environment, facts.stamp,
                      facts.environments);
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

std::string summary_file_name(const SummaryPart& part, const Records& of_run, const record::Environment& environment,
                              const std::string& stamp) {
  const bool are_ranks_told = !part.on_gpu && part.ranks > 1;
  return fmt::format("bench_{}_{}gpu_{}{}.json", file_name_part(hardware_of(part, of_run, environment)), part.gpus(),
                     are_ranks_told ? fmt::format("{}ranks_", part.ranks) : "", stamp);
}

std::string summary_json(const experiment::Experiment& experiment, const SummaryPart& part, const Records& of_run,
                         const record::Environment& environment, const std::string& stamp,
                         const Environments& environments) {
  constexpr int indent = 2;
  const std::vector<record::CaseRecord>& records = part.records();
  const std::optional<WallTime> started = parse_utc(stamp);
  const std::optional<WallTime> finished = finished_at(records);
  Json metadata{{"experiment", experiment.name},
                {"description", experiment.description},
                {"plugin", experiment.plugin},
                {"started", started ? Json(utc_text(*started)) : Json()},
                {"finished", finished ? Json(utc_text(*finished)) : Json()},
                {"host_version", environment.fact_or("assay.version", "unknown")},
                {"hardware", hardware_of(part, of_run, environment)},
                {"gpus", part.gpus()},
                {"ranks", part.ranks},
                {"environment", Json::parse(environment.json())}};
  if (Json by_id = environments_json(records, environments); !by_id.empty())
    metadata.emplace("environments", std::move(by_id));
  const auto pretty = [](const Json& json) { return record::json_text(json, indent); };
  std::string text = "{\n\"schema\": 1,\n\"metadata\": " + pretty(metadata);
  Json config = config_json(experiment.resolved_toml);
  add_resolved_params(config, of_run);
  text += ",\n\"config\": " + pretty(config) + ",\n\"cases\": [";
  std::vector<std::string> lines(records.size());
  for_each_in_parallel(records.size(), [&](std::size_t i) { lines[i] = record::to_line(records[i]); });
  for (std::size_t i = 0; i < lines.size(); ++i) text.append(i ? ",\n" : "\n").append(lines[i]);
  text += "\n],\n";
  Json totals = totals_json(part);
  if (Json epochs = epochs_summary_json(records); !epochs.is_null()) {
    totals.emplace("epochs", std::move(epochs));
    text += "\"epochs\": " + pretty(epochs_json(records)) + ",\n";
  }
  text += "\"summary\": " + pretty(totals) + "\n}\n";
  return text;
}

Views write_views(const std::filesystem::path& run_folder, const experiment::Experiment& experiment,
                  const std::optional<ViewFile>& named) {
  return write_views(run_folder, experiment, read_cases(run_folder / "cases.jsonl"), named);
}

Views write_views(const std::filesystem::path& run_folder, const experiment::Experiment& experiment, CasesFile cases,
                  const std::optional<ViewFile>& named) {
  Views views;
  views.records = current_records(experiment, std::move(cases.records));
  views.warnings = std::move(cases.warnings);
  for (std::string& text : texts_of_unreported(experiment.output.reported_columns, views.records))
    views.warnings.push_back(std::move(text));
  RunSource source = run_source(run_folder, views.warnings);
  source.experiment = experiment.name;
  const auto& relative_to = experiment.output.relative_to;
  views.table = make_table(table_columns(experiment, views.records), views.records, relative_to, &source);
  views.full_table = without_empty_columns(
      make_table(shared_columns(views.table.columns, views.records), views.records, relative_to, &source),
      views.table.columns.size());
  const auto wants = [&formats = experiment.output.formats](const char* format) {
    return std::find(formats.begin(), formats.end(), format) != formats.end();
  };
  const auto write = [&views](const std::filesystem::path& path, const std::string& text) {
    write_file_atomically(path, text);
    views.files.push_back(path);
  };
  if (wants("csv")) write(run_folder / "table.csv", to_csv(views.full_table));
  if (wants("markdown")) write(run_folder / "table.md", page_of(source, experiment, views));
  if (wants("json")) {
    const RunFacts facts = facts_of(run_folder, views.warnings);
    std::set<std::string> names;
    for (const SummaryPart& part : summary_parts(experiment, views.records)) {
      const std::string name = summary_file_name(part, views.records, facts.environment, facts.stamp);
      write(run_folder / name,
            summary_json(experiment, part, views.records, facts.environment, facts.stamp, facts.environments));
      names.insert(name);
    }
    remove_other_summaries(run_folder, names, facts.stamp);
  }
  if (named) try {
      write(named->path, text_of_view(named->format, run_folder, source, experiment, views));
      views.named_file = named->path;
    } catch (const StorageError& e) {
      views.named_file_error = e.what();  // the run itself is reported all the same
    }
  return views;
}

}  // namespace assay::host::results
