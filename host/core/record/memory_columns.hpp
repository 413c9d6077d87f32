// Columns of the account of memory: "memory.<moment>.<kind>.mib" and its relatives (docs/record.md, "Column names").
#pragma once
#include "record/case_record.hpp"
#include "record/cell.hpp"

#include <string_view>

namespace assay::host::record {

struct DottedName {
  std::string_view head, tail;
};
// Splits at the last dot; without one the head is empty.
DottedName split_last(std::string_view name);

// `column` without its "memory.".
Cell memory_cell(const CaseRecord& record, std::string_view column);
// May it stand for such a column? Moments have any name.
bool is_memory_column(std::string_view column);

}  // namespace assay::host::record
