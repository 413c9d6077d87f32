// What torchrun sets for a process of several, set for the program of a rank.
#pragma once
#include <assay/comm.h>
#include <assay/plugin.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace command {

// RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, and where rank 0 listens: MASTER_ADDR, and MASTER_PORT, which was
// free a moment ago. Every rank calls it with the same `start`, once. Nothing where there is one rank. Throws
// assay::Error.
std::vector<std::pair<std::string, std::string>> rank_variables(const assay::Host& host, std::uint64_t start);

}  // namespace command
