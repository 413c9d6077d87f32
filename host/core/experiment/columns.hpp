// The names that a column of a results table may have (docs/record.md, "Column names").
#pragma once
#include "plugin/schema.hpp"

#include <string>
#include <vector>

namespace assay::host::experiment {

// Every column that a record of this workload can fill, except those of memory moments, whose names are free.
std::vector<std::string> column_names(const plugin::WorkloadSchema& schema);

}  // namespace assay::host::experiment
