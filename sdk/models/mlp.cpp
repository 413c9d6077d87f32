#include "assay/models/mlp.hpp"

#include <algorithm>
#include <assay/plugin.hpp>
#include <assay/train/step_recording.hpp>
#include <string>

namespace assay::models {

namespace op = compute::op;

using compute::Activation;
using compute::DType;
using compute::Tensor;

Mlp::Mlp(const MlpConfig& config, train::ParameterSet& set) : config_(config) {
  const std::vector<std::int64_t>& widths = config.widths;
  if (widths.size() < 2 || config.batch < 1 ||
      std::any_of(widths.begin(), widths.end(), [](std::int64_t width) { return width < 1; }))
    throw Error(ASSAY_INVALID_ARGUMENT, "a perceptron has a batch and at least two widths, each of 1 or more");
  for (std::size_t i = widths.size() - 1; i-- > 0;)
    layers_.insert(layers_.begin(), Linear(set, "layer" + std::to_string(i), widths[i], widths[i + 1]));

  const DType type = set.policy().activation;
  for (std::size_t i = 0; i + 1 < layers_.size(); ++i) {
    const auto buffer = [&](const char* what) {
      return plan_.add("layer" + std::to_string(i) + "." + what, type, {config.batch, widths[i + 1]});
    };
    hidden_.push_back(buffer("hidden"));
    activated_.push_back(buffer("activated"));
    by_hidden_.push_back(buffer("hidden.gradient"));
  }
  logits_ = plan_.add("logits", type, {config.batch, widths.back()});
  losses_ = plan_.add("losses", DType::f32, {config.batch});
  loss_ = plan_.add("loss", DType::f32, {1}, train::BufferPlan::Use::result);
  const Tensor x(nullptr, type, {config.batch, widths.front()}), labels(nullptr, DType::i64, {config.batch});
  train::plan_step(plan_, &set, [&](compute::Backend& recorder) {
    forward(recorder, x, labels);
    backward(recorder, x);
  });
}

void Mlp::require_inputs(const Tensor& x, const Tensor& labels) const {
  const auto require = [](const Tensor& t, const char* name, DType dtype, const std::vector<std::int64_t>& dims) {
    bool fits = t.dtype == dtype && static_cast<std::size_t>(t.rank) == dims.size();
    for (std::size_t i = 0; fits && i < dims.size(); ++i) fits = t.dim(static_cast<int>(i)) == dims[i];
    if (fits) return;
    std::string expected, found;
    for (const std::int64_t d : dims) expected += (expected.empty() ? "" : ", ") + std::to_string(d);
    for (int i = 0; i < t.rank; ++i) found += (found.empty() ? "" : ", ") + std::to_string(t.dim(i));
    throw Error(ASSAY_INVALID_ARGUMENT, std::string("the perceptron's ") + name + " is " + compute::name_of(t.dtype) +
                                            " [" + found + "]; expected " + compute::name_of(dtype) + " [" + expected +
                                            "]");
  };
  require(x, "input", plan_[logits_].dtype, {config_.batch, config_.widths.front()});
  require(labels, "labels", DType::i64, {config_.batch});
}

void Mlp::forward(compute::Backend& b, const Tensor& x, const Tensor& labels) const {
  require_inputs(x, labels);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const bool is_last = i + 1 == layers_.size();
    layers_[i].forward(b, input_of(i, x), plan_[is_last ? logits_ : hidden_[i]]);
    if (!is_last)
      b.run(op::ActivationForward{.kind = Activation::gelu_tanh, .x = plan_[hidden_[i]], .y = plan_[activated_[i]]});
  }
  const float share = 1.0F / static_cast<float>(config_.batch);
  b.run(op::CrossEntropyInPlace{
      .logits = plan_[logits_], .labels = labels, .losses = plan_[losses_], .scale = share, .loss_scale = loss_scale_});
  b.run(op::Sum{.x = plan_[losses_], .out = plan_[loss_], .factor = share});
}

void Mlp::backward(compute::Backend& b, const Tensor& x, train::GradientListener* listener) const {
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const Tensor& by_output = plan_[i + 1 == layers_.size() ? logits_ : by_hidden_[i]];
    layers_[i].backward(b, by_output, input_of(i, x), i > 0 ? plan_[by_hidden_[i - 1]] : Tensor());
    if (listener) listener->gradients_ready(layers_[i].bias() + 1);
    if (i == 0) continue;
    const Tensor& by_hidden = plan_[by_hidden_[i - 1]];
    b.run(op::ActivationBackward{
        .kind = Activation::gelu_tanh, .x = plan_[hidden_[i - 1]], .dy = by_hidden, .dx = by_hidden});
  }
}

std::uint64_t mlp_step_flops(const MlpConfig& config) {
  std::uint64_t products = 0;  // multiply-adds
  for (std::size_t i = 0; i + 1 < config.widths.size(); ++i)
    products += static_cast<std::uint64_t>(config.batch * config.widths[i] * config.widths[i + 1]) * (i == 0 ? 2 : 3);
  return 2 * products;
}

}  // namespace assay::models
