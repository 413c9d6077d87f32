// Where a rank runs.
#pragma once
#include <cstdint>
#include <string>

namespace assay::host {

struct RankPlace {
  std::string host;
  std::int32_t local_rank = -1;  // as the launcher says; -1: it says nothing
  std::string processors;        // what its process may use, as text: equal ones are shared
};
// Throws LaunchError when this machine does not tell its name.
RankPlace place_of_this_process(std::int32_t local_rank);

// How the processes of a launch tell each other.
std::string to_text(const RankPlace& place);
RankPlace place_from(const std::string& text);

}  // namespace assay::host
