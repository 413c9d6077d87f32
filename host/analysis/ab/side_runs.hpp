// The runs of two sides on the disk, compared as `assay compare` does.
#pragma once
#include "compare/comparison.hpp"

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace assay::host::ab {

// The inputs in which cases differ between two sides that agree in the axes that distinguish cases: what the sides are
// about. An axis with one value on each side is such an input, too.
std::set<std::string> differing_inputs(const compare::Side& a, const compare::Side& b);

struct SidesCompared {
  compare::Comparison comparison;
  std::set<std::string> across;
};

// Each folder holds one run. Throws compare::NoRunError, compare::NoMetricError, StorageError.
SidesCompared compare_folders(const std::filesystem::path& a, const std::filesystem::path& b,
                              const compare::ComparisonOptions& options);

// Whether no run lies there.
bool is_empty(const std::filesystem::path& folder);
// That the side's code has become another one since its first run, in words; "" while it is the same. What was measured
// before ran again then, and not in turns.
std::string change_below(const std::filesystem::path& folder);
// A line for each case of the run below the folder that is not ok.
std::vector<std::string> failures_below(const std::filesystem::path& folder);

}  // namespace assay::host::ab
