// Tables of comma-separated values.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::imports {

// Rows of as many fields as the first has, the names of columns. Fields are as in RFC 4180: a quoted one may hold
// commas, line breaks and doubled quotes. Throws ImportError for a row of another length, or a quote that is not
// closed.
std::vector<std::vector<std::string>> csv_table(std::string_view text);

}  // namespace assay::host::imports
