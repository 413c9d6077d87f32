// UTC times as the results spell them, to the second; events to the millisecond.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace assay::host {

using WallTime = std::chrono::system_clock::time_point;

double seconds_since_1970();  // now, by this machine's clock

std::string utc_stamp(WallTime time);    // "20261120T120000Z", for names of files and folders
std::string utc_text(WallTime time);     // "2026-11-20T12:00:00Z", for records
std::string utc_text_ms(WallTime time);  // "2026-11-20T12:00:00.042Z", for events
// Either of the first two spellings; nothing when it is neither.
std::optional<WallTime> parse_utc(std::string_view text);
// "2026-11-03T12:00:00.123-08:00", with Z or the zone's distance, to the second; nothing if the zone is missing.
std::optional<WallTime> parse_time_with_zone(std::string_view text);

}  // namespace assay::host
