// The names that a column of a results table may have (docs/record.md, "Column names").
#pragma once
#include "plugin/schema.hpp"

#include <string>
#include <vector>

namespace assay::host {

// Every column that a record of this workload can fill, except those of memory moments, whose names are free.
std::vector<std::string> column_names(const WorkloadSchema& schema);

// True for a name in `names` (of column_names) and for `memory.<moment>.mib`, `memory.<moment>.<kind>.mib` and
// `memory.<moment>.<kind>.peak_mib`.
bool is_column(const std::string& column, const std::vector<std::string>& names);

}  // namespace assay::host
