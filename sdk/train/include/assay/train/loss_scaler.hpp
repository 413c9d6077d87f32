// Dynamic loss scaling in device memory, so that a captured step needs no word from the host: as torch.amp.GradScaler,
// starting at 65536. Without loss scaling in the policy it is empty and does nothing.
#pragma once
#include <assay/compute/backend.hpp>

#include <assay/workload/precision.hpp>

namespace assay::train {

class LossScaler {
 public:
  static constexpr double start = 65536.0;

  explicit LossScaler(const workload::PrecisionPolicy& policy) : active_(policy.loss_scaling) {}

  bool active() const { return active_; }
  std::size_t state_bytes() const { return active_ ? 5 * scalar_bytes : 0; }
  void bind(void* state) { state_ = state; }
  void reset(compute::Backend& backend, double scale = start) const;
  compute::LossScale tensors() const;  // empty when inactive
  // To be called around the optimizer's update: inspect counts the gradients that are not finite, update moves the
  // scale.
  void inspect(compute::Backend& backend, const compute::Tensor& gradients) const;
  void update(compute::Backend& backend) const;

  // The present scale, and the number of skipped steps; 1 and 0 when inactive. Both block.
  double scale(compute::Backend& backend) const;
  double scale_of_gradients(compute::Backend& backend) const;  // the factor in the gradients in memory
  std::int64_t skipped_steps(compute::Backend& backend) const;
  compute::Tensor good_steps() const { return scalar(2, compute::DType::i64); }  // i64 [1]: in a row; of an active one

 private:
  static constexpr std::size_t scalar_bytes = 256;
  compute::Tensor scalar(std::size_t index, compute::DType dtype) const {
    return compute::Tensor(static_cast<char*>(state_) + index * scalar_bytes, dtype, {1});
  }
  compute::Tensor used_scale() const { return scalar(4, compute::DType::f32); }
  compute::Tensor skipped() const { return scalar(3, compute::DType::i64); }

  bool active_;
  void* state_ = nullptr;
};

}  // namespace assay::train
