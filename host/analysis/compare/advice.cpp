#include "compare/advice.hpp"

#include "common/text_format.hpp"
#include "compare/report_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace assay::host::compare {
namespace {

struct Refusal {
  std::string reason;
  std::vector<std::string> cases;
};

bool compares_any(const Comparison& comparison) {
  return std::any_of(comparison.metrics.begin(), comparison.metrics.end(), [](const ComparedMetric& metric) {
    return std::any_of(metric.cases.begin(), metric.cases.end(), [](const ComparedCase& c) { return compares_any(c); });
  });
}

std::set<std::string> workloads_of(const Side& side) {
  std::set<std::string> workloads;
  for (const ComparedRun& run : side.runs)
    for (const record::CaseRecord& record : run.records) workloads.insert(one_line(record.identity.workload));
  return workloads;
}

bool share_any(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&b](const std::string& each) { return b.contains(each); });
}

}  // namespace

std::vector<std::string> refusals_of(const Comparison& comparison) {
  std::vector<Refusal> refusals;
  std::set<std::string> all;
  for (const ComparedMetric& metric : comparison.metrics)
    for (const ComparedCase& c : metric.cases)
      for (std::size_t s = 1; s < c.entries.size(); ++s) {
        const Entry& entry = c.entries[s];
        const std::string name = comparison.sides.size() == 2
                                     ? case_name(comparison, c)
                                     : fmt::format("{} {}", comparison.sides[s].label, case_name(comparison, c));
        all.insert(name);
        if (entry.kind != Entry::Kind::refused) continue;
        auto found = std::find_if(refusals.begin(), refusals.end(),
                                  [&entry](const Refusal& refusal) { return refusal.reason == entry.reason; });
        if (found == refusals.end()) found = refusals.insert(found, {entry.reason, {}});
        if (std::find(found->cases.begin(), found->cases.end(), name) == found->cases.end())
          found->cases.push_back(name);
      }
  std::vector<std::string> lines;
  for (const Refusal& refusal : refusals) {
    const bool is_of_all = refusal.cases.size() == all.size() && all.size() > 1;
    lines.push_back(
        fmt::format("{}: {}", is_of_all ? "all" : fmt::format("{}", fmt::join(refusal.cases, "; ")), refusal.reason));
  }
  return lines;
}

std::vector<std::string> why_nothing_was_compared(const Comparison& comparison) {
  if (compares_any(comparison)) return {};
  std::vector<std::string> lines;
  const Side& first = comparison.sides.front();
  const std::set<std::string> of_first = workloads_of(first);
  for (std::size_t s = 1; s < comparison.sides.size(); ++s) {
    const std::set<std::string> others = workloads_of(comparison.sides[s]);
    if (others.empty()) {
      lines.push_back(fmt::format("{} has no record of a finished case", comparison.sides[s].label));
      continue;
    }
    if (!share_any(of_first, others) && !comparison.rules.across.contains(across_workloads))
      lines.push_back(fmt::format(
          "{} runs the workload {}, and {} runs {}. Different workloads are compared only when you ask for it: add "
          "--across {}",
          first.label, fmt::join(of_first, ", "), comparison.sides[s].label, fmt::join(others, ", "),
          across_workloads));
  }
  for (std::string& refusal : refusals_of(comparison)) lines.push_back(std::move(refusal));
  if (lines.empty() && comparison.metrics.empty())
    lines.emplace_back("no two sides have a metric in common: --metric names what to compare");
  if (lines.empty())
    lines.push_back(
        fmt::format("No case of {} has the swept values of a case of another side; the cases are listed below. Runs of "
                    "one experiment share their cases, and --across KEY lets a swept KEY differ",
                    first.label));
  return lines;
}

std::vector<std::string> what_would_settle(const Comparison& comparison, const std::string& by) {
  bool is_unclear = false;
  std::size_t most = 0;
  for (const ComparedMetric& metric : comparison.metrics)
    for (const ComparedCase& c : metric.cases)
      for (const Entry& entry : c.entries) {
        // More runs of exact figures show no more. An interval whose ends are both open has a scatter.
        const bool is_exact = entry.low == entry.high && !entry.scatter;
        if (!is_compared(entry) || entry.outcome != Outcome::cannot_tell || is_exact) continue;
        is_unclear = true;
        most = std::max(most, entry.runs_to_settle.value_or(0));
      }
  if (!is_unclear) return {};
  constexpr std::size_t most_worth_making = 30;
  return {
      most > most_worth_making
          ? fmt::format("a quieter machine, or more steps (--set measure.steps=N); with the same scatter it would take "
                        "{} runs a side",
                        most)
          : fmt::format(
                "several runs a side, in turns{}: {}", most > 0 ? fmt::format(" (about {} a side in all)", most) : "",
                by.empty() ? "assay compare A1,A2,A3 B1,B2,B3"
                           : fmt::format("assay run EXPERIMENT.toml --resume --set run.repeat={}, then compare again",
                                         std::max<std::size_t>(most, 3))),
      "or `assay ab EXPERIMENT.toml --a KEY=VALUE --b KEY=VALUE`, which runs them until the verdict is clear"};
}

}  // namespace assay::host::compare
