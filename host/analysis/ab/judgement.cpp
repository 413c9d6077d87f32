#include "ab/judgement.hpp"

#include "ab/looks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace assay::host::ab {
namespace {

using compare::Entry;
using compare::Outcome;

std::string place_of(const compare::Comparison& comparison, const compare::ComparedCase& c) {
  const std::string name = compare::case_name(comparison, c);
  return name.empty() ? "" : name + ": ";
}

}  // namespace

std::string problem_of(const std::vector<std::string>& unmatched) {
  constexpr std::size_t most_named = 4;
  const std::size_t named = std::min(unmatched.size(), most_named);
  return fmt::format(
      "A and B do not have the same cases: {}{}. Every case needs one of the other side with the same swept values: "
      "give both the same [sweep], or leave out with --filter what one of them lacks",
      fmt::join(unmatched.begin(), unmatched.begin() + static_cast<std::ptrdiff_t>(named), "; "),
      unmatched.size() > named ? fmt::format(", and {} more", unmatched.size() - named) : "");
}

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::faster: return "faster";
    case Verdict::slower: return "slower";
    case Verdict::same: return "same";
    case Verdict::differs: return "differs";
    case Verdict::cannot_tell: return "cannot tell";
  }
  return "";
}

void hold_to_fewest_runs(compare::Comparison& comparison, std::int64_t min_runs) {
  for (compare::ComparedMetric& metric : comparison.metrics)
    for (compare::ComparedCase& c : metric.cases) {
      const Entry& a = c.entries.at(0);
      Entry& b = c.entries.at(1);
      const auto fewest = static_cast<std::int64_t>(std::min(a.runs, b.runs));
      if (b.kind != Entry::Kind::compared || fewest >= min_runs) continue;
      if (const bool is_exact = b.low && b.low == b.high; fewest < fewest_runs && !is_exact) b.low = b.high = {};
      b.outcome = Outcome::cannot_tell, b.verdict = "cannot tell", b.worse = false;
      b.notes.push_back(fmt::format("{} runs of A and {} of B count, and --min-runs is {}", a.runs, b.runs, min_runs));
    }
}

Judgement judge(const compare::Comparison& comparison, std::int64_t min_runs) {
  Judgement judgement;
  if (!comparison.unmatched.empty()) {
    judgement.problem = problem_of(comparison.unmatched);
    judgement.is_of_both = true;
    return judgement;
  }
  const compare::ComparedMetric& metric = comparison.metrics.at(0);
  std::size_t better = 0, other = 0;
  std::string refused;
  for (const compare::ComparedCase& c : metric.cases) {
    const Entry &a = c.entries.at(0), &b = c.entries.at(1);
    if (b.kind != Entry::Kind::compared) {
      const std::string reason = place_of(comparison, c) + (b.reason.empty() ? "side B has no such case" : b.reason);
      if (b.failed || b.kind == Entry::Kind::missing) judgement.problem = reason;
      if (refused.empty()) refused = reason;
      continue;
    }
    ++judgement.cases;
    const auto fewest = static_cast<std::int64_t>(std::min(a.runs, b.runs));
    if (b.outcome == Outcome::cannot_tell || fewest < min_runs)
      ++judgement.open;
    else if (b.worse)
      ++judgement.worse;
    else if (b.outcome == Outcome::differs || (b.outcome != Outcome::same && metric.better == Direction::neither))
      ++other;
    else if (b.outcome != Outcome::same)
      ++better;
  }
  if (judgement.cases == 0 && judgement.problem.empty())
    judgement.problem = refused.empty() ? "nothing could be compared" : refused;
  if (judgement.worse > 0)
    judgement.verdict = Verdict::slower;
  else if (judgement.open > 0 || judgement.cases == 0)
    judgement.verdict = Verdict::cannot_tell;
  else
    judgement.verdict = other > 0 ? Verdict::differs : better > 0 ? Verdict::faster : Verdict::same;
  return judgement;
}

}  // namespace assay::host::ab
