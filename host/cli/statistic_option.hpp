// Holds what --statistic of `assay compare` and `assay history` names.
#pragma once
#include <string>

#include "compare/verdict.hpp"

namespace assay::host::cli {

// "p05", "lower-quartile", "median" or "mean". Throws UsageError.
compare::Statistic statistic_of(const std::string& name);

}  // namespace assay::host::cli
