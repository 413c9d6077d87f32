// One value of a table: what it is, and how it is spelt for programs and for people.
#pragma once
#include "common/value.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace assay::host::record {

inline constexpr int measured_digits = 4;  // significant ones
inline constexpr int result_digits = 10;   // of a sum, where rounding itself may be what is studied: all that fp32 has

struct Cell {
  std::variant<std::monostate, bool, std::int64_t, double, std::string> value;  // monostate: no value was reached
  bool verbatim = false;         // an input: shown as the experiment writes it, not rounded or grouped
  int digits = measured_digits;  // of a number that is not verbatim, in display_text

  bool empty() const { return value.index() == 0; }
  bool is_number() const { return number().has_value(); }
  std::optional<double> number() const;
  bool operator==(const Cell& other) const { return value == other.value; }
};

// NaN and infinity have no place in a table of figures: their cells are empty, like those of absent values.
Cell number_cell(const std::optional<double>& number);
Cell count_cell(const std::optional<std::int64_t>& count);
// A text as it is; an empty text is an empty text, not an empty cell.
Cell text_cell(std::string text);
// An input of the experiment.
Cell input_cell(const Value& value);

std::string csv_text(const Cell& cell);      // full precision, not quoted
std::string display_text(const Cell& cell);  // rounded, one line

}  // namespace assay::host::record
