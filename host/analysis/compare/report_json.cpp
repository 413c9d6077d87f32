// A comparison as JSON, for programs.
#include "compare/report.hpp"
#include "record/json.hpp"

#include <nlohmann/json.hpp>

namespace assay::host::compare {
namespace {

using Json = nlohmann::ordered_json;

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json entry_json(const Comparison& comparison, const Entry& entry, std::size_t side) {
  constexpr const char* kinds[] = {"baseline", "compared", "refused", "missing"};
  return {{"side", comparison.sides[side].label},
          {"state", kinds[static_cast<std::size_t>(entry.kind)]},
          {"value", number(entry.value)},
          {"word", entry.word ? Json(*entry.word) : Json()},
          {"ratio", number(entry.ratio)},
          {"low", number(entry.low)},
          {"high", number(entry.high)},
          {"verdict", entry.verdict},
          {"statistic", entry.value ? statistic_name(entry.statistic) : ""},
          {"other_statistic", entry.other_ratio ? statistic_name(other_than(entry.statistic)) : ""},
          {"other_ratio", number(entry.other_ratio)},
          {"from_samples", entry.by_samples},
          {"runs", entry.runs},
          {"p_value", number(entry.chance)},
          {"p_adjusted", number(entry.adjusted_chance)},
          {"runs_to_settle", entry.runs_to_settle ? Json(*entry.runs_to_settle) : Json()},
          {"items_per_dollar", number(entry.items_per_dollar)},
          {"reason", entry.reason},
          {"notes", entry.notes}};
}

Json case_json(const Comparison& comparison, const ComparedCase& c) {
  Json axes = Json::object(), entries = Json::array();
  for (std::size_t i = 0; i < comparison.axes.size(); ++i)
    if (!c.axis_values[i].empty()) axes.emplace(comparison.axes[i], c.axis_values[i]);
  for (std::size_t s = 0; s < c.entries.size(); ++s) entries.push_back(entry_json(comparison, c.entries[s], s));
  return {{"workload", c.workload}, {"axes", axes}, {"unit", c.unit}, {"sides", std::move(entries)}};
}

}  // namespace

std::string comparison_json(const Comparison& comparison, const TestOptions& test) {
  Json sides = Json::array(), differences = Json::array(), metrics = Json::array();
  for (std::size_t s = 0; s < comparison.sides.size(); ++s) {
    const Side& side = comparison.sides[s];
    const SideFacts& facts = comparison.side_facts[s];
    Json runs = Json::array();
    for (const ComparedRun& run : side.runs) runs.push_back(run.path);
    sides.push_back({{"label", side.label},
                     {"from", side.name},
                     {"inputs", facts.inputs},
                     {"started", facts.started},
                     {"runs", std::move(runs)}});
  }
  for (const Difference& difference : comparison.differences.items)
    differences.push_back({{"item", difference.item}, {"values", difference.values}});
  for (const ComparedMetric& metric : comparison.metrics) {
    Json cases = Json::array();
    for (const ComparedCase& c : metric.cases) cases.push_back(case_json(comparison, c));
    metrics.push_back({{"name", metric.name}, {"cases", std::move(cases)}});
  }
  const Json out{{"schema", 1},
                 {"sides", std::move(sides)},
                 {"side_notes", comparison.side_notes},
                 {"differences", std::move(differences)},
                 {"test",
                  {{"threshold", test.threshold},
                   {"confidence", test.confidence},
                   {"run_to_run", test.run_to_run},
                   {"states", test.states},
                   {"family", comparison.family},
                   {"statistic", statistic_name(test.statistic)}}},
                 {"metrics", std::move(metrics)},
                 {"unmatched", comparison.unmatched},
                 {"unknown", comparison.unknown}};
  return record::json_text(out, 2) + "\n";
}

}  // namespace assay::host::compare
