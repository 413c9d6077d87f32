// Advice where a comparison has no verdict: why, and what to run next.
#pragma once
#include "compare/comparison.hpp"

#include <string>
#include <vector>

namespace assay::host::compare {

// The reasons why a comparison compared no case of any side, each with what to do about it. None where
// something was compared.
std::vector<std::string> why_nothing_was_compared(const Comparison& comparison);

// Why cases were not compared: those of one reason in one line.
std::vector<std::string> refusals_of(const Comparison& comparison);

// What would settle the verdicts that say "cannot tell"; none where there is no such verdict. `by`: the keys of --by,
// with commas, where the sides are parts of a run; else "".
std::vector<std::string> what_would_settle(const Comparison& comparison, const std::string& by);

}  // namespace assay::host::compare
