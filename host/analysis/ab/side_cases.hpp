// Matches the cases of A and B from what is known before anything runs.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace assay::host::ab {

struct PlannedCase {
  std::string name;                           // "size=small pass=forward"; "" without a sweep
  std::map<std::string, std::string> inputs;  // its parameters and swept keys
  std::vector<std::string> axes;              // the swept keys among them
};

// The axes that vary within a side, and so distinguish its cases. One that has a single value on each side does not:
// where the two values differ, the sides are about it.
template <typename Case, typename ValueOf>
std::vector<std::string> telling_axes(const std::vector<std::string>& axes, const std::vector<Case>& a,
                                      const std::vector<Case>& b, ValueOf&& value_of) {
  std::vector<std::string> telling;
  const auto varies_in = [&](const std::vector<Case>& side, const std::string& axis) {
    for (const Case& c : side)
      if (value_of(c, axis) != value_of(side.front(), axis)) return true;
    return false;
  };
  for (const std::string& axis : axes)
    if (varies_in(a, axis) || varies_in(b, axis)) telling.push_back(axis);
  return telling;
}

// A line for each case that the other side does not have once; none: both have the same cases.
std::vector<std::string> unmatched_cases(const std::vector<PlannedCase>& a, const std::vector<PlannedCase>& b);

}  // namespace assay::host::ab
