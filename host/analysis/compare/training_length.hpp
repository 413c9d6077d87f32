// Figures of a training's state, as the loss of its last step, compare only where as many steps have made it.
#pragma once
#include "compare/inputs.hpp"

#include <string>

namespace assay::host::compare {

// Why such a figure does not compare one case with the other, in a sentence with the remedy: the steps before it
// (warm-up, settling, measured) are not as many in all of the records. "" where they are, where a record does not say
// them, and for a metric that is of no such state.
std::string other_training_length(const SideCase& a, const SideCase& b, const std::string& label_a,
                                  const std::string& label_b, const std::string& metric);

}  // namespace assay::host::compare
