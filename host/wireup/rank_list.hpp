// Ranks in words.
#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <string>

namespace assay::host::wireup {

// "rank 3", "ranks 1, 3 and 5 to 9". `ascending`: sorted, without doubles, not empty.
std::string ranks_text(std::span<const std::int32_t> ascending);

// "5 s", "0.25 s"
std::string seconds_text(std::chrono::milliseconds duration);

}  // namespace assay::host::wireup
