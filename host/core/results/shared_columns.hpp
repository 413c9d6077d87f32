// The columns of a table that is put together with those of other runs.
#pragma once
#include "results/table.hpp"

#include <string>
#include <vector>

namespace assay::host::results {

// `shown`, and after these what it needs to know each row among those of other runs: run, machine, device, files,
// revision, what the figures are worth, and each parameter and setting, swept or not.
std::vector<std::string> shared_columns(std::vector<std::string> shown, const std::vector<record::CaseRecord>& records);

// The table without the columns behind the first `kept` in which no row has anything.
Table without_empty_columns(Table table, std::size_t kept);

}  // namespace assay::host::results
