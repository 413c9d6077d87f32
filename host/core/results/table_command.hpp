// `assay table`: one table of the cases of one run or several.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace assay::host::results {

struct TableRequest {
  std::vector<std::string> runs;             // run folders, cases.jsonl, summaries, or folders with several of these
  std::vector<std::string> columns, filter;  // as --columns and --filter take them
  std::optional<std::string> format, output;
};

// Prints the table, or writes it. Returns the exit code. Throws UsageError.
int make_table(const TableRequest& request);

}  // namespace assay::host::results
