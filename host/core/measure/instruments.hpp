// Measuring costs time itself: how much, and how many steps a sample needs so that it does not matter.
#pragma once
#include "measure/recorder.hpp"

#include <cstdint>

namespace assay::host::measure {

inline constexpr std::int64_t most_inner_steps = 10'000;

// The time of a sample with nothing in it, taken as the others are: the same marks and, with `sync`, the same wait. The
// recorder forgets what it has.
double empty_sample_ns(Timeline& timeline, Recorder& recorder, bool sync);

// A hundred times that, and no less than a hundred times what clocks and events of devices resolve.
double worthwhile_sample_ns(double instrument_ns);

// The number of steps to try next, where `inner` steps took `ns` and that is too short.
std::int64_t larger_inner(std::int64_t inner, double ns, double wanted_ns);

}  // namespace assay::host::measure
