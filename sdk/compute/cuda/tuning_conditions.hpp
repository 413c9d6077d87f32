// Under what algorithms are timed on one GPU, and whether what was seen may be kept for other processes.
#pragma once
#include <assay/telemetry.h>

#include <span>
#include <string>

#include "common/algorithm_cache.hpp"

namespace assay::cuda {

// "SM 1980 MHz of 1980 MHz, memory 3201 MHz of 3201 MHz, power 700 W of 700 W": the limit in force, of the hardware's.
// Unknown parts are left out. They decide which of two kernels is the faster, and a user may set them.
std::string limits_text(const assay_telemetry_limits& limits);

// Whether the times of the winner, in microseconds, are of a GPU that did nothing else meanwhile: half of them are near
// the shortest. (A choice by medians is good as long as half of the rounds are.) One time alone is that of a candidate
// without a rival.
bool is_steady(std::span<const double> times_us);

class NvmlReader;

// Whether another process computes on the GPU now. Not known is no.
bool is_used_by_others(NvmlReader& reader);

}  // namespace assay::cuda
