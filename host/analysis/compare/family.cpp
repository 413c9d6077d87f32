#include "compare/family.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace assay::host::compare {
namespace {

std::vector<std::size_t> smallest_first(const std::vector<double>& chances) {
  std::vector<std::size_t> order(chances.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return chances[a] < chances[b]; });
  return order;
}

std::vector<Entry*> measured_entries(Comparison& comparison) {
  std::vector<Entry*> entries;
  for (ComparedMetric& metric : comparison.metrics)
    for (ComparedCase& c : metric.cases)
      for (Entry& entry : c.entries)
        if (entry.kind == Entry::Kind::compared && entry.chance) entries.push_back(&entry);
  return entries;
}

bool is_claim(const Entry& entry) {
  return entry.outcome == Outcome::lower || entry.outcome == Outcome::higher ||
         entry.outcome == Outcome::differs_in_tail;
}

void withdraw(Entry& entry, std::size_t family) {
  entry.notes.push_back(
      fmt::format("{} alone; of {} verdicts at once, such a ratio may be chance", entry.verdict, family));
  entry.outcome = Outcome::cannot_tell;
  entry.verdict = verdict_word(entry.outcome, "", {});
  entry.worse = false;
}

}  // namespace

std::vector<double> adjusted_chances(const std::vector<double>& chances) {
  std::vector<double> adjusted(chances.size());
  const std::vector<std::size_t> order = smallest_first(chances);
  double largest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, static_cast<double>(order.size() - i) * chances[order[i]]);
    adjusted[order[i]] = std::min(1.0, largest);
  }
  return adjusted;
}

void control_family(Comparison& comparison, const TestOptions& options) {
  const std::vector<Entry*> entries = measured_entries(comparison);
  comparison.family = entries.size();
  std::vector<double> chances;
  for (const Entry* entry : entries) chances.push_back(*entry->chance);
  const std::vector<double> adjusted = adjusted_chances(chances);
  const std::vector<std::size_t> order = smallest_first(chances);
  const double error = 1 - options.confidence;
  for (std::size_t i = 0; i < order.size(); ++i) {
    Entry& entry = *entries[order[i]];
    entry.adjusted_chance = adjusted[order[i]];
    const bool loses = is_claim(entry) && !(*entry.adjusted_chance < error);
    if (loses) withdraw(entry, entries.size());
    if (!loses && !entry.runs_to_settle) continue;
    entry.runs_to_settle.reset();
    if (entry.scatter)
      entry.runs_to_settle = runs_to_settle(*entry.scatter, options, 1 - error / static_cast<double>(order.size() - i));
  }
}

}  // namespace assay::host::compare
