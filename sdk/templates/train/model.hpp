// A perceptron of two layers, logits = gelu(x W1^T + b1) W2^T + b2, with explicit forward and backward. All operations
// of the device stand in these two.
#pragma once
#include <assay/compute/backend.hpp>

#include <assay/train/parameters.hpp>
#include <assay/train/step_recording.hpp>
#include <assay/train/trained_model.hpp>
#include <cmath>

namespace mlp {

using assay::compute::Backend;
using assay::compute::DType;
using assay::compute::Tensor;
using assay::train::ParameterSet;
namespace op = assay::compute::op;

struct Sizes {
  std::int64_t batch, inputs, hidden, classes;
};

class Mlp final : public assay::train::TrainedModel {
 public:
  Mlp(const Sizes& sizes, ParameterSet& set) : sizes_(sizes), set_(set) {
    // In the order in which backward finishes their gradients. Matrices are (out, in).
    w2 = add("w2", {sizes.classes, sizes.hidden}, sizes.hidden);
    b2 = add("b2", {sizes.classes}, 0);
    w1 = add("w1", {sizes.hidden, sizes.inputs}, sizes.inputs);
    b1 = add("b1", {sizes.hidden}, 0);

    // The temporary tensors. The step is walked once, without a device, and from what reads and writes each of them
    // follows where it lies: in one arena, and in the places of gradients that come later.
    const auto type = set.policy().activation;
    hidden_ = plan_.add("hidden", type, {sizes.batch, sizes.hidden});
    activated_ = plan_.add("activated", type, {sizes.batch, sizes.hidden});
    logits_ = plan_.add("logits", type, {sizes.batch, sizes.classes});
    losses_ = plan_.add("losses", DType::f32, {sizes.batch});
    loss_ = plan_.add("loss", DType::f32, {1}, assay::train::BufferPlan::Use::result);
    hidden_gradient_ = plan_.add("hidden gradient", type, {sizes.batch, sizes.hidden});
    const Tensor x(nullptr, type, {sizes.batch, sizes.inputs}), labels(nullptr, DType::i64, {sizes.batch});
    assay::train::plan_step(plan_, &set, [&](Backend& recorder) {
      forward(recorder, x, labels);
      backward(recorder, x);
    });
  }

  // The logits become their own gradient on the way.
  void forward(Backend& backend, const Tensor& x, const Tensor& labels) const {
    const float share = 1.0F / static_cast<float>(sizes_.batch);
    const Tensor &hidden = plan_[hidden_], &activated = plan_[activated_], &logits = plan_[logits_];
    backend.run(op::Matmul{.a = x, .b = set_.compute(w1), .c = hidden, .transpose_b = true, .bias = set_.compute(b1)});
    backend.run(op::ActivationForward{.kind = assay::compute::Activation::gelu_tanh, .x = hidden, .y = activated});
    backend.run(
        op::Matmul{.a = activated, .b = set_.compute(w2), .c = logits, .transpose_b = true, .bias = set_.compute(b2)});
    backend.run(op::CrossEntropyInPlace{
        .logits = logits, .labels = labels, .losses = plan_[losses_], .scale = share, .loss_scale = loss_scale_});
    backend.run(op::Sum{.x = plan_[losses_], .out = plan_[loss_], .factor = share});
  }

  void backward(Backend& backend, const Tensor& x) const {
    const Tensor &hidden = plan_[hidden_], &activated = plan_[activated_], &by_logits = plan_[logits_];
    const Tensor& by_hidden = plan_[hidden_gradient_];
    backend.run(op::Matmul{.a = by_logits, .b = activated, .c = set_.gradient(w2), .transpose_a = true});
    backend.run(op::BiasBackward{.dy = by_logits, .dbias = set_.gradient(b2)});
    backend.run(op::Matmul{.a = by_logits, .b = set_.compute(w2), .c = by_hidden});
    backend.run(op::ActivationBackward{
        .kind = assay::compute::Activation::gelu_tanh, .x = hidden, .dy = by_hidden, .dx = by_hidden});
    backend.run(op::Matmul{.a = by_hidden, .b = x, .c = set_.gradient(w1), .transpose_a = true});
    backend.run(op::BiasBackward{.dy = by_hidden, .dbias = set_.gradient(b1)});
  }

  // What the trainer asks of a model.
  const assay::train::BufferPlan& plan() const override { return plan_; }
  std::size_t activation_bytes() const override { return plan_.own_bytes(); }
  void bind(void* gradients, void* activations) override { plan_.bind(gradients, activations); }
  void set_loss_scale(const Tensor& scale) override { loss_scale_ = scale; }
  void initialize(Backend&) const override {}  // no tables
  Tensor loss() const override { return plan_[loss_]; }

  ParameterSet::Id w1, b1, w2, b2;

 private:
  // `fan_in`: how many inputs an output has; 0: of biases, which start a little beside 0, so that a step that forgets
  // one is found.
  ParameterSet::Id add(const char* name, std::vector<std::int64_t> dims, std::int64_t fan_in) {
    const float spread = fan_in > 0 ? 1.0F / std::sqrt(static_cast<float>(fan_in)) : 0.1F;
    return set_.add({{.name = name, .dims = std::move(dims), .init_std = spread}});
  }

  Sizes sizes_;
  ParameterSet& set_;
  assay::train::BufferPlan plan_;
  assay::train::BufferPlan::Id hidden_, activated_, logits_, losses_, loss_, hidden_gradient_;
  Tensor loss_scale_;
};

}  // namespace mlp
