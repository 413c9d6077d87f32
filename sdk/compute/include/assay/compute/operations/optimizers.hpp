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
struct MuonOptions {  // as torch.optim.Muon
  float momentum = 0.95F;
  bool nesterov = true;
};
struct MuonUpdateOptions {
  float weight_decay = 0.1F;
  float factor = 1.0F;  // of the learning rate, by the matrix's shape
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
// The ends of a step of Muon over B matrices of E elements each, which a batch of products makes orthogonal in between
// (train/muon.hpp). In gradient, momentum, parameter and copy the steps from one matrix to the next are free; the
// elements of each lie one after the other.
//   momentum += (1 - options.momentum) (gradient - momentum)
//   update = nesterov ? gradient + options.momentum (momentum - gradient) : momentum
// computed in fp32 from what is not yet rounded.
struct MuonMomentum {
  In gradient;     // [B, E], fp32 or 16 bits
  InOut momentum;  // [B, E], fp32 or bf16
  Out update;      // T [B, E], contiguous; unchanged if the loss scale skips the step
  MuonOptions options;
  LossScale loss_scale = {};
  ASSAY_OPERATION("muon_momentum", gradient, momentum, update, loss_scale)
};
// x[b, :] /= max(eps, sqrt(sum of squares of x[b, :])), the sum in double.
struct NormalizeRows {
  InOut x;  // T [B, E], contiguous
  float eps = 1e-7F;
  ASSAY_OPERATION("normalize_rows", x)
};
// parameter = (1 - lr options.weight_decay) parameter - lr options.factor update
struct MuonUpdate {
  InOut parameter;  // [B, E], fp32 or bf16
  In update;        // T [B, E], contiguous
  In lr;            // fp32 [1]
  MuonUpdateOptions options;
  Optional<Out> compute_copy = {};  // [B, E], bf16 or fp16: receives the rounded parameter
  LossScale loss_scale = {};        // whether the step is skipped; the scale is not looked at
  ASSAY_OPERATION("muon_update", parameter, update, lr, compute_copy, loss_scale)
};
// Run it after the optimizer. nonfinite > 0 shrinks the scale, counts a skipped step and sets good_steps to 0;
// otherwise good_steps counts up, and at the interval the scale grows and the count restarts.
struct UpdateLossScale {
  InOut scale;                      // fp32 [1]
  In nonfinite;                     // fp32 [1]
  InOut good_steps, skipped_steps;  // i64 [1]
  LossScaleOptions options;
  ASSAY_OPERATION("update_loss_scale", scale, nonfinite, good_steps, skipped_steps)
};

}  // namespace op
}  // namespace assay::compute

// clang-format off
#define ASSAY_OPERATIONS_OF_OPTIMIZERS(X) \
  X(Advance) X(AdamW) X(Sgd) X(MuonMomentum) X(NormalizeRows) X(MuonUpdate) X(UpdateLossScale)
// clang-format on
