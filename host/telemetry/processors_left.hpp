// How many processors others leave: what is to be known before the number of threads is chosen.
#pragma once
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>

#include "telemetry/contention.hpp"

namespace assay::host::telemetry {

// Of these processors' time, what other processes and other guests took between the two readings, in processors. A
// tenth of each is left out: nothing is ever quite still, and a hundred still processors make no busy one.
double taken_processors(const std::map<int, CpuTicks>& begin, const std::map<int, CpuTicks>& end);
// Over `window`, in which this process sleeps; 0 where the kernel does not tell.
double measure_taken_processors(std::chrono::milliseconds window);

// Threads that have a processor each: at least one. `quota_cores`: of the control group.
std::size_t processors_left(std::size_t usable, std::optional<double> quota_cores, double taken);

}  // namespace assay::host::telemetry
