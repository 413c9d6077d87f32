#include "assay/train/loss_scaler.hpp"

namespace assay::train {

namespace op = compute::op;

using compute::DType;

compute::LossScale LossScaler::tensors() const {
  if (!active_) return {};
  return {scalar(0, DType::f32), scalar(1, DType::f32)};
}

void LossScaler::reset(compute::Backend& backend, double scale) const {
  if (!active_) return;
  backend.run(op::Fill{.x = tensors().scale, .value = scale});
  backend.run(op::Fill{.x = tensors().nonfinite, .value = 0});
  backend.run(op::Fill{.x = good_steps(), .value = 0});
  backend.run(op::Fill{.x = skipped(), .value = 0});
  backend.run(op::Fill{.x = used_scale(), .value = scale});
}

void LossScaler::inspect(compute::Backend& backend, const compute::Tensor& gradients) const {
  if (!active_) return;
  backend.run(op::Copy{.to = used_scale(), .from = tensors().scale});  // update() may change it
  backend.run(op::CountNonfinite{.x = gradients, .out = tensors().nonfinite});
}

void LossScaler::update(compute::Backend& backend) const {
  if (active_)
    backend.run(op::UpdateLossScale{.scale = tensors().scale,
                                    .nonfinite = tensors().nonfinite,
                                    .good_steps = good_steps(),
                                    .skipped_steps = skipped(),
                                    .options = {}});
}

double LossScaler::scale(compute::Backend& backend) const {
  float value = 1.0F;
  if (active_) backend.download(&value, tensors().scale);
  return static_cast<double>(value);
}

double LossScaler::scale_of_gradients(compute::Backend& backend) const {
  float value = 1.0F;
  if (active_) backend.download(&value, used_scale());
  return static_cast<double>(value);
}

std::int64_t LossScaler::skipped_steps(compute::Backend& backend) const {
  std::int64_t value = 0;
  if (active_) backend.download(&value, skipped());
  return value;
}

}  // namespace assay::train
