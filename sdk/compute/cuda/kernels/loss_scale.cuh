// What kernels of optimizers read of a loss scale. Included by .cu files only.
#pragma once
#include "kernels/optimizer.hpp"

namespace assay::cuda {

// Whether a gradient of this step is not finite.
__device__ __forceinline__ bool skipped(const LossScalePointers& loss_scale) {
  return loss_scale.nonfinite && *loss_scale.nonfinite > 0.0F;
}
__device__ __forceinline__ float unscale_factor(const LossScalePointers& loss_scale) {
  return loss_scale.scale ? static_cast<float>(1.0 / static_cast<double>(*loss_scale.scale)) : 1.0F;
}

}  // namespace assay::cuda
