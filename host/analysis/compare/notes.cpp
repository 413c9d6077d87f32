#include "compare/notes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "common/text_format.hpp"

namespace assay::host::compare {
namespace {

std::vector<std::string> all_notes(const Entry& entry) {
  std::vector<std::string> notes;
  if (entry.kind == Entry::Kind::compared && !entry.by_samples && (entry.low != entry.high || entry.scatter))
    notes.emplace_back("no samples on one side: tested by mean, standard deviation and number of steps");
  notes.insert(notes.end(), entry.notes.begin(), entry.notes.end());
  return notes;
}

}  // namespace

NumberedNotes::NumberedNotes(const Comparison& comparison) {
  std::size_t compared_count = 0;
  for (const ComparedMetric& metric : comparison.metrics)
    for (const ComparedCase& c : metric.cases)
      for (const Entry& entry : c.entries) {
        compared_count += entry.kind == Entry::Kind::compared ? 1 : 0;
        for (const std::string& text : all_notes(entry)) {
          const auto [place, is_new] = places_.emplace(without_figures(text), notes_.size());
          if (is_new) notes_.push_back({text});
          Noted& noted = notes_[place->second];
          ++noted.entries;
          noted.has_other_figures |= text != noted.highest;
          if (has_higher_figures(text, noted.highest)) noted.highest = text;
        }
      }
  std::size_t number = 0;
  for (Noted& noted : notes_)
    if (noted.entries < compared_count || compared_count == 1) noted.number = ++number;
}

std::string NumberedNotes::marks(const Entry& entry) const {
  std::set<std::size_t> numbers;
  for (const std::string& text : all_notes(entry))
    if (const auto found = places_.find(without_figures(text)); found != places_.end())
      if (const std::size_t number = notes_[found->second].number; number > 0) numbers.insert(number);
  return numbers.empty() ? "" : fmt::format(" [{}]", fmt::join(numbers, ","));
}

std::vector<std::string> NumberedNotes::lines() const {
  std::vector<std::string> lines;
  for (const Noted& noted : notes_) {
    const std::string also = noted.has_other_figures ? fmt::format(" (the highest figures; also {} other{})",
                                                                   noted.entries - 1, noted.entries == 2 ? "" : "s")
                                                     : "";
    lines.push_back(
        fmt::format("{} {}{}", noted.number > 0 ? fmt::format("[{}]", noted.number) : "all:", noted.highest, also));
  }
  return lines;
}

}  // namespace assay::host::compare
