#include "report/comparison_data.hpp"

#include "common/text_format.hpp"
#include "compare/report.hpp"
#include "compare/report_tables.hpp"

namespace assay::host::report {
namespace {

using compare::Comparison;
using compare::Entry;

// A figure as it is read, beside the ratio as it is drawn.
Json entry_json(const Entry& entry) {
  Json out = Json::object();
  if (entry.word) out["value"] = one_line(*entry.word);
  if (entry.value && !entry.word) out["value"] = significant_digits(*entry.value, entry.digits);
  switch (entry.kind) {
    case Entry::Kind::baseline: return out;
    case Entry::Kind::missing: out["reason"] = "no such case"; return out;
    case Entry::Kind::refused: out["reason"] = entry.reason; return out;
    case Entry::Kind::compared: break;
  }
  out["verdict"] = entry.verdict;
  if (entry.worse) out["worse"] = true;
  if (entry.ratio) out["ratio"] = rounded(entry.ratio);
  // An end that is null is open.
  if (entry.low || entry.high) out["interval"] = {rounded(entry.low), rounded(entry.high)};
  if (entry.other_ratio) out["other_ratio"] = rounded(entry.other_ratio);
  if (entry.runs_to_settle) out["runs_to_settle"] = *entry.runs_to_settle;
  if (!entry.notes.empty()) out["notes"] = entry.notes;
  return out;
}

Json metric_json(const Comparison& comparison, const compare::ComparedMetric& metric) {
  Json cases = Json::array();
  for (const compare::ComparedCase& c : metric.cases) {
    Json entries = Json::array();
    for (const Entry& entry : c.entries) entries.push_back(entry_json(entry));
    std::string name = one_line(compare::case_name(comparison, c));
    cases.push_back({{"label", name.empty() ? c.workload : name}, {"unit", c.unit}, {"sides", std::move(entries)}});
  }
  const char* better = metric.better == Direction::lower_is_better    ? "lower is better"
                       : metric.better == Direction::higher_is_better ? "higher is better"
                                                                      : "";
  return {{"name", metric.name},
          {"better", better},
          {"other_ratio", compare::other_ratio_column(comparison, metric)},
          {"cases", std::move(cases)}};
}

}  // namespace

Json comparison_json(const ReportedComparison& compared, const compare::TestOptions& test) {
  if (!compared.comparison) return {{"refusal", compared.refusal}};
  const Comparison& comparison = *compared.comparison;
  Json sides = Json::array(), differences = Json::array(), metrics = Json::array();
  for (std::size_t s = 0; s < comparison.sides.size(); ++s)
    sides.push_back({{"label", comparison.sides[s].label},
                     {"name", comparison.sides[s].name},
                     {"runs", comparison.sides[s].runs.size()},
                     {"inputs", comparison.side_facts[s].inputs}});
  for (const compare::Difference& difference : comparison.differences.items)
    differences.push_back({{"item", difference.item}, {"values", difference.values}});
  for (const compare::ComparedMetric& metric : comparison.metrics) metrics.push_back(metric_json(comparison, metric));
  return {{"sides", std::move(sides)},         {"differences", std::move(differences)},
          {"metrics", std::move(metrics)},     {"unmatched", comparison.unmatched},
          {"unknown", comparison.unknown},     {"notes", comparison.side_notes},
          {"test", compare::test_lines(test)}, {"threshold", test.threshold}};
}

}  // namespace assay::host::report
