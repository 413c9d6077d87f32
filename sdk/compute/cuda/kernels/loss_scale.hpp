// How a loss scale moves: plain arithmetic, which the kernel and a test without a GPU share.
#pragma once
#include <cmath>

#ifdef __CUDACC__
#define ASSAY_HOST_DEVICE __host__ __device__
#else
#define ASSAY_HOST_DEVICE
#endif

namespace assay::cuda {

// Backing off ends here: with a scale of 0 every gradient is 0/0 when it is divided by the scale, and every weight no
// number one step later. Its reciprocal is a number in fp32; products in fp16 have underflown long before.
constexpr float smallest_loss_scale = 0x1p-64F;

ASSAY_HOST_DEVICE inline float shrunk_loss_scale(float scale, float backoff) {
  const float shrunk = scale * backoff;
  if (shrunk >= smallest_loss_scale) return shrunk;
  return scale < smallest_loss_scale ? scale : smallest_loss_scale;  // one that began below stays where it is
}

// A scale that would overflow stays: with an infinite one no later step could be finite.
ASSAY_HOST_DEVICE inline float grown_loss_scale(float scale, float growth) {
  const float grown = scale * growth;
  return std::isfinite(grown) ? grown : scale;
}

}  // namespace assay::cuda
