// Which mutant is alive in this process, and how often each has been reached. Told by two variables of the environment:
//   ASSAY_MUTANT         its name; empty or absent: none, so that everything works as it should
//   ASSAY_MUTANT_COUNTS  a file with a counter for each mutant, shared by all processes of a run
// Without a living mutant all places that could break something are counted, which tells what a case can be broken by.
#pragma once
#include "mutants.hpp"

namespace assay::mutants {

// True where the mutant is alive and its place is to be broken, now.
bool breaks(MutantId mutant);
bool lives(MutantId mutant);  // the same, uncounted

}  // namespace assay::mutants
