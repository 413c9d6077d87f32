#include "results/notes.hpp"

#include "common/text_format.hpp"
#include "results/case_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <utility>

namespace assay::host::results {
namespace {

struct Group {
  std::string text;
  const record::CaseRecord* first = nullptr;
  std::set<std::int64_t> cases;
  bool has_other_figures = false;
};

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

SaidOfCases told_of(const Group& group, std::size_t all_cases) {
  const std::string figures =
      group.has_other_figures ? fmt::format(" (figures of case {})", group.first->identity.index + 1) : "";
  const std::string cases = group.cases.size() == 1           ? case_name(*group.first)
                            : group.cases.size() == all_cases ? fmt::format("all {} cases", all_cases)
                                                              : fmt::format("cases {}", ranges_of(group.cases));
  return {cases, group.text + figures};
}

}  // namespace

std::vector<SaidOfCases> said_of_cases(
    const std::vector<record::CaseRecord>& records,
    const std::function<std::vector<std::string>(const record::CaseRecord&)>& texts) {
  std::vector<Group> groups;
  std::map<std::pair<std::string, int>, std::size_t> places;
  std::set<std::int64_t> all;
  for (const record::CaseRecord& record : records) {
    all.insert(record.identity.index);
    std::map<std::string, int> told;  // a case may have two that differ in their figures: both are told
    for (const std::string& said : texts(record)) {
      const std::string text = one_line(said), kind = without_figures(text);
      const auto [place, is_new] = places.try_emplace({kind, told[kind]++}, groups.size());
      if (is_new) groups.push_back({text, &record, {}, false});
      Group& group = groups[place->second];
      group.cases.insert(record.identity.index);
      group.has_other_figures |= text != group.text;
    }
  }
  std::vector<SaidOfCases> all_said;
  for (const Group& group : groups) all_said.push_back(told_of(group, all.size()));
  return all_said;
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
