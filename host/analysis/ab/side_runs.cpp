#include "ab/side_runs.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ab/side_cases.hpp"
#include "compare/inputs.hpp"
#include "compare/matching.hpp"
#include "results/case_text.hpp"
#include "results/reader.hpp"

namespace assay::host::ab {
namespace {

std::vector<compare::CaseInputs> inputs_of(const compare::Side& side) {
  std::vector<compare::CaseInputs> inputs;
  for (const compare::ComparedRun& run : side.runs)
    for (const record::CaseRecord& record : run.records) inputs.emplace_back(record);
  return inputs;
}

std::vector<std::string> axes_of(const compare::Side& a, const compare::Side& b) {
  std::vector<const record::CaseRecord*> records;
  for (const compare::Side* side : {&a, &b})
    for (const compare::ComparedRun& run : side->runs)
      for (const record::CaseRecord& record : run.records) records.push_back(&record);
  return compare::axes_of(records);
}

using Label = std::vector<std::optional<std::string>>;

std::map<Label, const compare::CaseInputs*> first_of_each_case(const std::vector<compare::CaseInputs>& inputs,
                                                               const std::vector<std::string>& telling) {
  std::map<Label, const compare::CaseInputs*> first;
  for (const compare::CaseInputs& each : inputs) {
    Label label;
    for (const std::string& axis : telling) label.push_back(each.value(axis));
    first.emplace(std::move(label), &each);
  }
  return first;
}

}  // namespace

std::set<std::string> differing_inputs(const compare::Side& a, const compare::Side& b) {
  const std::vector<compare::CaseInputs> all_a = inputs_of(a), all_b = inputs_of(b);
  const std::vector<std::string> telling =
      telling_axes(axes_of(a, b), all_a, all_b,
                   [](const compare::CaseInputs& inputs, const std::string& key) { return inputs.value(key); });
  std::set<std::string> differing;
  const auto of_b = first_of_each_case(all_b, telling);
  for (const auto& [label, inputs_a] : first_of_each_case(all_a, telling)) {
    const auto other = of_b.find(label);
    if (other == of_b.end()) continue;
    const compare::CaseInputs& inputs_b = *other->second;
    if (inputs_a->workload() != inputs_b.workload()) differing.insert(compare::across_workloads);
    for (const std::string& key : inputs_a->keys()) {
      const auto value_a = inputs_a->value(key), value_b = inputs_b.value(key);
      if (value_a && value_b && *value_a != *value_b) differing.insert(key);
    }
  }
  return differing;
}

SidesCompared compare_folders(const std::filesystem::path& a, const std::filesystem::path& b,
                              const compare::ComparisonOptions& options) {
  compare::Sides read = compare::read_sides({a.string(), b.string()}, compare::FolderOfRuns::one_side);
  compare::ComparisonOptions with_across = options;
  with_across.rules.across = differing_inputs(read.sides.at(0), read.sides.at(1));
  SidesCompared compared;
  compared.across = with_across.rules.across;
  compared.comparison = compare::compare_sides(std::move(read.sides), with_across);
  return compared;
}

bool is_empty(const std::filesystem::path& folder) { return compare::runs_below(folder).empty(); }

std::string change_below(const std::filesystem::path& folder) {
  for (const std::filesystem::path& run : compare::runs_below(folder))
    for (const record::CaseRecord& record : results::read_cases(run / "cases.jsonl").records)
      if (record.result.status == record::Status::outdated) return record.result.reason;
  return "";
}

std::vector<std::string> failures_below(const std::filesystem::path& folder) {
  std::vector<std::string> lines;
  for (const std::filesystem::path& run : compare::runs_below(folder))
    for (std::string& line : results::problem_lines(results::read_cases(run / "cases.jsonl").records, {}))
      lines.push_back(std::move(line));
  return lines;
}

}  // namespace assay::host::ab
