// How the leader of a launch and its followers name what they say to each other.
#pragma once
#include <fmt/format.h>

#include <string>

#include "run/crew.hpp"

namespace assay::host {

// The followers are its members. Orders are not kept below it: what waits there fails when a member is lost.
inline constexpr const char* crew_group = "crew/";
inline constexpr const char* hello_name = "crew/hello";

inline std::string order_key(std::int32_t rank, std::int64_t number) {
  return fmt::format("order/{}/{}", rank, number);
}
// Below the prefix of the case.
inline std::string report_key(std::int32_t rank) { return fmt::format("report/{}", rank); }

std::string to_text(const RankPlace& place);
RankPlace place_from(const std::string& text);

}  // namespace assay::host
