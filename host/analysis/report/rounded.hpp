// Numbers as a page holds them: as many digits as a plot can show, since each digit costs a byte in each of thousands.
#pragma once
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace assay::host::report {

using Json = nlohmann::ordered_json;

// Five significant digits; null where there is no number.
inline Json rounded(double number) {
  if (!std::isfinite(number)) return nullptr;
  if (number == 0) return 0;
  if (number == std::trunc(number) && std::abs(number) < 1e5) return static_cast<std::int64_t>(number);
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(number)))) - 4;
  // Dividing by a power of ten rounds once more than needed, and gives the double that its shortest text reads as.
  if (exponent >= 0) {
    const double whole = std::round(number / std::pow(10.0, exponent)) * std::pow(10.0, exponent);
    if (std::abs(whole) < 1e15) return static_cast<std::int64_t>(whole);
    return whole;
  }
  if (exponent < -300) return number;
  return std::round(number * std::pow(10.0, -exponent)) / std::pow(10.0, -exponent);
}
inline Json rounded(const std::optional<double>& number) { return number ? rounded(*number) : Json(nullptr); }

}  // namespace assay::host::report
