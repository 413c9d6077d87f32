// A perceptron of any number of linear layers, with GELU (tanh form) between them and the cross-entropy of classes at
// its end: explicit forward and backward, a plan of its buffers from the step itself.
#pragma once
#include <assay/compute/backend.hpp>

#include <assay/models/linear.hpp>
#include <assay/train/model.hpp>
#include <assay/train/parameters.hpp>
#include <cstdint>
#include <vector>

namespace assay::models {

struct MlpConfig {
  std::int64_t batch = 64;             // samples of a step
  std::vector<std::int64_t> widths{};  // inputs, hidden layers, classes: at least two
};

class Mlp final : public train::Model {
 public:
  // Adds layer<i>.weight and layer<i>.bias, the last layer first, as backward finishes their gradients. The set must
  // outlive the model. INVALID_ARGUMENT for fewer than two widths, or one below 1.
  Mlp(const MlpConfig& config, train::ParameterSet& set);

  const MlpConfig& config() const { return config_; }
  const std::vector<Linear>& layers() const { return layers_; }  // in the order of forward

  // x [batch, inputs] in the activations' dtype, labels i64 [batch]. The mean loss lands in loss(); the logits become
  // their own gradient on the way. INVALID_ARGUMENT for inputs of another type or shape.
  void forward(compute::Backend& b, const compute::Tensor& x, const compute::Tensor& labels) const;
  // To be called after forward, with the same x. Writes the gradients of all parameters; `listener`, if any, hears of
  // them layer by layer. No gradient is made by x.
  void backward(compute::Backend& b, const compute::Tensor& x, train::GradientListener* listener = nullptr) const;

  void set_loss_scale(const compute::Tensor& scale) override { loss_scale_ = scale; }
  compute::Tensor loss() const override { return plan_[loss_]; }

 private:
  using Id = train::BufferPlan::Id;
  void require_inputs(const compute::Tensor& x, const compute::Tensor& labels) const;
  const compute::Tensor& input_of(std::size_t layer, const compute::Tensor& x) const {
    return layer == 0 ? x : plan_[activated_[layer - 1]];
  }

  MlpConfig config_;
  std::vector<Linear> layers_;
  std::vector<Id> hidden_, activated_, by_hidden_;  // of each layer but the last: before and after GELU, its gradient
  Id logits_ = 0, losses_ = 0, loss_ = 0;
  compute::Tensor loss_scale_;
};

// Floating-point operations of the products of a step, forward and backward: no gradient is made by x.
std::uint64_t mlp_step_flops(const MlpConfig& config);

}  // namespace assay::models
