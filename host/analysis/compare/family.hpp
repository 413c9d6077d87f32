// Many cases at once: of twenty that do not differ, one is far from 1 by chance in each comparison or so.
#pragma once
#include "compare/comparison.hpp"

#include <vector>

namespace assay::host::compare {

// Holm's method: the chances of all verdicts of a comparison, each as it is worth among the others, in their order. One
// of them below the error level is false in no more than this share of comparisons, however the cases hang together.
std::vector<double> adjusted_chances(const std::vector<double>& chances);

// Gives every measured entry its adjusted chance. What is faster or slower by itself alone becomes "cannot tell", with
// a note; what is "same" stays so. The runs that would settle an entry are those that would among so many.
void control_family(Comparison& comparison, const TestOptions& options);

}  // namespace assay::host::compare
