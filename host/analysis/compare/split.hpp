// One side split into several by the values of what varies in it: eager against graph within one run.
#pragma once
#include "common/usage_error.hpp"
#include "compare/sides.hpp"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace assay::host::compare {

// A key that splits nothing, or a baseline that is not there. The text names it, and what there is.
class SplitError : public UsageError {
 public:
  using UsageError::UsageError;
};

struct SplitRules {
  std::vector<std::string> keys;        // inputs; with several, each combination of their values is a side
  std::optional<std::string> baseline;  // a value, or one for each key in their order, with commas; absent: the first
};

struct SplitSide {
  std::vector<Side> sides;         // the baseline first, the others in the run's order
  std::set<std::string> across;    // the keys, and the axes and parameters that move with them
  std::vector<std::string> notes;  // what a reader of the comparison should know of the sides
};

// Throws SplitError.
SplitSide split_side(const Side& side, const SplitRules& rules);

}  // namespace assay::host::compare
