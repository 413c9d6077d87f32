#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <variant>

#include "common/utc.hpp"
#include "common/value.hpp"
#include "exports/exported_case.hpp"
#include "exports/formats.hpp"

namespace assay::host::exports {
namespace {

using Json = nlohmann::ordered_json;

// The lines of one case, whose time advances with each interval. `line` counts those of all cases: no two are the same,
// as where several ranks have logged one.
class CaseLines {
 public:
  CaseLines(const record::CaseRecord& record, std::int64_t& line) : line_(line) {
    if (const auto started = parse_utc(record.started))
      time_ms_ = std::chrono::duration_cast<std::chrono::milliseconds>(started->time_since_epoch()).count();
  }
  void add(const char* type, const std::string& key, const Json& value, const Json& more = Json::object()) {
    Json metadata{{"file", "assay"}, {"lineno", ++line_}};
    metadata.update(more);
    const Json line{{"namespace", ""}, {"time_ms", time_ms_}, {"event_type", type},
                    {"key", key},      {"value", value},      {"metadata", metadata}};
    text_ += ":::MLLOG " + line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  void point(const std::string& key, const Json& value) { add("POINT_IN_TIME", key, value); }
  // Times are whole milliseconds, and an end is not its beginning.
  void go_on(double ms) { time_ms_ += std::max<std::int64_t>(1, static_cast<std::int64_t>(ms + 0.5)); }
  const std::string& text() const { return text_; }

 private:
  std::int64_t& line_;
  std::int64_t time_ms_ = 0;
  std::string text_;
};

Json json_of(const Value& value) {
  return std::visit([](const auto& each) { return Json(each); }, value);
}

std::string lines_of(const record::CaseRecord& record, std::int64_t& line) {
  CaseLines lines(record, line);
  lines.point("submission_benchmark", record.identity.workload);
  lines.point("submission_platform", record.result.device ? record.result.device->name : "");
  if (record.identity.ranks) lines.point("ranks", *record.identity.ranks);
  for (const auto& [name, value] : record.identity.params) lines.point(name, json_of(value));
  lines.add("INTERVAL_START", "run_start", nullptr);
  Json stats = Json::object();
  const record::Phase* step = record::step_of(record.result);
  if (step && step->mean_ms) {
    lines.go_on(*step->mean_ms * static_cast<double>(step->n.value_or(1)));
    stats["step_mean_ms"] = *step->mean_ms;
  }
  if (const auto& rates = record.result.rates; rates && rates->items_per_s) stats["throughput"] = *rates->items_per_s;
  if (record.result.metrics)
    for (const auto& [name, metric] : *record.result.metrics)
      if (!metric.word && metric.value == metric.value) stats[name] = metric.value;
  if (!stats.empty()) lines.point("tracked_stats", stats);
  lines.add("INTERVAL_END", "run_stop", nullptr, {{"status", record.result.is_ok() ? "success" : "aborted"}});
  return lines.text();
}

}  // namespace

std::string mlperf_lines(const std::vector<results::TabledRun>& runs) {
  std::string text;
  std::int64_t line = 0;
  for (const results::TabledRun& run : runs)
    for (const record::CaseRecord& record : run.records) text += lines_of(record, line);
  return text;
}

}  // namespace assay::host::exports
