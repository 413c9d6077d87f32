// Optimizer steps over whole arenas in one pass over memory, and the numbers in device memory that steer them.
//
// A kernel cannot throw. Where *step is less than 1 (advance() was not called before the first step) the parameters
// become NaN, so that whoever verifies the step sees it.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/operations/optimizers.hpp>

#include <cstdint>

namespace assay::cuda {

// Nullptrs: no scaling. The gradient is divided by *scale; nothing at all is written when *nonfinite > 0.
struct LossScalePointers {
  float* scale;
  const float* nonfinite;
};

// fp32 parameters with a gradient of any floating-point type, the state fp32 or, of AdamW, bf16; or everything bf16
// (computed in fp32, rounded to nearest).
struct OptimizerArgs {
  compute::DType parameter_type, gradient_type, state_type, copy_type;
  std::int64_t count;
  void* parameter;
  const void* gradient;
  void *first, *second;  // AdamW: m and v; SGD: the momentum buffer or nullptr, and nullptr
  void* compute_copy;    // bf16 or fp16 copy of the new parameter, or nullptr
  const std::int64_t* step;
  const float* lr;
  LossScalePointers loss_scale;
  int multiprocessors;  // of the device, for the size of the grid: it changes no result
  // Beside products: blocks that are over soon, since a product's may wait for their place. No result changes.
  bool short_blocks;
};

void adamw(const OptimizerArgs&, const compute::AdamWOptions&, cudaStream_t);
void sgd(const OptimizerArgs&, const compute::SgdOptions&, cudaStream_t);

void advance(std::int64_t* step, const LossScalePointers&, cudaStream_t);
// As torch.amp.GradScaler.update().
void update_loss_scale(const LossScalePointers&, std::int64_t* good_steps, std::int64_t* skipped_steps,
                       const compute::LossScaleOptions&, cudaStream_t);

}  // namespace assay::cuda
