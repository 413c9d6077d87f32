#include "imports/import_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "common/exit_code.hpp"
#include "common/files.hpp"
#include "common/sha256.hpp"
#include "common/text_format.hpp"
#include "common/usage_error.hpp"
#include "common/utc.hpp"
#include "imports/formats.hpp"
#include "imports/log_text.hpp"
#include "imports/making_records.hpp"
#include "results/store.hpp"
#include "results/table_page.hpp"
#include "results/terminal.hpp"

namespace assay::host::imports {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// "latency=us"
std::map<std::string, double> step_metrics(const std::vector<std::string>& given) {
  const std::map<std::string, double> units{{"s", 1e3}, {"ms", 1}, {"us", 1e-3}, {"ns", 1e-6}};
  std::map<std::string, double> metrics;
  for (const std::string& text : given) {
    const std::size_t equals = text.rfind('=');
    const auto unit = equals == std::string::npos ? units.end() : units.find(text.substr(equals + 1));
    if (unit == units.end() || equals == 0)
      throw UsageError(
          fmt::format("--step is '{}'; expected the metric that is the time of a step, and its unit: "
                      "latency=us (s, ms, us, ns)",
                      text));
    metrics[text.substr(0, equals)] = unit->second;
  }
  return metrics;
}

WallTime changed_at(const fs::path& file) {
  std::error_code error;
  const auto time = fs::last_write_time(file, error);
  return error ? std::chrono::system_clock::now()
               : std::chrono::time_point_cast<WallTime::duration>(std::chrono::file_clock::to_sys(time));
}

// When it was measured: as asked for, as the file says, or when it was written.
WallTime time_of(const fs::path& file, const ImportedRun& run, const std::string& asked) {
  if (!asked.empty()) {
    const auto time = parse_utc(asked.size() == 10 ? asked + "T00:00:00Z" : asked);
    if (!time) throw UsageError(fmt::format("--date is '{}'; expected 2026-11-03 or 2026-11-03T12:00:00Z", asked));
    return *time;
  }
  // "2026-11-03T12:00:00.123456+00:00": to the second, where it is UTC.
  if (run.started && run.started->size() > 19 && (run.started->ends_with("Z") || run.started->ends_with("+00:00")))
    if (const auto time = parse_utc(run.started->substr(0, 19) + "Z")) return *time;
  return changed_at(file);
}

// Tells what is known of the machine that made the result, which is not this one.
std::string environment_of(const fs::path& file, const Format& format, const std::string& host,
                           const std::string& revision) {
  Json environment{
      {"schema", 1},
      {"imported", {{"format", format.name}, {"file", file.filename().string()}, {"sha256", sha256_of_file(file)}}}};
  if (!host.empty()) environment["os"] = {{"hostname", host}};
  if (!revision.empty()) environment["assay"] = {{"revision", revision}};
  return environment.dump(2);
}

// A run is told by its experiment. This one cannot be run, and says so to whoever tries.
std::string experiment_of(const std::string& name, const Format& format, const fs::path& file) {
  return fmt::format(
      "# Imported by `assay import` from {} ({}). There is nothing to run.\nschema = 1\nname = "
      "\"{}\"\n\n[workload]\nplugin = "
      "\"imported from {}\"\n",
      one_line(file.filename().string()), format.name, name, format.name);
}

void import_file(const fs::path& file, const ImportRequest& request) try {
  const std::string text = as_utf8(read_file(file));
  const Format& format = format_of(text, request.format.value_or(""));
  ImportOptions options;
  options.file_name = file.filename().string();
  options.name = request.name.value_or("");
  options.step_ms = step_metrics(request.step);
  ImportedRun run = format.read(text, options);
  if (request.experiment) run.name = folder_name(*request.experiment);
  const std::string host = request.host.value_or(run.host);
  const WallTime time = time_of(file, run, request.date.value_or(""));
  if (const std::size_t repeats = number_repeats(run.records); repeats > 0)
    run.notes.push_back(
        fmt::format("nothing tells {} of its cases from each other; they are told apart as repeats", repeats));
  const fs::path dir = request.output.value_or("results");
  results::RunFolder folder =
      results::RunFolder::create(dir, run.name, experiment_of(run.name, format, file),
                                 environment_of(file, format, host, request.revision.value_or("")), time);
  for (record::CaseRecord& record : run.records) {
    record.started = utc_text(time);
    if (request.host || record.host.empty()) record.host = host;
    record.environment = folder.environment_id();
    if (request.device) {
      if (!record.result.device) record.result.device.emplace();
      record.result.device->name = *request.device;
    }
  }
  folder.append_all(run.records);
  for (const std::string& note : run.notes) fmt::print(stderr, "assay: {}: {}\n", one_line(file.string()), note);
  fmt::print("{}: {} {} as {} ({}), {}\n", one_line(file.string()), run.records.size(),
             run.records.size() == 1 ? "case" : "cases", folder.path().string(), format.name, utc_text(time));
} catch (const ImportError& e) {
  throw UsageError(fmt::format("{}: {}", one_line(file.string()), e.what()));
}

}  // namespace

std::string format_list() {
  std::string text;
  for (const Format& format : all_formats()) text += fmt::format("  {:<11} {}\n", format.name, format.summary);
  text.pop_back();
  return text;
}

int import_files(const ImportRequest& request) {
  for (const std::string& file : request.files) import_file(file, request);
  return exit_ok;
}

}  // namespace assay::host::imports
