#include "compare/side_facts.hpp"

#include "compare/inputs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace assay::host::compare {
namespace {

// Input -> its values in the order of the records.
using InputValues = std::map<std::string, std::vector<std::string>>;

InputValues values_in(const Side& side, const std::set<std::string>& asked) {
  InputValues values;
  for (const ComparedRun& run : side.runs)
    for (const record::CaseRecord& record : run.records) {
      const CaseInputs inputs(record);
      std::set<std::string> keys = inputs.keys();
      keys.insert(asked.begin(), asked.end());
      for (const std::string& key : keys) {
        const auto value = inputs.value(key);
        std::vector<std::string>& of_key = values[key];
        if (value && std::find(of_key.begin(), of_key.end(), *value) == of_key.end()) of_key.push_back(*value);
      }
    }
  return values;
}

std::string spelt_values(const std::string& key, const std::vector<std::string>& values) {
  constexpr std::size_t kShown = 3;
  const std::vector<std::string> first(values.begin(),
                                       values.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, values.size())));
  return fmt::format("{}={}{}", key, fmt::join(first, "|"), values.size() > kShown ? "|..." : "");
}

bool tells_apart(const std::string& key, const std::vector<InputValues>& of_sides, bool may_differ) {
  std::set<std::vector<std::string>> seen;
  for (const InputValues& of_side : of_sides) {
    const auto found = of_side.find(key);
    const std::vector<std::string> values = found == of_side.end() ? std::vector<std::string>{} : found->second;
    if (!may_differ && values.size() != 1) return false;
    seen.insert(values);
  }
  return seen.size() > 1;
}

std::size_t most_cases(const Side& side) {
  std::size_t most = 0;
  for (const ComparedRun& run : side.runs) {
    std::vector<const record::CaseRecord*> records;
    for (const record::CaseRecord& record : run.records) records.push_back(&record);
    const std::vector<std::string> axes = axes_of(records);
    most = std::max(most, cases_of(records, {axes.begin(), axes.end()}).size());
  }
  return most;
}

}  // namespace

std::vector<SideFacts> facts_of(const std::vector<Side>& sides, const MatchRules& rules) {
  std::set<std::string> may_differ = rules.across;
  if (rules.any_ranks) may_differ.insert(record::ranks_axis);
  std::vector<InputValues> of_sides;
  std::set<std::string> keys;
  for (const Side& side : sides) {
    of_sides.push_back(values_in(side, may_differ));
    for (const auto& [key, values] : of_sides.back()) keys.insert(key);
  }
  std::vector<SideFacts> facts(sides.size());
  for (const std::string& key : keys) {
    if (!tells_apart(key, of_sides, may_differ.contains(key))) continue;
    for (std::size_t i = 0; i < sides.size(); ++i)
      if (const auto found = of_sides[i].find(key); found != of_sides[i].end() && !found->second.empty())
        facts[i].inputs.push_back(spelt_values(key, found->second));
  }
  for (std::size_t i = 0; i < sides.size(); ++i) {
    facts[i].cases = most_cases(sides[i]);
    for (const ComparedRun& run : sides[i].runs)
      for (const record::CaseRecord& record : run.records)
        if (!record.started.empty() && (facts[i].started.empty() || record.started < facts[i].started))
          facts[i].started = record.started;
  }
  return facts;
}

}  // namespace assay::host::compare
