// Results as workers of several ranks send them, from a few samples: tests change their JSON, and merge it as the host
// does.
#pragma once
#include "measure/statistics.hpp"
#include "record/figures.hpp"
#include "record/json.hpp"
#include "record/merge.hpp"

#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace assay::host {

using Json = nlohmann::ordered_json;

struct RankPart {
  int rank = 0;
  std::string host;
  Json part;
  std::string device_id = {};
};

inline std::vector<record::RankPart> typed(const std::vector<RankPart>& parts) {
  std::vector<record::RankPart> ranks;
  for (const RankPart& part : parts)
    ranks.push_back({part.rank, part.host, record::result_from_json(part.part).value(), part.device_id});
  return ranks;
}
// With null for what is no number.
inline Json as_written(const record::CaseResult& result) {
  return Json::parse(record::json_text(record::to_json(result)));
}
inline Json merge_ranks(const std::vector<RankPart>& parts, double confidence) {
  return as_written(record::merge_ranks(typed(parts), confidence));
}
inline Json merge_failed_ranks(const std::vector<RankPart>& parts, std::size_t culprit) {
  return as_written(record::merge_failed_ranks(typed(parts), culprit));
}

inline Json step_metric(const char* unit, Direction direction, const std::vector<double>& samples) {
  record::CaseResult result;
  result.step_metrics.emplace().emplace_back("metric", record::StepMetric{unit, direction});
  record::set_metric_figures(result.step_metrics->front().second, samples, 0.95);
  return record::to_json(result)["step_metrics"]["metric"];
}

inline Json part_of(const std::vector<double>& step_ms, const std::vector<double>& wait_ms) {
  const double mean_ms = measure::summarize(step_ms).mean;
  record::CaseResult result;
  result.stage = Stage::done;
  result.notes.emplace();
  result.wall.setup_s = 0.5, result.wall.case_s = 2.0;
  result.device.emplace();
  result.device->kind = "cpu";
  result.device->ordinal = 0;
  result.device->name = "a processor";
  result.work = {2'000'000, 0, 10, "tokens"};
  result.verify = {record::Verification::ok, "equal"};
  result.phases = {{"step", record::phase_figures(step_ms, mean_ms, mean_ms, 0.95)},
                   {"wait", record::phase_figures(wait_ms, 0.25, mean_ms, 0.95)}};
  result.phases->front().second.device_mean_ms = mean_ms / 2;
  result.step_metrics.emplace();
  result.rates = record::rate_figures(2e6, 0, 10, mean_ms);
  result.drift = std::numeric_limits<double>::quiet_NaN();
  result.metrics.emplace();
  result.memory.emplace();
  result.memory->moments.emplace();
  result.memory->peak_mib.emplace();
  result.memory->process_peak_mib = 10.0;
  return as_written(result);
}

// Rank r on host "n<r>", each with a steady step; change what a test is about.
inline std::vector<RankPart> three_ranks() {
  return {{0, "n0", part_of({20, 20, 22, 20}, {1, 1, 1, 1})},
          {1, "n1", part_of({21, 19, 20, 21}, {2, 2, 2, 5})},
          {2, "n2", part_of({22, 21, 21, 19}, {3, 3, 6, 3})}};
}

}  // namespace assay::host
