// --statistic, as the commands that compare steps have it.
#pragma once
#include <string>

#include "compare/verdict.hpp"

namespace assay::host::cli {

// "mean", "p05", "lower-quartile", "median"
std::string word_of(compare::Statistic statistic);
// Throws UsageError.
compare::Statistic statistic_of(const std::string& word);

inline constexpr const char* statistic_help =
    "mean, p05, lower-quartile or median: of a run's steps; rates are always compared by their means";

}  // namespace assay::host::cli
