// What a table shows when the experiment names no columns.
#pragma once
#include "record/case_record.hpp"

#include <string>
#include <vector>

namespace assay::host::experiment {
struct Experiment;
}

namespace assay::host::results {

// Axes, the number of ranks where it is not 1 and no axis says it, per-case metrics, the means of the phases and of the
// step, the rate, the peak of memory, the status. Only columns that some record has a value for.
std::vector<std::string> default_columns(const experiment::Experiment& experiment,
                                         const std::vector<record::CaseRecord>& records);

}  // namespace assay::host::results
