// Trace events ("X" for what lasts, "C" for a figure over time, "M" for names), with times in microseconds:
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. A record has when its case began and
// how long its stages took, not when each began: they stand one behind another, and so do the steps.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <variant>

#include "common/utc.hpp"
#include "common/value.hpp"
#include "exports/exported_case.hpp"
#include "exports/formats.hpp"
#include "record/json.hpp"

namespace assay::host::exports {
namespace {

using Json = nlohmann::ordered_json;

constexpr int track_of_cases = 1, track_of_steps = 2;

class Trace {
 public:
  void name_process(int process, const std::string& name) { add_name("process_name", process, 0, name); }
  void name_track(int process, int track, const std::string& name) { add_name("thread_name", process, track, name); }
  void slice(int process, int track, const std::string& name, double begin_us, double us, const Json& args = {}) {
    Json event{{"ph", "X"}, {"pid", process}, {"tid", track}, {"name", name}, {"ts", begin_us}, {"dur", us}};
    if (!args.is_null()) event["args"] = args;
    add(event);
  }
  void figure(int process, const std::string& name, double at_us, double value) {
    add({{"ph", "C"}, {"pid", process}, {"name", name}, {"ts", at_us}, {"args", {{"value", value}}}});
  }
  std::string text(const std::string& started) const {
    return fmt::format(R"({{"displayTimeUnit":"ms","otherData":{{"started":{}}},"traceEvents":[{}]}})",
                       record::json_text(started), events_) +
           "\n";
  }

 private:
  void add_name(const char* what, int process, int track, const std::string& name) {
    add({{"ph", "M"}, {"pid", process}, {"tid", track}, {"name", what}, {"args", {{"name", name}}}});
  }
  // As text at once: a sweep has millions of events.
  void add(const Json& event) {
    if (!events_.empty()) events_ += ',';
    events_ += record::json_text(event);
  }
  std::string events_;
};

Json args_of(const record::CaseRecord& record) {
  Json args{{"status", record.result.status_text()}};
  if (!record.result.reason.empty()) args["reason"] = record.result.reason;
  for (const auto& [name, value] : record.identity.params)
    args[name] = std::visit([](const auto& each) { return Json(each); }, value);
  return args;
}

void add_steps(const record::CaseRecord& record, int process, double begin_us, Trace& trace) {
  const record::Phase* step = record::step_of(record.result);
  if (!step) return;
  const double inner = static_cast<double>(
      record.result.sampling ? std::max<std::int64_t>(1, record.result.sampling->inner.value_or(1)) : 1);
  const char* name = inner > 1 ? "steps of a sample" : "step";
  for (const double ms : step->samples_ms) {
    const double us = ms * inner * 1e3;
    trace.slice(process, track_of_steps, name, begin_us, us);
    trace.figure(process, "step [ms]", begin_us, ms);
    begin_us += us;
  }
}

// Returns its end.
double add_case(const record::CaseRecord& record, int process, double begin_us, Trace& trace) {
  const record::WallTimes& wall = record.result.wall;
  double stage_us = begin_us, measure_us = begin_us;
  std::vector<std::pair<const char*, double>> stages;
  for (const record::WallTimes::Row& row : record::WallTimes::stages())
    if (const record::Number& seconds = wall.*row.time; seconds && *seconds > 0)
      stages.emplace_back(row.name, *seconds * 1e6);
  double all_us = 0;
  for (const auto& [name, us] : stages) all_us += us;
  // An imported case has steps alone.
  if (const record::Phase* step = record::step_of(record.result); stages.empty() && step && step->mean_ms)
    all_us = *step->mean_ms * 1e3 * static_cast<double>(std::max<std::int64_t>(1, step->n.value_or(1)));
  trace.slice(process, track_of_cases, name_of(record), begin_us, std::max(all_us, wall.case_s.value_or(0) * 1e6),
              args_of(record));
  for (const auto& [name, us] : stages) {
    if (name == std::string_view("measure")) measure_us = stage_us;
    trace.slice(process, track_of_cases, name, stage_us, us);
    // The steps that are taken once more are the first part of it.
    if (name == std::string_view("verify") && wall.repeat_s.value_or(0) > 0)
      trace.slice(process, track_of_cases, "repeat", stage_us, *wall.repeat_s * 1e6);
    stage_us += us;
  }
  add_steps(record, process, measure_us, trace);
  return begin_us + std::max(all_us, wall.case_s.value_or(0) * 1e6);
}

}  // namespace

std::string chrome_trace(const std::vector<results::TabledRun>& runs) {
  // Counted from the first start: doubles hold microseconds since 1970 to a quarter alone.
  std::string first;
  for (const results::TabledRun& run : runs)
    for (const record::CaseRecord& record : run.records)
      if (parse_utc(record.started) && (first.empty() || record.started < first)) first = record.started;
  const auto base = parse_utc(first);
  Trace trace;
  int process = 0;
  for (const results::TabledRun& run : runs) {
    trace.name_process(++process, run.source.experiment + " " + run.source.run);
    trace.name_track(process, track_of_cases, "cases");
    trace.name_track(process, track_of_steps, "steps");
    double end_us = 0;
    for (const record::CaseRecord& record : run.records) {
      double begin_us = end_us;
      // Times of starts are whole seconds: a case does not begin before the one ahead of it has ended.
      if (const auto started = parse_utc(record.started); started && base)
        begin_us = std::max(begin_us, std::chrono::duration<double, std::micro>(*started - *base).count());
      end_us = add_case(record, process, begin_us, trace);
    }
  }
  return trace.text(first);
}

}  // namespace assay::host::exports
