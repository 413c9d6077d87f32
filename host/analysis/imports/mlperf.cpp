// Lines of MLPerf's log (":::MLLOG {...}"): points, and beginnings and ends of intervals, each with a key, a value and
// a time in milliseconds. A run is from run_start to run_stop; its time is the result. What stands before are its
// settings.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "common/utc.hpp"
#include "imports/mlperf_events.hpp"

namespace assay::host::imports {
namespace {

struct OpenRun {
  std::map<std::string, std::optional<double>> started;  // ms; intervals that are open, by their names
  record::Named<std::vector<double>> series;             // of points and of intervals, in their order
  std::optional<double> run_started;                     // ms
  bool is_stopped = false;
};

void add_value(const std::string& name, double value, OpenRun& run) {
  for (auto& [known, values] : run.series)
    if (known == name) return values.push_back(value);
  run.series.push_back({name, {value}});
}

// A setting stands once in the parameters; one that is logged again with another value keeps both.
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
    metric.unit = unit_in_name(name);
    record::set_metric_figures(metric, values, 0.95);
    record.result.step_metrics->emplace_back(name, metric);
  }
}

// Distinguishes overlapping intervals of one name; "" where no epoch is named.
std::string epoch_of(const Json& event) {
  const auto metadata = event.find("metadata");
  if (metadata == event.end()) return "";
  for (const char* key : {"epoch_num", "first_epoch_num"})
    if (const auto number = number_at(*metadata, key)) return fmt::format(" {}", *number);
  return "";
}

// Numbers; those within an object by their names there, and deeper ones by dotted names: "throughput", "memory.peak".
void add_numbers(const std::string& name, const Json& value, OpenRun& run, std::set<std::string>& others,
                 int depth = 0) {
  if (value.is_object()) {
    for (const auto& [part, figure] : value.items())
      add_numbers(depth == 0 ? part : name + "." + part, figure, run, others, depth + 1);
  } else if (const auto number = number_of(value)) {
    add_value(name, *number, run);
  } else {
    others.insert(name);
  }
}

void end_interval(const std::string& name, const Json& event, std::optional<double> time_ms, OpenRun& run,
                  std::set<std::string>& others) {
  const auto begin = run.started.find(name + epoch_of(event));
  if (begin == run.started.end() || !begin->second || !time_ms) {
    others.insert(name + "_stop without its start");
  } else {
    add_value(name + "_ms", *time_ms - *begin->second, run);
  }
  if (begin != run.started.end()) run.started.erase(begin);
}

void take_event(const Json& event, OpenRun& run, record::CaseRecord& record, std::set<std::string>& others) {
  const std::string key = text_at(event, "key"), type = text_at(event, "event_type");
  const auto time_ms = number_at(event, "time_ms");
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
    const double ms = run.run_started && time_ms ? *time_ms - *run.run_started : 0;
    if (!is_time_ms(ms)) return fail(record, "run_stop does not come after run_start");
    record.result.phases.emplace();
    record.result.phases->emplace_back("step", step_of_mean(ms, std::nullopt, 1));
  } else if (type == "INTERVAL_START" && key.ends_with("_start")) {
    run.started[key.substr(0, key.size() - 6) + epoch_of(event)] = time_ms;
  } else if (type == "INTERVAL_END" && key.ends_with("_stop")) {
    end_interval(key.substr(0, key.size() - 5), event, time_ms, run, others);
  } else if (run.run_started) {
    add_numbers(key, value, run, others);
  } else if (!value.is_null()) {
    add_setting(key, value, record.identity.params);
  }
}

}  // namespace

ImportedRun read_mlperf(std::string_view text, const ImportOptions& options) {
  MlperfEvents log = mlperf_events(text);
  if (is_of_inference(log)) return read_mlperf_inference(log, options);
  ImportedRun run;
  OpenRun open;
  std::set<std::string> others;
  std::optional<double> first_start;
  const auto finish_last = [&] {
    if (!run.records.empty()) finish(open, run.records.back());
    open = {};
  };
  for (const Json& event : log.events) {
    const std::string key = text_at(event, "key");
    // Ranks may each log their start.
    const bool is_start = key == "run_start";
    if (is_start && open.run_started && !open.is_stopped && open.series.empty() && open.started.empty()) {
      ++log.doubles;
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
  constexpr double latest_ms = 9e12;  // within 64-bit nanoseconds
  if (first_start && *first_start > 0 && *first_start < latest_ms)
    run.started = utc_text(WallTime(std::chrono::milliseconds(static_cast<std::int64_t>(*first_start))));
  if (run.records.empty()) throw ImportError("there is no line of MLPerf's log (:::MLLOG {...})");
  finish_last();
  for (record::CaseRecord& record : run.records)
    if (const Value* name = record::find(record.identity.params, "submission_benchmark"))
      record.identity.workload = "mlperf:" + to_text(*name);
  note_lines(log, run);
  if (!others.empty())
    run.notes.push_back(fmt::format("left out, since they are no numbers: {}", fmt::join(others, ", ")));
  set_axes(run.records);
  run.name = folder_name(options.name.empty() ? run.records[0].identity.workload : options.name);
  return run;
}

}  // namespace assay::host::imports
