// A range in place of an axis' values: { min = 1024, max = 1073741824, factor = 4 }, or with `step` for equal
// distances.
#pragma once
#include "experiment/document.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace assay::host::experiment {

// More values than this are taken for a slip.
inline constexpr std::size_t most_range_values = 10'000;

// A table that is meant as a range, and not as a way of writing dotted keys: it has a value for a member of ranges.
bool is_range(const Node& node);

// min, then each value by `factor` (or `step`) larger than the one before, up to max, which is among them where it is
// met. Integers when all three are; else floats of 15 digits, so that 0.1, 0.2 is followed by 0.3. Mistakes begin with
// `label` ("[sweep] size").
std::optional<std::vector<Value>> read_range(const Node& table, const std::string& label, Mistakes& mistakes);

}  // namespace assay::host::experiment
