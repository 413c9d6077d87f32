#include "record/cell.hpp"

#include "common/text_format.hpp"
#include "record/json.hpp"

#include <fmt/format.h>

#include <cmath>

namespace assay::host::record {
namespace {

// As JSON spells it: 512.0, 1e-05, true.
std::string exact_text(const Cell& cell) {
  return std::visit(
      [](const auto& value) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>)
          return {};
        else
          return plain_text(Value(value));
      },
      cell.value);
}

}  // namespace

std::optional<double> Cell::number() const {
  if (const auto* count = std::get_if<std::int64_t>(&value)) return static_cast<double>(*count);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return std::nullopt;
}

Cell number_cell(const std::optional<double>& number) {
  Cell cell;
  if (number && std::isfinite(*number)) cell.value = *number;
  return cell;
}

Cell count_cell(const std::optional<std::int64_t>& count) {
  Cell cell;
  if (count) cell.value = *count;
  return cell;
}

Cell text_cell(std::string text) {
  Cell cell;
  cell.value = std::move(text);
  return cell;
}

Cell input_cell(const Value& value) {
  Cell cell;
  std::visit([&cell](const auto& v) { cell.value = v; }, value);
  if (const auto* number = std::get_if<double>(&value); number && !std::isfinite(*number)) cell.value = {};
  cell.verbatim = true;
  return cell;
}

std::string csv_text(const Cell& cell) { return exact_text(cell); }

std::string display_text(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell.value)) return one_line(*text);
  if (const auto* count = std::get_if<std::int64_t>(&cell.value); count && !cell.verbatim)
    return group_thousands(std::to_string(*count));
  if (const auto* number = std::get_if<double>(&cell.value))
    return cell.verbatim ? fmt::format("{}", *number) : significant_digits(*number, cell.digits);
  return exact_text(cell);
}

}  // namespace assay::host::record
