// Published figures: inputs that their source does not say, and that were filled in so that a case here is like them.
#pragma once
#include "record/case_record.hpp"

#include <string>
#include <vector>

namespace assay::host::compare {

// "precision = fp32, measure.steps = 10": what the notes of the records that begin with "assumed: " name, each once, in
// the order in which it first stands. "" when there is no such note.
std::string assumptions_of(const std::vector<const record::CaseRecord*>& records);

}  // namespace assay::host::compare
