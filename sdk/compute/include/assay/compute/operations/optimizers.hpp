// Optimizers, over whole arenas, and the scaling of the loss.
#pragma once
#include <assay/compute/operation_fields.hpp>

#include <cstdint>

namespace assay::compute {

struct AdamWOptions {  // as torch.optim.AdamW; lr and step come from device memory
  float beta1 = 0.9F, beta2 = 0.999F, eps = 1e-8F, weight_decay = 0.01F;
};
struct SgdOptions {  // as torch.optim.SGD with dampening 0
  float momentum = 0.0F, weight_decay = 0.0F;
};

// Dynamic loss scaling, for fp16: the loss's gradient is multiplied by *scale, the optimizer divides by it, and a step
// whose gradients are not all finite changes nothing. Empty tensors: no scaling.
struct LossScale {
  Optional<In> scale = {};      // fp32 [1] in device memory
  Optional<In> nonfinite = {};  // fp32 [1]: how many gradient elements were not finite, from CountNonfinite
  ASSAY_TENSORS(scale, nonfinite)
};
struct LossScaleOptions {  // as torch.amp.GradScaler, but that the scale does not shrink below 2^-64
  float growth = 2.0F, backoff = 0.5F;
  std::int64_t growth_interval = 2000;  // steps in a row without a skip before the scale grows
};

namespace op {

// *step += 1, but not when loss_scale.nonfinite is given and holds more than 0.
struct Advance {
  InOut step;  // i64 [1]
  LossScale loss_scale = {};
  ASSAY_OPERATION("advance", step, loss_scale)
};
// parameter: fp32, m and v: fp32, or both bf16; gradient: fp32 or 16 bits wide; or all of them bf16. Computed in fp32,
// the update from moments that are not yet rounded; 16-bit numbers are rounded to nearest.
struct AdamW {
  InOut parameter;
  In gradient;
  InOut m, v;
  In step;  // i64 [1], counts from 1
  In lr;    // fp32 [1]
  AdamWOptions options;
  Optional<Out> compute_copy = {};  // bf16 or fp16: receives the rounded parameter
  LossScale loss_scale = {};
  ASSAY_OPERATION("adamw", parameter, gradient, m, v, step, lr, compute_copy, loss_scale)
};
// The first step (step == 1) sets momentum = gradient.
struct Sgd {
  InOut parameter;
  In gradient;
  Optional<InOut> momentum = {};  // may be empty when options.momentum is 0
  In step, lr;
  SgdOptions options;
  Optional<Out> compute_copy = {};
  LossScale loss_scale = {};
  ASSAY_OPERATION("sgd", parameter, gradient, momentum, step, lr, compute_copy, loss_scale)
};
// To be run after the optimizer. nonfinite > 0 shrinks the scale, counts a skipped step and sets good_steps to 0;
// otherwise good_steps counts up, and at the interval the scale grows and it starts anew.
struct UpdateLossScale {
  InOut scale;                      // fp32 [1]
  In nonfinite;                     // fp32 [1]
  InOut good_steps, skipped_steps;  // i64 [1]
  LossScaleOptions options;
  ASSAY_OPERATION("update_loss_scale", scale, nonfinite, good_steps, skipped_steps)
};

}  // namespace op
}  // namespace assay::compute
