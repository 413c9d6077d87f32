// A perceptron of two layers, logits = gelu(x W1^T + b1) W2^T + b2, with explicit forward and backward. All operations
// of the device stand in these two and in the layers that they call.
#pragma once
#include <assay/compute/backend.hpp>

#include <assay/models/linear.hpp>
#include <assay/train/model.hpp>
#include <assay/train/parameters.hpp>
#include <assay/train/step_recording.hpp>

namespace mlp {

using assay::compute::Backend;
using assay::compute::DType;
using assay::compute::Tensor;
using assay::train::ParameterSet;
namespace op = assay::compute::op;

struct Sizes {
  std::int64_t batch, inputs, hidden, classes;
};

class Mlp final : public assay::train::Model {
 public:
  // The layers are added in the order in which backward finishes their gradients. Matrices are (out, in).
  Mlp(const Sizes& sizes, ParameterSet& set)
      : sizes_(sizes),
        layer2_(set, "layer2", sizes.hidden, sizes.classes),
        layer1_(set, "layer1", sizes.inputs, sizes.hidden) {
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
    layer1_.forward(backend, x, hidden);
    backend.run(op::ActivationForward{.kind = assay::compute::Activation::gelu_tanh, .x = hidden, .y = activated});
    layer2_.forward(backend, activated, logits);
    backend.run(op::CrossEntropyInPlace{
        .logits = logits, .labels = labels, .losses = plan_[losses_], .scale = share, .loss_scale = loss_scale_});
    backend.run(op::Sum{.x = plan_[losses_], .out = plan_[loss_], .factor = share});
  }

  void backward(Backend& backend, const Tensor& x) const {
    const Tensor &hidden = plan_[hidden_], &by_hidden = plan_[hidden_gradient_];
    layer2_.backward(backend, plan_[logits_], plan_[activated_], by_hidden);
    backend.run(op::ActivationBackward{
        .kind = assay::compute::Activation::gelu_tanh, .x = hidden, .dy = by_hidden, .dx = by_hidden});
    layer1_.backward(backend, by_hidden, x, Tensor());  // nobody needs the gradient by x
  }

  // What the trainer asks of a model.
  void set_loss_scale(const Tensor& scale) override { loss_scale_ = scale; }
  Tensor loss() const override { return plan_[loss_]; }

 private:
  Sizes sizes_;
  assay::models::Linear layer2_, layer1_;
  assay::train::BufferPlan::Id hidden_, activated_, logits_, losses_, loss_, hidden_gradient_;
  Tensor loss_scale_;
};

}  // namespace mlp
