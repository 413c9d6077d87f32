#include "compare/assumptions.hpp"

#include "common/text_format.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

namespace assay::host::compare {
namespace {

constexpr std::string_view beginning = "assumed: ";
constexpr std::string_view separator = ", ";

void add_parts(std::vector<std::string>& parts, std::string_view list) {
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(separator, begin), list.size());
    std::string part = one_line(list.substr(begin, end - begin));
    if (!part.empty() && std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(std::move(part));
    begin = end + separator.size();
  }
}

}  // namespace

std::string assumptions_of(const std::vector<const record::CaseRecord*>& records) {
  std::vector<std::string> parts;
  for (const record::CaseRecord* record : records) {
    if (!record->result.notes) continue;
    for (const std::string_view note : *record->result.notes)
      if (note.starts_with(beginning)) add_parts(parts, note.substr(beginning.size()));
  }
  return fmt::format("{}", fmt::join(parts, separator));
}

}  // namespace assay::host::compare
