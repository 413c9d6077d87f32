// Durations and byte counts with a unit in their text.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay::host::experiment {

// "10m", "90s", "500ms", "1h30m", "1.5h": h, m, s, ms, each at most once and the larger first. Nothing when malformed,
// not a whole number of milliseconds, or above a year.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);
std::optional<std::chrono::milliseconds> duration_from_seconds(double seconds);
std::string duration_to_text(std::chrono::milliseconds duration);  // reads back to the same: "1h30m", "500ms", "0ms"

// "4GiB", "512MiB", "1.5KiB", "100B": binary units only. Nothing when malformed or not a whole number of bytes.
std::optional<std::uint64_t> parse_bytes(std::string_view text);
std::string bytes_to_text(std::uint64_t bytes);  // the largest unit that divides it: "4GiB", "1000B"

}  // namespace assay::host::experiment
