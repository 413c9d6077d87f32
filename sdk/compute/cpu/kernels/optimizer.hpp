// Optimizer steps over whole arenas, in one pass over memory.
#pragma once
#include <stdint.h>

#include "isa.hpp"

namespace assay::cpu {

// fp32 state with a gradient of fp32 or bf16, the same with AdamW's moments in bf16, or everything bf16 (computed in
// fp32, rounded to nearest).
enum class OptimizerTypes {
  f32,
  f32_with_bf16_gradient,
  f32_with_bf16_moments,
  f32_with_bf16_gradient_and_moments,
  bf16
};

struct OptimizerArgs {
  OptimizerTypes types;
  int64_t count;
  void* parameter;
  const void* gradient;
  void *first, *second;    // AdamW: m and v; SGD: the momentum buffer or nullptr, and nullptr
  uint16_t* compute_copy;  // bf16 copy of the new parameter, or nullptr
};

// The step's constants, computed in double by the caller.
struct AdamWStep {
  float keep;                                // 1 - lr * weight_decay
  float first_new, second_keep, second_new;  // 1 - beta1, beta2, 1 - beta2
  float root_scale;                          // 1 / sqrt(1 - beta2^t)
  float eps;
  float rate;  // lr / (1 - beta1^t)
};
struct SgdStep {
  float rate, weight_decay, momentum;
  bool first;  // the momentum buffer takes the gradient itself
};

// Elements of one matrix. Of each type fp32 or bf16.
struct MuonMomentumArgs {
  bool bf16_gradient, bf16_momentum, bf16_update;
  int64_t count;
  const void* gradient;
  void *momentum, *update;
  float kept, taken;  // of the step's constants: the momentum's factor, and 1 - it
  bool nesterov;
};
struct MuonUpdateArgs {
  bool bf16_parameter, bf16_update;
  int64_t count;
  void* parameter;
  const void* update;
  uint16_t* compute_copy;  // bf16 copy of the new parameter, or nullptr
  float keep, rate;        // 1 - lr * weight_decay, lr * factor
};

struct OptimizerKernels {
  void (*adamw)(const OptimizerArgs&, const AdamWStep&);
  void (*sgd)(const OptimizerArgs&, const SgdStep&);
  void (*muon_momentum)(const MuonMomentumArgs&);
  void (*muon_update)(const MuonUpdateArgs&);
};

}  // namespace assay::cpu

ASSAY_DECLARE_KERNELS_WITH_BF16(OptimizerKernels, optimizer_kernels)
