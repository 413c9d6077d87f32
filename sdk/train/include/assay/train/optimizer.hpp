// AdamW and SGD over a whole parameter arena in one pass. The step number and the learning rate live in device memory:
// a captured step reads them there.
#pragma once
#include <assay/plugin.hpp>

#include <array>
#include <assay/train/loss_scaler.hpp>
#include <assay/train/parameters.hpp>
#include <optional>
#include <string_view>

namespace assay::train {

inline constexpr std::array<const char*, 2> optimizer_names{"adamw", "sgd"};

struct OptimizerConfig {
  std::string_view name = "adamw";  // of optimizer_names, static
  double lr = 1e-4;
  float beta1 = 0.9F, beta2 = 0.999F, eps = 1e-8F;
  float weight_decay = 0.01F;
  float momentum = 0.0F;  // of sgd
};

class Optimizer {
 public:
  Optimizer(const OptimizerConfig& config, const ParameterSet& parameters);

  std::size_t state_bytes() const;  // first and second moments, or the momentum; step and lr included
  void bind(void* state);
  void reset(compute::Backend& backend) const;  // zero state, step 0
  // Enqueues one update of every parameter, or none when the scaler finds a gradient that is not finite.
  void step(compute::Backend& backend, const LossScaler& scaler) const;

 private:
  compute::Tensor moment(std::size_t index) const;

  OptimizerConfig config_;
  const ParameterSet& parameters_;
  std::size_t moments_;
  void* state_ = nullptr;
};

}  // namespace assay::train
