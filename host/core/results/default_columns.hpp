// The default columns of a run's tables.
#pragma once
#include "record/case_record.hpp"

#include <string>
#include <vector>

namespace assay::host::experiment {
struct Experiment;
}

namespace assay::host::results {

// When the experiment names none: axes, the number of ranks where it is not 1 and no axis says it; the step, the rate,
// the peak of memory; per-case metrics, the means of the phases; and what the figures are worth: validity,
// verification, device, status. Only columns that some record has a value for.
std::vector<std::string> default_columns(const experiment::Experiment& experiment,
                                         const std::vector<record::CaseRecord>& records);

// The columns that the experiment names, or those above. In front stand the axes that it does not name and that have
// several values in the records, in the sweep's order. `speedup` is added where cases have a baseline and no column
// says how they compare with it.
std::vector<std::string> table_columns(const experiment::Experiment& experiment,
                                       const std::vector<record::CaseRecord>& records);

}  // namespace assay::host::results
