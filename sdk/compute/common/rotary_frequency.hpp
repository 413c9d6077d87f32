// The frequencies of rotary_scaling.hpp as kernels compute them, on the host and on a GPU.
#pragma once
#include <assay/compute/rotary_scaling.hpp>

#include <cmath>
#include <cstdint>

#if defined(__CUDACC__)
#define ASSAY_ROTARY_ON_BOTH __host__ __device__
#else
#define ASSAY_ROTARY_ON_BOTH
#endif

namespace assay::compute {

// Every kind keeps a share of the frequency, a line in the frequency or in the pair's number between 0 and 1, and
// divides the rest by the factor.
struct RotaryCurve {
  double theta = 1, factor = 1;
  double by_frequency = 0, by_pair = 0, constant = 1;
  double magnitude = 1;
};
RotaryCurve rotary_curve(double theta, const RotaryScaling& scaling, std::int64_t pairs);

ASSAY_ROTARY_ON_BOTH inline double rotary_frequency(const RotaryCurve& c, std::int64_t pair, std::int64_t pairs) {
  const double whole = pow(c.theta, -static_cast<double>(pair) / static_cast<double>(pairs));
  const double line = c.by_frequency * whole + c.by_pair * static_cast<double>(pair) + c.constant;
  const double kept = line < 0 ? 0 : line > 1 ? 1 : line;
  return whole * (kept + (1 - kept) / c.factor);
}

}  // namespace assay::compute

#undef ASSAY_ROTARY_ON_BOTH
