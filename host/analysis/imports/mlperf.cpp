// Lines of MLPerf's log (":::MLLOG {...}"): points, and beginnings and ends of intervals, each with a key, a value and
// a time in milliseconds. A run is from run_start to run_stop; its time is the result. What stands before are its
// settings.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "imports/log_text.hpp"
#include "imports/making_records.hpp"

namespace assay::host::imports {
namespace {

struct OpenRun {
  std::map<std::string, std::optional<std::int64_t>> started;  // intervals that are open, by their names
  record::Named<std::vector<double>> series;                   // of points and of intervals, in their order
  std::optional<std::int64_t> run_started;
  bool is_stopped = false;
};

void add_value(const std::string& name, double value, OpenRun& run) {
  for (auto& [known, values] : run.series)
    if (known == name) return values.push_back(value);
  run.series.push_back({name, {value}});
}

// A setting stands once in the parameters; one that is told again with another value keeps both.
void add_setting(const std::string& key, const Json& value, record::Named<Value>& params) {
  const auto plain = value.is_structured() ? std::optional<Value>(value.dump()) : value_of(value);
  if (!plain) return;
  for (auto& [known, before] : params)
    if (known == key) {
      if (to_text(before) != to_text(*plain)) before = to_text(before) + "," + to_text(*plain);
      return;
    }
  params.emplace_back(key, *plain);
}

void finish(OpenRun& run, record::CaseRecord& record) {
  if (record.result.is_ok() && !run.is_stopped)
    fail(record, "it has no run_stop: it ended early, or the log was cut off");
  if (!record.result.is_ok()) return;
  record.result.step_metrics.emplace();
  for (const auto& [name, values] : run.series) {
    record::StepMetric metric;
    metric.unit = name.ends_with("_ms") ? "ms" : "";
    record::set_metric_figures(metric, values, 0.95);
    record.result.step_metrics->emplace_back(name, metric);
  }
}

// Tells intervals of one name apart that overlap; "" where no epoch is named.
std::string epoch_of(const Json& event) {
  const auto metadata = event.find("metadata");
  const auto number = metadata == event.end() ? std::nullopt : number_at(*metadata, "epoch_num");
  return number ? fmt::format(" {}", *number) : "";
}

void take_event(const Json& event, OpenRun& run, record::CaseRecord& record, std::set<std::string>& others) {
  const std::string key = text_at(event, "key"), type = text_at(event, "event_type");
  const auto time_ms = count_of(number_at(event, "time_ms"));
  static const Json none;
  const auto found = event.find("value");
  const Json& value = found == event.end() ? none : *found;
  if (key == "run_start") {
    run.run_started = time_ms;
  } else if (key == "run_stop") {
    run.is_stopped = true;
    const auto metadata = event.find("metadata");
    const std::string status = metadata == event.end() ? "" : text_at(*metadata, "status");
    if (status != "success")
      return fail(record, "run_stop has the status '" + (status.empty() ? "none" : status) + "'");
    const double ms = run.run_started && time_ms ? static_cast<double>(*time_ms - *run.run_started) : 0;
    if (!is_time_ms(ms)) return fail(record, "the time from run_start to run_stop is none");
    record.result.phases.emplace();
    record.result.phases->emplace_back("step", step_of_mean(ms, std::nullopt, 1));
  } else if (type == "INTERVAL_START" && key.ends_with("_start")) {
    run.started[key.substr(0, key.size() - 6) + epoch_of(event)] = time_ms;
  } else if (type == "INTERVAL_END" && key.ends_with("_stop")) {
    const std::string name = key.substr(0, key.size() - 5);
    const auto begin = run.started.find(name + epoch_of(event));
    if (begin != run.started.end() && begin->second && time_ms)
      add_value(name + "_ms", static_cast<double>(*time_ms - *begin->second), run);
    if (begin != run.started.end()) run.started.erase(begin);
  } else if (!run.run_started) {
    if (value.is_null()) return;
    add_setting(key, value, record.identity.params);
  } else if (value.is_object()) {
    for (const auto& [part, figure] : value.items())
      if (const auto number = number_of(figure)) add_value(part, *number, run);
  } else if (const auto number = number_of(value)) {
    add_value(key, *number, run);
  } else if (!value.is_null()) {
    others.insert(key);
  }
}

}  // namespace

ImportedRun read_mlperf(std::string_view text, const ImportOptions& options) {
  ImportedRun run;
  OpenRun open;
  std::set<std::string> others, seen;
  std::size_t doubles = 0, torn = 0;
  std::optional<std::int64_t> first_start;
  const auto finish_last = [&] {
    if (!run.records.empty()) finish(open, run.records.back());
    open = {};
  };
  for (const LogLine& line : log_lines(text)) {
    constexpr std::string_view mark = ":::MLLOG ";
    const std::size_t at = line.text.find(mark);
    if (at == line.text.npos) continue;
    const std::string body(line.text.substr(at + mark.size()));
    Json event = Json::parse(body, nullptr, /*allow_exceptions=*/false);
    if (!event.is_object() || text_at(event, "key").empty()) {
      ++torn;
      continue;
    }
    // Ranks may each log the same line.
    if (!seen.insert(body).second) {
      ++doubles;
      continue;
    }
    const std::string key = text_at(event, "key");
    // Ranks may each log their start.
    const bool is_start = key == "run_start";
    if (is_start && open.run_started && !open.is_stopped && open.series.empty() && open.started.empty()) {
      ++doubles;
      continue;
    }
    // Only a beginning opens another run behind run_stop: a run may sum itself up there.
    const bool begins_anew =
        open.is_stopped && (is_start || key == "cache_clear" || key == "init_start" || key.starts_with("submission_"));
    if (run.records.empty() || begins_anew || (is_start && open.run_started)) {
      finish_last();
      run.records.push_back(new_record("mlperf", run.records.size()));
    }
    take_event(event, open, run.records.back(), others);
    if (!first_start) first_start = open.run_started;
  }
  constexpr std::int64_t latest_ms = 9'000'000'000'000;  // within 64-bit nanoseconds
  if (first_start && *first_start > 0 && *first_start < latest_ms)
    run.started = utc_text(WallTime(std::chrono::milliseconds(*first_start)));
  if (run.records.empty()) throw ImportError("there is no line of MLPerf's log (:::MLLOG {...})");
  finish_last();
  for (record::CaseRecord& record : run.records)
    if (const Value* name = record::find(record.identity.params, "submission_benchmark"))
      record.identity.workload = "mlperf:" + to_text(*name);
  if (torn > 0) run.notes.push_back(fmt::format("lines torn by other output and left out: {}", torn));
  if (doubles > 0)
    run.notes.push_back(fmt::format("lines that stand there more than once, and count once: {}", doubles));
  if (!others.empty())
    run.notes.push_back(fmt::format("left out, since they are no numbers: {}", fmt::join(others, ", ")));
  set_axes(run.records);
  run.name = folder_name(options.name.empty() ? run.records[0].identity.workload : options.name);
  return run;
}

}  // namespace assay::host::imports
