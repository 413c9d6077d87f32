// The end of a worker's log, fit to be shown and stored.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::launch {

// Valid UTF-8 without control characters: whatever else a plugin wrote becomes '?'. Tabs and newlines stay.
std::string printable_utf8(std::string_view bytes);

// The last `line_count` lines of the file from `begin_offset` on, looking at no more than its last 64 KiB; a longer
// line than 1000 bytes is cut. Empty when the file cannot be read: a missing log must not hide what happened.
std::vector<std::string> last_lines(const std::filesystem::path& file, std::size_t line_count,
                                    std::uint64_t begin_offset = 0);

}  // namespace assay::host::launch
