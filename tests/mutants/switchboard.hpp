// Whether a mutant of an operation or a collective lives in this process; counts how often each was reached
// (counters.hpp). Without a living mutant all places that could break something are counted, which shows what a case
// can be broken by.
#pragma once
#include "mutants.hpp"

namespace assay::mutants {

// True where the mutant is alive and its place is to be broken, now.
bool breaks(MutantId mutant);
bool lives(MutantId mutant);  // the same, uncounted

}  // namespace assay::mutants
