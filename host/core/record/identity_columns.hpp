// Columns of what made a number: the machine, the device, the plugin and the files (docs/record.md, "Column names").
#pragma once
#include "record/columns.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::record {

std::span<const Column> identity_columns();

// "files.host", "files.comm.gloo": the hash of one of the files of CaseIdentity::files.
inline constexpr std::string_view files_prefix = "files.";
// May it stand for such a column? Communicators and inputs have any name.
bool is_file_column(std::string_view column);
Cell file_cell(const CaseRecord& record, std::string_view column);
// Those that some record has, in their order.
std::vector<std::string> file_columns(const std::vector<CaseRecord>& records);

}  // namespace assay::host::record
