#include "imports/import_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "common/exit_code.hpp"
#include "common/files.hpp"
#include "common/format_choice.hpp"
#include "common/sha256.hpp"
#include "common/text_format.hpp"
#include "common/usage_error.hpp"
#include "common/utc.hpp"
#include "imports/formats.hpp"
#include "imports/log_text.hpp"
#include "imports/making_records.hpp"
#include "record/environment.hpp"
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
  if (error) return std::chrono::system_clock::now();
  // Files have times that 64-bit nanoseconds do not hold.
  const auto seconds = std::chrono::file_clock::to_sys(std::chrono::floor<std::chrono::seconds>(time));
  if (seconds > std::chrono::floor<std::chrono::seconds>(WallTime::max()) ||
      seconds < std::chrono::ceil<std::chrono::seconds>(WallTime::min()))
    throw ImportError("the time of the file is beyond the years 1678 to 2261; give --date");
  return std::chrono::time_point_cast<WallTime::duration>(std::chrono::file_clock::to_sys(time));
}

// When it was measured: as asked for, as the file says, or when it was written.
WallTime time_of(const fs::path& file, ImportedRun& run, const std::string& asked) {
  if (!asked.empty()) {
    const auto time = parse_utc(asked.size() == 10 ? asked + "T00:00:00Z" : asked);
    if (!time) throw UsageError(fmt::format("--date is '{}'; expected 2026-11-03 or 2026-11-03T12:00:00Z", asked));
    return *time;
  }
  if (run.started && !run.started->empty()) {
    if (const auto time = parse_time_with_zone(*run.started)) return *time;
    run.notes.push_back(
        fmt::format("the file says that it was measured at '{}', without a time zone; the time of the "
                    "file counts, unless --date gives another",
                    one_line(*run.started)));
  }
  return changed_at(file);
}

// What is known of the machine that made the result, which is not this one.
std::string environment_of(const std::string& file_name, const std::string& sha256, const Format& format,
                           const std::string& host, const std::string& revision, const std::vector<std::string>& notes,
                           std::size_t earlier) {
  Json environment{{"schema", 1}, {"imported", {{"format", format.name}, {"file", file_name}, {"sha256", sha256}}}};
  // Another measurement has another environment than the earlier one, and is no copy of it.
  if (earlier > 0) environment["imported"]["again"] = earlier;
  if (!notes.empty()) environment["imported"]["notes"] = notes;
  if (!host.empty()) environment["os"] = {{"hostname", host}};
  if (!revision.empty()) environment["assay"] = {{"revision", revision}};
  return environment.dump(2, ' ', false, Json::error_handler_t::replace);
}

// Which files the runs of an experiment were imported from, by their content. Each run's environment is read once,
// however many files are imported.
class EarlierImports {
 public:
  // The run that has the same file; nothing where there is none. `stamp`: of the time that the user gives, which
  // distinguishes measurements; "" where he gives none.
  std::optional<fs::path> find(const fs::path& runs, const std::string& sha256, const std::string& stamp) {
    const auto [first, last] = of(runs).equal_range(sha256);
    for (auto each = first; each != last; ++each)
      if (each->second.filename().string().starts_with(stamp)) return each->second;
    return std::nullopt;
  }
  std::size_t count(const fs::path& runs, const std::string& sha256) { return of(runs).count(sha256); }
  void add(const fs::path& runs, const std::string& sha256, const fs::path& run) { of(runs).emplace(sha256, run); }

 private:
  using Runs = std::multimap<std::string, fs::path>;  // by the hash of a file
  Runs& of(const fs::path& folder) {
    const auto [known, is_new] = by_folder_.try_emplace(folder);
    if (is_new) known->second = read(folder);
    return known->second;
  }
  static Runs read(const fs::path& folder) {
    Runs runs;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      const fs::path environment = entry.path() / "environment.json", cases = entry.path() / "cases.jsonl";
      if (entry.is_symlink(error) || !fs::is_regular_file(environment, error)) continue;
      if (!fs::exists(cases, error) || fs::file_size(cases, error) == 0) continue;
      const auto facts = record::Environment::parse(read_regular_file(environment));
      const std::string sha256 = facts ? facts->fact_or("imported.sha256", "") : "";
      if (!sha256.empty()) runs.emplace(sha256, entry.path());
    }
    return runs;
  }

  std::map<fs::path, Runs> by_folder_;
};

// A run is identified by its experiment. This one cannot be run, and says so to whoever tries.
std::string experiment_of(const std::string& name, const Format& format, const fs::path& file) {
  return fmt::format(
      "# Imported by `assay import` from {} ({}). There is nothing to run.\nschema = 1\nname = "
      "\"{}\"\n\n[workload]\nplugin = "
      "\"imported from {}\"\n",
      one_line(file.filename().string()), format.name, name, format.name);
}

// A file that was read and understood; nothing of it is written yet.
struct ReadFile {
  fs::path file;
  const Format* format;
  std::string sha256, host;
  ImportedRun run;
  WallTime time;
};

ReadFile read_one(const fs::path& file, const ImportRequest& request) try {
  // A pipe can be read once.
  const std::string bytes = read_file(file);
  Sha256 hash;
  hash.add(bytes);
  const std::string text = as_utf8(bytes);
  const Format& format = format_of(text, request.format.value_or(""));
  ImportOptions options;
  options.file_name = file.filename().string();
  options.name = request.name.value_or("");
  options.step_ms = step_metrics(request.step);
  ImportedRun run = format.read(text, options);
  if (request.experiment) run.name = folder_name(*request.experiment);
  fail_contradictions(run.records);
  if (const std::size_t repeats = number_repeats(run.records); repeats > 0)
    run.notes.push_back(fmt::format("{} of its cases cannot be distinguished; they become repeats", repeats));
  const WallTime time = time_of(file, run, request.date.value_or(""));
  const std::string host = request.host.value_or(run.host);
  return {file, &format, hash.hex(), host, std::move(run), time};
} catch (const ImportError& e) {
  throw UsageError(fmt::format("{}: {}", one_line(file.string()), e.what()));
}

void write_run(ReadFile& read, const ImportRequest& request, EarlierImports& imports) {
  const std::string shown = one_line(read.file.string());
  const fs::path dir = request.output.value_or("results");
  if (!request.again)
    if (const auto earlier = imports.find(dir / read.run.name, read.sha256, request.date ? utc_stamp(read.time) : "")) {
      fmt::print("{}: nothing to do: {} has the same file ({} imports it once more, as another measurement)\n", shown,
                 earlier->string(), "--again");
      return;
    }
  results::RunFolder folder =
      results::RunFolder::create(dir, read.run.name, experiment_of(read.run.name, *read.format, read.file),
                                 environment_of(read.file.filename().string(), read.sha256, *read.format, read.host,
                                                request.revision.value_or(read.run.revision), read.run.notes,
                                                imports.count(dir / read.run.name, read.sha256)),
                                 read.time);
  folder.leave_latest_to_newer();
  for (record::CaseRecord& record : read.run.records) {
    record.started = utc_text(read.time);
    if (request.host || record.host.empty()) record.host = read.host;
    record.environment = folder.environment_id();
    if (request.device) {
      if (!record.result.device) record.result.device.emplace();
      record.result.device->name = *request.device;
    }
  }
  folder.append_all(read.run.records);
  imports.add(dir / read.run.name, read.sha256, folder.path());
  for (const std::string& note : read.run.notes) fmt::print(stderr, "assay: {}: {}\n", shown, one_line(note));
  fmt::print("{}: {} {} as {} ({}), {}\n", shown, read.run.records.size(),
             read.run.records.size() == 1 ? "case" : "cases", folder.path().string(), read.format->name,
             utc_text(read.time));
}

}  // namespace

std::string format_list() { return host::format_list(all_formats()); }

int import_files(const ImportRequest& request) {
  // All are read before one is written: what is repeated after a mistake doubles nothing.
  std::vector<ReadFile> files;
  for (const std::string& file : request.files) files.push_back(read_one(file, request));
  EarlierImports imports;
  for (ReadFile& file : files) write_run(file, request, imports);
  return exit_ok;
}

}  // namespace assay::host::imports
