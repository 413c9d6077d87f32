// The place of a rank: its machine, and what it shares there.
#pragma once
#include <cstdint>
#include <string>

namespace assay::host::run {

struct RankPlace {
  std::string host;
  std::int32_t local_rank = -1;  // as the launcher says; -1: it does not say
  std::string processors;        // what its process may use, as text: equal ones are shared
};
// Throws LaunchError when this machine does not know its name.
RankPlace place_of_this_process(std::int32_t local_rank);

// The form in which the processes of a launch send each other their places.
std::string to_text(const RankPlace& place);
RankPlace place_from(const std::string& text);

}  // namespace assay::host::run
