// A table for people, with what must be known beside its figures.
#pragma once
#include "results/run_source.hpp"
#include "results/table.hpp"

#include <string>
#include <vector>

namespace assay::host::results {

// The table as Markdown, below it why cases are not ok, their notes, and in a line where they were made. `allow`:
// statuses that are expected.
std::string table_page(const Table& table, const std::vector<record::CaseRecord>& records,
                       const std::vector<std::string>& allow, const RunSource& source);
// The part of it that is below the table; "" when it is empty.
std::string below_table(const std::vector<record::CaseRecord>& records, const std::vector<std::string>& allow,
                        const RunSource& source);

// As to_terminal(). Where that would be wider than the terminal, what all rows share is a line above the table in place
// of columns, and a status that differs stands beside what distinguishes the rows. What is still too wide becomes
// several tables below each other, each with the columns that distinguish its rows. `rest`: a command that shows all
// columns; then only the first of these tables appears, and a line names what it has no room for.
std::string table_on_terminal(const Table& table, std::size_t width_columns, const Palette& palette = {},
                              const std::string& rest = "");

}  // namespace assay::host::results
