#include "assay/train/optimizer.hpp"

namespace assay::train {

using compute::DType;
using compute::Tensor;

namespace {
constexpr std::size_t scalar_bytes = 256;  // each of step and lr on its own aligned line
}

Optimizer::Optimizer(const OptimizerConfig& config, const ParameterSet& parameters)
    : config_(config),
      parameters_(parameters),
      moments_(config.name == "adamw" ? 2
               : config.momentum != 0 ? 1
                                      : 0) {}

std::size_t Optimizer::state_bytes() const {
  return 2 * scalar_bytes + moments_ * static_cast<std::size_t>(parameters_.arena_elements()) *
                                compute::size_of(parameters_.policy().state);
}

void Optimizer::bind(void* state) { state_ = state; }

Tensor Optimizer::moment(std::size_t index) const {
  if (index >= moments_) return {};
  const DType dtype = parameters_.policy().state;
  const std::int64_t n = parameters_.arena_elements();
  char* base = static_cast<char*>(state_) + 2 * scalar_bytes;
  return Tensor(base + index * static_cast<std::size_t>(n) * compute::size_of(dtype), dtype, {n});
}

void Optimizer::reset(compute::Backend& backend) const {
  backend.fill(Tensor(state_, DType::i64, {1}), 0);
  backend.fill(Tensor(static_cast<char*>(state_) + scalar_bytes, DType::f32, {1}), config_.lr);
  for (std::size_t i = 0; i < moments_; ++i) backend.fill(moment(i), 0.0);
}

void Optimizer::step(compute::Backend& backend, const LossScaler& scaler) const {
  const Tensor count(state_, DType::i64, {1});
  const Tensor lr(static_cast<char*>(state_) + scalar_bytes, DType::f32, {1});
  const compute::LossScale scale = scaler.tensors();
  scaler.inspect(backend, parameters_.all_gradients());
  backend.advance(count, scale);
  if (config_.name == "adamw")
    backend.adamw(parameters_.all_values(), parameters_.all_gradients(), moment(0), moment(1), count, lr,
                  {config_.beta1, config_.beta2, config_.eps, config_.weight_decay}, parameters_.compute_copy(), scale);
  else
    backend.sgd(parameters_.all_values(), parameters_.all_gradients(), moment(0), count, lr,
                {config_.momentum, config_.weight_decay}, parameters_.compute_copy(), scale);
  scaler.update(backend);
}

}  // namespace assay::train
