#include "compare/ends.hpp"

#include <fmt/format.h>

#include <cmath>

namespace assay::host::compare {
namespace {

constexpr double farthest_end = 1000;  // from the ratio, as a factor

}  // namespace

Ends ends_of(double ratio, const std::optional<double>& low, const std::optional<double>& high) {
  const auto is_end = [ratio](const std::optional<double>& end) {
    return end && *end > 0 && std::isfinite(*end) && !(*end > ratio * farthest_end) && !(*end < ratio / farthest_end);
  };
  return {is_end(low) ? low : std::nullopt, is_end(high) ? high : std::nullopt};
}

std::string ends_text(const Ends& ends) {
  if (!ends.low && !ends.high) return "";
  if (ends.low == ends.high) return "exact";
  // Both ends with the same digits.
  const auto text = [](const std::optional<double>& end) {
    if (!end) return std::string("?");
    return *end < 1000 ? fmt::format("{:#.4g}", *end) : fmt::format("{:.0f}", *end);
  };
  return fmt::format("{} .. {}", text(ends.low), text(ends.high));
}

}  // namespace assay::host::compare
