// The most that a device does, by trial: what a step's rates are compared with.
#pragma once
#include <assay/plugin.hpp>
#include <assay/workload/precision.hpp>
#include <cstdint>

namespace assay::workload {

// Whether ASSAY_PEAK_TRIAL=brief asks for small matrices and copies in trials of what the CPU does, which take
// milliseconds then, and are too low: for tests of anything else. Throws assay::Error, INVALID_ARGUMENT, for any other
// value.
bool peak_trial_is_brief();

// How wide the matrices of a brief trial are.
inline constexpr std::int64_t brief_trial_width = 256;

// The best rate of a square matrix product of random numbers in the policy's type (8192 wide on CUDA, 768 on the CPU),
// and of a copy too large for any cache. Takes about a tenth of a second, with a temporary backend and memory that no
// account has. Blocks. Throws assay::Error, OUT_OF_MEMORY if too little is left.
Peak measure_peak(const Host& host, const Launch& launch, const PrecisionPolicy& precision);

}  // namespace assay::workload
