// How many processors this process may use, and how many of them others keep busy.
#pragma once
#include <cstddef>
#include <map>
#include <optional>

#include "telemetry/contention.hpp"

namespace assay::host::telemetry {

// Of these processors' time, what other processes and other guests took between the two readings, in processors. A
// tenth of each is left out: nothing is ever quite still, and a hundred still processors make no busy one.
double taken_processors(const std::map<int, CpuTicks>& begin, const std::map<int, CpuTicks>& end);

// Of `usable` ones those whose time the control group's quota allows: at least one.
std::size_t allowed_processors(std::size_t usable, std::optional<double> quota_cores);

}  // namespace assay::host::telemetry
