#include "ab/side_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace assay::host::ab {
namespace {

std::optional<std::string> value_of(const PlannedCase& c, const std::string& key) {
  const auto found = c.inputs.find(key);
  return found == c.inputs.end() ? std::nullopt : std::optional(found->second);
}

void add_unmatched(const std::string& label, const std::vector<PlannedCase>& cases, const std::string& other_label,
                   const std::vector<PlannedCase>& others, const std::vector<std::string>& telling,
                   std::vector<std::string>& lines) {
  for (const PlannedCase& c : cases) {
    const auto is_partner = [&](const PlannedCase& other) {
      return std::all_of(telling.begin(), telling.end(), [&](const std::string& key) {
        const auto own = value_of(c, key), its = value_of(other, key);
        return !own || !its || *own == *its;
      });
    };
    const auto partners = std::count_if(others.begin(), others.end(), is_partner);
    const std::string name = c.name.empty() ? "its only case" : c.name;
    if (partners == 0) lines.push_back(fmt::format("only in {}: {}", label, name));
    if (partners > 1)
      lines.push_back(fmt::format("{} of {} could be {} cases of {}", name, label, partners, other_label));
  }
}

}  // namespace

std::vector<std::string> unmatched_cases(const std::vector<PlannedCase>& a, const std::vector<PlannedCase>& b) {
  std::vector<std::string> axes;
  for (const auto* side : {&a, &b})
    for (const PlannedCase& c : *side)
      for (const std::string& axis : c.axes)
        if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
  const std::vector<std::string> telling = telling_axes(axes, a, b, value_of);
  std::vector<std::string> lines;
  add_unmatched("A", a, "B", b, telling, lines);
  add_unmatched("B", b, "A", a, telling, lines);
  return lines;
}

}  // namespace assay::host::ab
