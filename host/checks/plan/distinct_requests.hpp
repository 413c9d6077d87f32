// Which cases are one to their workload: those that repeat, and those that differ in settings that no workload sees.
#pragma once
#include <cstddef>
#include <vector>

#include "plan/walk.hpp"

namespace assay::host::plan {

struct DistinctRequests {
  std::vector<std::size_t> first;  // of each kind, its first request
  std::vector<std::size_t> kind;   // of each request: a place in `first`
};

// By all that a workload is given before its first step: parameters, ranks, seed, whether set-up prepares steps, and
// the timeout of collectives.
DistinctRequests distinct_among(const std::vector<WalkRequest>& requests);

}  // namespace assay::host::plan
