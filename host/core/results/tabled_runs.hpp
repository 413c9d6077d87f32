// One table of the cases of several runs, made from what they have left.
#pragma once
#include "common/usage_error.hpp"
#include "results/run_source.hpp"
#include "results/table.hpp"

#include <string>
#include <vector>

namespace assay::host::results {

struct TabledRun {
  RunSource source;
  std::vector<record::CaseRecord> records;  // the last one of each case, in the order of the file
};

// Each argument as for runs_of(). `warnings` names what cannot be read of a run. Throws NoRunError and StorageError.
std::vector<TabledRun> read_tabled_runs(const std::vector<std::string>& given, std::vector<std::string>& warnings);

// A filter that names no column, or that no row matches. The text says what there is.
class FilterError : public UsageError {
 public:
  using UsageError::UsageError;
};
// Keeps the rows that match all of `filters` (common/filter.hpp), with values as a table shows or spells them. A row
// without the column matches nothing but !=.
void keep_matching(std::vector<TabledRun>& runs, const std::vector<std::string>& filters);

// A row for each record, run by run. `status` is added as in make_table().
Table table_of_runs(std::vector<std::string> columns, const std::vector<TabledRun>& runs);

// Problems and notes of all runs, as below a run's own table; each run's line says where it was made.
std::string below_table_of_runs(const std::vector<TabledRun>& runs);

std::vector<record::CaseRecord> all_records(const std::vector<TabledRun>& runs);

}  // namespace assay::host::results
