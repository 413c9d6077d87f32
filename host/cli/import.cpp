// assay import
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cli/options.hpp"
#include "common/files.hpp"
#include "common/sha256.hpp"
#include "common/text_format.hpp"
#include "common/utc.hpp"
#include "imports/formats.hpp"
#include "imports/making_records.hpp"
#include "results/store.hpp"
#include "results/table_page.hpp"
#include "results/terminal.hpp"

namespace assay::host::cli {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

std::string about_import() {
  std::string text =
      "Takes results of other programs as the records of a run, so that `assay compare`, `table`, `report` and\n"
      "`history` know them. What a file does not say is not in the records. Formats:\n";
  for (const imports::Format& format : imports::all_formats())
    text += fmt::format("  {:<11} {}\n", format.name, format.summary);
  text.pop_back();
  return text;
}

std::string one_text(const po::variables_map& values, const char* name) {
  return values.count(name) ? values[name].as<std::string>() : "";
}

// "latency=us"
std::map<std::string, double> step_metrics(const Arguments& given) {
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
WallTime time_of(const fs::path& file, const imports::ImportedRun& run, const std::string& asked) {
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
std::string environment_of(const fs::path& file, const imports::Format& format, const std::string& host,
                           const std::string& revision) {
  Json environment{
      {"schema", 1},
      {"imported", {{"format", format.name}, {"file", file.filename().string()}, {"sha256", sha256_of_file(file)}}}};
  if (!host.empty()) environment["os"] = {{"hostname", host}};
  if (!revision.empty()) environment["assay"] = {{"revision", revision}};
  return environment.dump(2);
}

// A run is told by its experiment. This one cannot be run, and says so to whoever tries.
std::string experiment_of(const std::string& name, const imports::Format& format, const fs::path& file) {
  return fmt::format(
      "# Imported by `assay import` from {} ({}). There is nothing to run.\nschema = 1\nname = "
      "\"{}\"\n\n[workload]\nplugin = "
      "\"imported from {}\"\n",
      one_line(file.filename().string()), format.name, name, format.name);
}

void import_file(const fs::path& file, const po::variables_map& values) try {
  const std::string text = read_file(file);
  const imports::Format& format = imports::format_of(text, one_text(values, "format"));
  imports::ImportOptions options;
  options.file_name = file.filename().string();
  options.name = one_text(values, "name");
  options.step_ms = step_metrics(list_of(values, "step"));
  imports::ImportedRun run = format.read(text, options);
  if (values.count("experiment")) run.name = imports::folder_name(one_text(values, "experiment"));
  const std::string host = values.count("host") ? one_text(values, "host") : run.host;
  const WallTime time = time_of(file, run, one_text(values, "date"));
  if (const std::size_t repeats = imports::number_repeats(run.records); repeats > 0)
    run.notes.push_back(
        fmt::format("nothing tells {} of its cases from each other; they are told apart as repeats", repeats));
  const fs::path dir = values.count("output") ? one_text(values, "output") : "results";
  results::RunFolder folder =
      results::RunFolder::create(dir, run.name, experiment_of(run.name, format, file),
                                 environment_of(file, format, host, one_text(values, "revision")), time);
  for (record::CaseRecord& record : run.records) {
    record.started = utc_text(time);
    record.host = host;
    record.environment = folder.environment_id();
    if (values.count("device")) {
      if (!record.result.device) record.result.device.emplace();
      record.result.device->name = one_text(values, "device");
    }
  }
  folder.append_all(run.records);
  for (const std::string& note : run.notes) fmt::print(stderr, "assay: {}: {}\n", one_line(file.string()), note);
  fmt::print("{}: {} {} as {} ({}), {}\n", one_line(file.string()), run.records.size(),
             run.records.size() == 1 ? "case" : "cases", folder.path().string(), format.name, utc_text(time));
} catch (const imports::ImportError& e) {
  throw UsageError(fmt::format("{}: {}", one_line(file.string()), e.what()));
}

}  // namespace

int import_command(const Arguments& arguments) {
  po::options_description visible("Options");
  const auto text = [] { return po::value<std::string>(); };
  visible.add_options()("format", text(), "which it is; without it as the file looks")(
      "name", text(), "what was measured, where the file does not say: all_reduce, of nccl-tests")(
      "experiment", text(), "the name of the run's folder; otherwise by format and name")(
      "step", po::value<Arguments>()->composing(),
      "METRIC=UNIT: of pytorch, which metric is the time of a step, and its unit (latency=us); repeatable")(
      "date", text(), "when it was measured (2026-11-03); otherwise as the file says, or when it was written")(
      "host", text(), "the machine")("device", text(), "the device's name")(
      "revision", text(), "of the source that was measured")("output", text(),
                                                             "the folder for results (default: results)");
  const ParsedOptions options =
      parse_options(arguments, "assay import FILE [FILE ...] [options]", about_import(), visible, "file", -1);
  if (options.help) return run::exit_ok;
  const Arguments files = list_of(options.values, "file");
  if (files.empty()) throw UsageError("import needs a file");
  for (const std::string& file : files) import_file(file, options.values);
  return run::exit_ok;
}

}  // namespace assay::host::cli
