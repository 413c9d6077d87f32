// `--fail-if`: from a comparison to an exit code.
#include "compare/comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay::host::compare {

std::string case_name(const Comparison& comparison, const ComparedCase& c) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < comparison.axes.size(); ++i)
    if (!c.axis_values[i].empty()) texts.push_back(fmt::format("{}={}", comparison.axes[i], c.axis_values[i]));
  return texts.empty() ? c.workload : fmt::format("{}", fmt::join(texts, " "));
}

std::vector<std::string> reasons_to_fail(const Comparison& comparison, const FailIf& fail_if) {
  std::vector<std::string> reasons;
  bool compared_any = false;
  for (const ComparedMetric& metric : comparison.metrics)
    for (const ComparedCase& c : metric.cases)
      for (std::size_t s = 1; s < c.entries.size(); ++s) {
        const Entry& entry = c.entries[s];
        const std::string where =
            fmt::format("{} of {}, {}", metric.name, comparison.sides[s].label, case_name(comparison, c));
        const bool is_compared = entry.kind == Entry::Kind::compared;
        compared_any = compared_any || is_compared;
        if (is_compared && fail_if.slower && entry.worse)
          reasons.push_back(fmt::format("{}: {}", where, entry.verdict));
        if (is_compared && fail_if.differs && entry.outcome == Outcome::differs)
          reasons.push_back(
              fmt::format("{}: differs: {} / {}", where, c.entries[0].word.value_or(""), entry.word.value_or("")));
        if (is_compared && fail_if.cannot_tell && entry.outcome == Outcome::cannot_tell)
          reasons.push_back(fmt::format("{}: cannot tell", where));
        if (entry.failed && (fail_if.slower || fail_if.unmatched || fail_if.differs))
          reasons.push_back(fmt::format("{}: {}", where, entry.reason));
        else if (!is_compared && fail_if.unmatched)
          reasons.push_back(fmt::format("{}: {}", where, entry.reason.empty() ? "no such case" : entry.reason));
      }
  if (fail_if.unmatched)
    for (const std::string& line : comparison.unmatched) reasons.push_back(line);
  if (fail_if.asks() && !compared_any && reasons.empty()) reasons.emplace_back("nothing could be compared");
  return reasons;
}

}  // namespace assay::host::compare
