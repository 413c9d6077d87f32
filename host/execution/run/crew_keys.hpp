// The names of what the leader of a launch and its followers say to each other.
#pragma once
#include <fmt/format.h>

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "wireup/key_value.hpp"

namespace assay::host::run {

// The followers are its members. Orders are not kept below it: what waits there fails when a member is lost. They are
// kept below the leader's prefix, where the service lets nobody else write: a follower does what they say.
inline constexpr const char* crew_group = "crew/";
inline constexpr const char* hello_name = "crew/hello";

// The service's texts on a hello that failed begin with this, its name for the request.
std::string hello_request();

// A text of the service for people: without its names for what the crew asks of it.
std::string without_names(std::string text);

// An order is the text of a CaseSpec, or a dismissal.
inline std::string order_key(std::int32_t rank, std::int64_t number) {
  return fmt::format("{}order/{}/{}", wireup::leader_prefix, rank, number);
}
std::string dismissal(int exit_code);
// The exit code; nothing when the order is a case.
std::optional<int> dismissal_in(const nlohmann::json& order);

// A follower that is asked to end says so here, so that it is not taken for one that has died.
inline std::string farewell_key(std::int32_t rank) { return fmt::format("farewell/{}", rank); }

// Below the prefix of the case.
inline std::string report_key(std::int32_t rank) { return fmt::format("report/{}", rank); }

// Not below the case's prefix, whose keys go when the case ends for the leader: a follower that begins with an order
// late must still read that its case is over.
inline std::string abort_key(const std::string& prefix) {
  return fmt::format("{}abort/{}", wireup::leader_prefix, prefix);
}

}  // namespace assay::host::run
