// Chooses the columns of a table of runs: from what the user asks for to names.
#pragma once
#include "common/usage_error.hpp"
#include "results/tabled_runs.hpp"

#include <string>
#include <vector>

namespace assay::host::results {

// A name or a pattern that no record has a column for. The text says what was meant.
class UnknownColumnError : public UsageError {
 public:
  using UsageError::UsageError;
};

// `wanted`: names, patterns ("step.*"), `all` (what some record has a value for) and `default`. With several runs `run`
// comes first. Throws UnknownColumnError.
std::vector<std::string> chosen_columns(const std::vector<std::string>& wanted, const std::vector<TabledRun>& runs);

// What is shown when nothing is asked for: as in the table of a run; with several runs also what distinguishes them, be
// it a machine or a parameter.
std::vector<std::string> default_columns_of_runs(const std::vector<TabledRun>& runs);

// A text for each of `columns` that no record can fill, where a case is ok: what only a program's report can fill has
// no check before the run.
std::vector<std::string> texts_of_unreported(const std::vector<std::string>& columns,
                                             const std::vector<record::CaseRecord>& records);

// Throws UnknownColumnError unless some record could have a column of this name.
void check_column(const std::string& column, const std::vector<TabledRun>& runs);

}  // namespace assay::host::results
