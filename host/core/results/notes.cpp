#include "results/notes.hpp"

#include "common/rank_name.hpp"
#include "common/text_format.hpp"
#include "record/verdict_note.hpp"
#include "results/case_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

namespace assay::host::results {
namespace {

struct Group {
  std::string text;                             // without its ranks, with the highest figures
  std::string lowest;                           // the same with the lowest ones
  const record::CaseRecord* highest = nullptr;  // that has them
  std::int64_t rank_of_highest = 0;
  std::set<std::int64_t> cases;
  std::set<std::int32_t> ranks;  // that it is said of; of the first rank a record names no rank
  bool names_ranks = false;
};

struct OfRanks {
  std::vector<std::int32_t> ranks;  // none: the first one, or the case as a whole
  std::string text;
};

// "3" and "5 to 7" as numbers; false where it is neither.
bool add_numbers(std::string_view part, std::vector<std::int32_t>& numbers) {
  const auto number_at = [](std::string_view text) -> std::optional<std::int32_t> {
    std::int32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() && number >= 0 ? std::optional(number)
                                                                                   : std::nullopt;
  };
  constexpr std::string_view to = " to ";
  const std::size_t split = part.find(to);
  const auto first = number_at(part.substr(0, split));
  const auto last = split == std::string_view::npos ? first : number_at(part.substr(split + to.size()));
  constexpr std::int32_t most = 1 << 20;
  if (!first || !last || *last < *first || *last > most) return false;
  for (std::int32_t number = *first; number <= *last; ++number) numbers.push_back(number);
  return true;
}

// "rank 3: late", "ranks 1, 3 and 5 to 7: late" in their parts.
OfRanks of_ranks(const std::string& text) {
  const std::size_t colon = text.find(": ");
  const std::string_view head = std::string_view(text).substr(0, colon);
  const std::string_view word = head.starts_with("ranks ") ? "ranks " : "rank ";
  if (colon == std::string::npos || !head.starts_with(word)) return {{}, text};
  OfRanks parts{{}, text.substr(colon + 2)};
  for (std::string_view rest = head.substr(word.size()); !rest.empty();) {
    std::size_t end = rest.size(), next = rest.size();
    for (const std::string_view between : {std::string_view(", "), std::string_view(" and ")})
      if (const std::size_t at = rest.find(between); at < end) end = at, next = at + between.size();
    if (!add_numbers(rest.substr(0, end), parts.ranks)) return {{}, text};
    rest.remove_prefix(next);
  }
  return parts;
}

// "1-3, 5"
std::string ranges_of(const std::set<std::int64_t>& indices) {
  std::vector<std::string> ranges;
  for (auto it = indices.begin(); it != indices.end();) {
    const std::int64_t begin = *it;
    std::int64_t end = begin;
    while (++it != indices.end() && *it == end + 1) end = *it;
    ranges.push_back(begin == end ? fmt::format("{}", begin + 1) : fmt::format("{}-{}", begin + 1, end + 1));
  }
  return fmt::format("{}", fmt::join(ranges, ", "));
}

// " (7.6% to 18.7%; the highest in case 3, rank 1)"
std::string figures_text(const Group& group) {
  if (group.text == group.lowest) return "";
  std::vector<std::string> who;
  if (group.cases.size() > 1) who.push_back(fmt::format("case {}", group.highest->identity.index + 1));
  if (group.names_ranks && group.ranks.size() > 1) who.push_back(fmt::format("rank {}", group.rank_of_highest));
  if (who.empty() && group.highest->identity.repeat)
    who.push_back(fmt::format("repeat {}", *group.highest->identity.repeat));
  const std::string place = who.empty() ? "" : fmt::format("; the highest in {}", fmt::join(who, ", "));
  return fmt::format(" ({}{})", range_of_figures(group.lowest, group.text), place);
}

SaidOfCases told_of(const Group& group, std::size_t all_cases) {
  const std::vector<std::int32_t> named(group.ranks.begin(), group.ranks.end());
  const std::string ranks = group.names_ranks ? ranks_text(named) + ": " : "";
  const std::string cases = group.cases.size() == 1           ? case_name(*group.highest)
                            : group.cases.size() == all_cases ? fmt::format("all {} cases", all_cases)
                                                              : fmt::format("cases {}", ranges_of(group.cases));
  return {cases, ranks + group.text + figures_text(group)};
}

}  // namespace

std::vector<SaidOfCases> said_of_cases(
    const std::vector<record::CaseRecord>& records,
    const std::function<std::vector<std::string>(const record::CaseRecord&)>& texts) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t> places;
  std::set<std::int64_t> all;
  for (const record::CaseRecord& record : records) {
    all.insert(record.identity.index);
    for (const std::string& said : texts(record)) {
      const auto [ranks, text] = of_ranks(one_line(said));
      const auto [place, is_new] = places.try_emplace(without_figures(text), groups.size());
      if (is_new) groups.push_back({text, text, &record, ranks.empty() ? 0 : ranks.front(), {}, {}, false});
      Group& group = groups[place->second];
      group.cases.insert(record.identity.index);
      group.names_ranks |= !ranks.empty();
      group.ranks.insert(ranks.begin(), ranks.end());
      if (ranks.empty()) group.ranks.insert(0);
      if (has_higher_figures(group.lowest, text)) group.lowest = text;
      if (!has_higher_figures(text, group.text)) continue;
      group.text = text, group.highest = &record;
      group.rank_of_highest = ranks.empty() ? 0 : ranks.front();
    }
  }
  std::vector<SaidOfCases> all_said;
  for (const Group& group : groups) all_said.push_back(told_of(group, all.size()));
  return all_said;
}

std::vector<std::string> validity_lines(const std::vector<record::CaseRecord>& records) {
  std::vector<std::string> lines;
  for (const SaidOfCases& said :
       said_of_cases(records, [](const record::CaseRecord& record) -> std::vector<std::string> {
         const auto& validity = record.result.validity;
         if (!validity || validity->verdict == record::ValidityVerdict::valid || validity->text.empty()) return {};
         const auto notes = record.result.notes.value_or(std::vector<std::string>{});
         if (std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
               return record::explains(of_ranks(note).text, validity->verdict);
             }))
           return {};
         return {record::verdict_note(validity->verdict, validity->text)};
       }))
    lines.push_back(fmt::format("{}: validity {}", said.cases, said.text));
  return lines;
}

std::vector<std::string> note_lines(const std::vector<record::CaseRecord>& records) {
  std::vector<std::string> lines;
  for (const SaidOfCases& said : said_of_cases(records, [](const record::CaseRecord& record) {
         return record.result.notes.value_or(std::vector<std::string>{});
       }))
    lines.push_back(fmt::format("{}: note: {}", said.cases, said.text));
  return lines;
}

}  // namespace assay::host::results
