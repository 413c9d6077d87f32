// The frequencies of rotary_scaling.hpp in float64, from the definitions and independent of what devices compute.
#pragma once
#include <assay/compute/rotary_scaling.hpp>

#include <cstdint>

namespace assay::compute {

// What pair i of `pairs` (D/2) turns by in a position, in radians.
double reference_rotary_frequency(double theta, const RotaryScaling& scaling, std::int64_t pair, std::int64_t pairs);
// What cosines and sines are multiplied by.
double reference_rotary_magnitude(const RotaryScaling& scaling);

}  // namespace assay::compute
