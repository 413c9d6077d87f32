// --statistic and percentages, as the commands that compare steps take them.
#pragma once
#include <string>

#include "compare/verdict.hpp"

namespace assay::host::compare {

// "mean", "p05", "lower-quartile", "median"
std::string word_of(Statistic statistic);
// Throws UsageError.
Statistic statistic_of(const std::string& word);

// 2 percent are 0.02. Throws UsageError, which names the option, outside of `low` to `high` percent.
double share_of(const char* option, double percent, double low, double high);

inline constexpr const char* statistic_help =
    "mean, p05, lower-quartile or median: of a run's steps; rates are always compared by their means";

inline constexpr const char* states_help =
    "percent by which two states of a machine may differ; a run may be in either; 0: it has one";

}  // namespace assay::host::compare
