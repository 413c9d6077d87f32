// From a record to the cells of a table, by the names of docs/record.md, "Column names".
#pragma once
#include "results/record.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace assay::host {

struct Experiment;

inline constexpr int measured_digits = 4;  // significant ones
inline constexpr int result_digits = 6;    // of a loss or a sum, where rounding itself may be what is studied

struct Cell {
  Record value;                  // null (no value was reached), bool, number or text
  bool verbatim = false;         // an input: shown as the experiment writes it, not rounded or grouped
  int digits = measured_digits;  // of a number that is not verbatim, in display_text
  bool empty() const { return value.is_null(); }
  bool is_number() const { return value.is_number(); }
};

// An empty cell when the record has no such value.
Cell cell_of(const Record& record, std::string_view column);

std::string csv_text(const Cell& cell);      // full precision, not quoted
std::string display_text(const Cell& cell);  // rounded, one line

// What a table shows when the experiment names no columns: axes, the number of ranks where it is not 1 and no axis says
// it, per-case metrics, the means of the phases and of the step, the rate, the peak of memory, the status. Only columns
// that some record has a value for.
std::vector<std::string> default_columns(const Experiment& experiment, const std::vector<Record>& records);

}  // namespace assay::host
