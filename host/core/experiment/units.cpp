#include "experiment/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace assay::host::experiment {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t size;
};
constexpr std::array duration_units_ms{Unit{"h", 3'600'000}, Unit{"m", 60'000}, Unit{"s", 1'000}, Unit{"ms", 1}};
constexpr std::array byte_units{Unit{"TiB", std::int64_t{1} << 40}, Unit{"GiB", std::int64_t{1} << 30},
                                Unit{"MiB", std::int64_t{1} << 20}, Unit{"KiB", std::int64_t{1} << 10}, Unit{"B", 1}};
constexpr std::int64_t longest_duration_ms = std::int64_t{366} * 24 * 3'600'000;
constexpr double most_bytes = 0x1p53;  // beyond it a double no longer holds every count

// Takes digits with an optional fraction from the front of `text`.
std::optional<double> take_number(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + end, number, std::chars_format::fixed);
  if (end == 0 || text.front() == '.' || text[end - 1] == '.' || error != std::errc{} || rest != text.data() + end)
    return std::nullopt;
  text.remove_prefix(end);
  return number;
}

// Takes letters up to the next digit from the front of `text`: the place of that unit in `units`.
template <std::size_t N>
std::optional<std::size_t> take_unit(std::string_view& text, const std::array<Unit, N>& units) {
  const auto name = text.substr(0, std::min(text.find_first_of("0123456789."), text.size()));
  for (std::size_t i = 0; i < N; ++i) {
    if (units[i].name != name) continue;
    text.remove_prefix(name.size());
    return i;
  }
  return std::nullopt;
}

// A whole number of a unit, to the byte however large.
std::optional<std::uint64_t> parse_whole_bytes(std::string_view text) {
  std::int64_t count = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || text.empty() || text.front() == '-') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  const auto unit = take_unit(text, byte_units);
  std::int64_t bytes = 0;
  if (!unit || !text.empty() || __builtin_mul_overflow(count, byte_units[*unit].size, &bytes)) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  double total_ms = 0;
  std::size_t next_unit = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    const auto unit = take_unit(text, duration_units_ms);
    if (!unit || *unit < next_unit) return std::nullopt;
    next_unit = *unit + 1;
    total_ms += *number * static_cast<double>(duration_units_ms[*unit].size);
  }
  return duration_from_seconds(total_ms / 1000.0);
}

std::optional<std::chrono::milliseconds> duration_from_seconds(double seconds) {
  const double duration_ms = seconds * 1000.0;
  if (!(duration_ms >= 0) || duration_ms > static_cast<double>(longest_duration_ms)) return std::nullopt;
  const double whole_ms = std::round(duration_ms);
  if (std::abs(whole_ms - duration_ms) > 1e-4) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(whole_ms));
}

std::string duration_to_text(std::chrono::milliseconds duration) {
  std::int64_t rest_ms = duration.count();
  std::string text;
  for (const auto& unit : duration_units_ms) {
    if (rest_ms < unit.size) continue;
    text += fmt::format("{}{}", rest_ms / unit.size, unit.name);
    rest_ms %= unit.size;
  }
  return text.empty() ? "0ms" : text;
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  if (const auto whole = parse_whole_bytes(text)) return whole;
  const auto number = take_number(text);
  if (!number) return std::nullopt;
  const auto unit = take_unit(text, byte_units);
  if (!unit || !text.empty()) return std::nullopt;
  const double bytes = *number * static_cast<double>(byte_units[*unit].size);
  if (bytes > most_bytes || bytes != std::floor(bytes)) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

std::string bytes_to_text(std::uint64_t bytes) {
  for (const auto& unit : byte_units) {
    const auto size = static_cast<std::uint64_t>(unit.size);
    if (bytes >= size && bytes % size == 0) return fmt::format("{}{}", bytes / size, unit.name);
  }
  return fmt::format("{}B", bytes);
}

}  // namespace assay::host::experiment
