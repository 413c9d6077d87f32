// The file of hyperfine's --export-json: for each command its times in seconds, and with what each run ended. Since
// version 2 each run is an object of measurements with their units.
#include <fmt/format.h>

#include <algorithm>

#include "common/text_format.hpp"
#include "imports/making_records.hpp"

namespace assay::host::imports {
namespace {

struct Runs {
  std::vector<double> times_ms, peak_mib;
  std::size_t count = 0, failed = 0;
  std::string first_failure;
  std::string impossible;  // what is wrong with the first figure that cannot be
};

std::string shortened(const Json& value) {
  if (value.is_structured()) return "a list or an object";
  return fit_to_width(value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace), 40);
}

void note_impossible(std::string text, Runs& runs) {
  if (runs.impossible.empty()) runs.impossible = std::move(text);
}

void add_time_s(double seconds, Runs& runs) {
  if (!is_time_ms(seconds * 1e3))
    note_impossible(
        fmt::format("one of its times is {} s{}", seconds,
                    seconds == 0 ? " (hyperfine takes the time of a shell off each; measure with --shell=none)" : ""),
        runs);
  runs.times_ms.push_back(seconds * 1e3);
}

void add_peak_bytes(double bytes, Runs& runs) {
  constexpr double bytes_of_mib = 1048576.0;
  if (!(bytes >= 0)) note_impossible(fmt::format("one of its peaks of memory is {} bytes", bytes), runs);
  runs.peak_mib.push_back(bytes / bytes_of_mib);
}

void note_exit(const Json& code, Runs& runs) {
  if (code == 0) return;
  ++runs.failed;
  if (runs.first_failure.empty())
    runs.first_failure = code.is_null() ? "killed by a signal" : "exit code " + shortened(code);
}

// {"value": 1.0, "unit": "second"}
std::optional<double> measured(const Json& run, const char* name, const char* unit) {
  const auto found = run.find(name);
  if (found == run.end() || text_at(*found, "unit") != unit) return std::nullopt;
  return number_at(*found, "value");
}

Runs runs_of(const Json& result) {
  Runs runs;
  if (const auto times = result.find("times"); times != result.end() && times->is_array()) {
    for (const Json& time : *times)
      if (const auto s = number_of(time))
        add_time_s(*s, runs);
      else
        note_impossible("one of its times is no number: " + shortened(time), runs);
    runs.count = times->size();
  }
  if (const auto codes = result.find("exit_codes"); codes != result.end() && codes->is_array())
    for (const Json& code : *codes) note_exit(code, runs);
  if (const auto peaks = result.find("memory_usage_byte"); peaks != result.end() && peaks->is_array())
    for (const Json& peak : *peaks)
      if (const auto bytes = number_of(peak)) add_peak_bytes(*bytes, runs);
  if (const auto all = result.find("measurements"); all != result.end() && all->is_array())
    for (const Json& run : *all) {
      if (!run.is_object()) continue;
      ++runs.count;
      if (const auto s = measured(run, "time_wall_clock", "second"))
        add_time_s(*s, runs);
      else
        note_impossible("one of its runs has no time in seconds", runs);
      if (const auto bytes = measured(run, "memory_peak_resident", "byte")) add_peak_bytes(*bytes, runs);
      if (const auto code = run.find("exit_code"); code != run.end()) note_exit(*code, runs);
    }
  return runs;
}

}  // namespace

ImportedRun read_hyperfine(std::string_view text, const ImportOptions& options) {
  const Json root = parsed(text);
  const auto results = root.is_object() ? root.find("results") : root.end();
  if (!root.is_object() || results == root.end() || !results->is_array() || results->empty())
    throw ImportError("there is no list \"results\"; expected the file of hyperfine's --export-json");
  ImportedRun run;
  for (const Json& result : *results) {
    if (!result.is_object()) continue;
    record::CaseRecord record = new_record("hyperfine", run.records.size());
    record.identity.params.emplace_back("command", text_at(result, "command"));
    if (const auto values = result.find("parameters"); values != result.end() && values->is_object())
      for (const auto& [key, value] : values->items()) {
        // Texts, whatever they say: a scan has numbers in them.
        const auto plain = value.is_string() ? std::optional(value_of_text(value.get<std::string>())) : value_of(value);
        if (plain) record.identity.params.emplace_back(key, *plain);
      }
    const Runs runs = runs_of(result);
    if (runs.failed > 0) {
      fail(record, fmt::format("{} in {} of {} runs", runs.first_failure, runs.failed, runs.count));
    } else if (!runs.impossible.empty()) {
      fail(record, runs.impossible);
    } else if (!runs.times_ms.empty()) {
      record.result.phases.emplace();
      record.result.phases->emplace_back("step", step_of_samples(runs.times_ms));
    } else if (const auto mean = number_at(result, "mean"); mean && is_time_ms(*mean * 1e3)) {
      const auto std = spread_of(number_at(result, "stddev"));
      record.result.phases.emplace();
      record.result.phases->emplace_back(
          "step", step_of_mean(*mean * 1e3, std ? std::optional(*std * 1e3) : std::nullopt, std::nullopt));
    } else {
      fail(record, "it has neither times nor a mean that is one");
    }
    if (record.result.is_ok())
      for (const char* name : {"user", "system"})
        if (const auto time_s = number_at(result, name))
          add_metric(record, std::string(name) + "_ms", *time_s * 1e3, "ms", Direction::lower_is_better);
    if (!runs.peak_mib.empty() && runs.impossible.empty()) {
      record.result.memory.emplace();
      record.result.memory->process_peak_mib = *std::max_element(runs.peak_mib.begin(), runs.peak_mib.end());
    }
    run.records.push_back(std::move(record));
  }
  if (const auto metadata = root.find("metadata"); metadata != root.end())
    if (const std::string started = text_at(*metadata, "start_time"); !started.empty()) run.started = started;
  set_axes(run.records);
  run.name = folder_name(options.name.empty() ? "hyperfine" : options.name);
  return run;
}

}  // namespace assay::host::imports
