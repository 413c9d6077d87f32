// Mistakes of an experiment on standard error.
#pragma once
#include <vector>
#include "experiment/mistake.hpp"

namespace assay::host::console {

// Prints them to standard error, and returns the exit code.
int report_mistakes(const std::vector<experiment::Mistake>& mistakes);

}  // namespace assay::host::console
