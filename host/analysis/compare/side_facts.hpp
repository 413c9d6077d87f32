// The differences between the sides of a comparison, for the line that introduces each.
#pragma once
#include "compare/matching.hpp"
#include "compare/sides.hpp"

#include <string>
#include <vector>

namespace assay::host::compare {

struct SideFacts {
  std::vector<std::string> inputs;  // "execution=graph": what this side has and another has not
  std::string started;              // its first case, UTC; "" where the records do not say
  std::size_t cases = 0;            // of a run, several times of one case counted once
};

// The inputs that may differ by the rules, and those that have one value in each side and not the same.
std::vector<SideFacts> facts_of(const std::vector<Side>& sides, const MatchRules& rules);

}  // namespace assay::host::compare
