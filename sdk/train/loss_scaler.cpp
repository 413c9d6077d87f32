#include "assay/train/loss_scaler.hpp"

namespace assay::train {

using compute::DType;

compute::LossScale LossScaler::tensors() const {
  if (!active_) return {};
  return {scalar(0, DType::f32), scalar(1, DType::f32)};
}

void LossScaler::reset(compute::Backend& backend, double scale) const {
  if (!active_) return;
  backend.fill(tensors().scale, scale);
  backend.fill(tensors().nonfinite, 0);
  backend.fill(good_steps(), 0);
  backend.fill(skipped(), 0);
  backend.fill(used_scale(), scale);
}

void LossScaler::inspect(compute::Backend& backend, const compute::Tensor& gradients) const {
  if (!active_) return;
  backend.copy(used_scale(), tensors().scale);  // update() may change it
  backend.count_nonfinite(gradients, tensors().nonfinite);
}

void LossScaler::update(compute::Backend& backend) const {
  if (active_) backend.update_loss_scale(tensors(), good_steps(), skipped(), {});
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
