// A toy model and its trainer: logits = fc2(layer_norm(relu(fc1(x)))), fc1 and fc2 without bias,
// cross-entropy against one class a row. Every layer reads its dtypes off the tensors that it is given.
//
// Casting::policy leaves all outputs in the activations' format, and lets products write gradients in theirs.
// Casting::autocast does what PyTorch's autocast does where activations are 16 bits wide. Layer norm reads and writes
// fp32, and its neighbours are converted there and back. The gradient by a matrix is rounded to the activations' format
// before it is widened to that of the gradients.
#pragma once
#include <assay/train/trainer.hpp>

namespace mixed_precision {

inline constexpr std::int64_t toy_rows = 32, toy_inputs = 20, toy_hidden = 10, toy_classes = 5;

enum class Casting { policy, autocast };

struct ToyParameters {
  assay::train::ParameterSet::Id fc2, norm_weight, norm_bias, fc1;  // in the order of the arena
};

class ToyModel final : public assay::train::Model {
 public:
  ToyModel(const assay::train::ParameterSet& set, const ToyParameters& ids, Casting casting);

  void set_loss_scale(const assay::compute::Tensor& scale) override { loss_scale_ = scale; }
  assay::compute::Tensor loss() const override { return plan_[loss_]; }

  // x [rows, inputs] in the activations' format, labels i64 [rows].
  void forward(assay::compute::Backend& b, const assay::compute::Tensor& x, const assay::compute::Tensor& labels) const;
  void backward(assay::compute::Backend& b, const assay::compute::Tensor& x,
                const assay::compute::Tensor& labels) const;

  // Outputs of the layers, as they lie in memory after a forward and a backward.
  const assay::compute::Tensor& fc1_output() const { return plan_[hidden_]; }
  const assay::compute::Tensor& relu_output() const { return plan_[rectified_]; }
  const assay::compute::Tensor& norm_mean() const { return plan_[mean_]; }
  const assay::compute::Tensor& norm_output() const { return plan_[widens_norm_ ? wide_normed_ : normed_]; }
  const assay::compute::Tensor& logits() const { return plan_[logits_]; }
  const assay::compute::Tensor& logits_gradient() const { return plan_[dlogits_]; }
  const assay::compute::Tensor& hidden_gradient() const { return plan_[dhidden_]; }

 private:
  using Buffer = assay::train::BufferPlan::Id;
  void norm_forward(assay::compute::Backend& b) const;
  void norm_backward(assay::compute::Backend& b) const;
  // The gradient by a matrix, `dy` x.
  void matrix_gradient(assay::compute::Backend& b, const assay::compute::Tensor& dy, const assay::compute::Tensor& x,
                       assay::train::ParameterSet::Id id, Buffer rounded) const;

  const assay::train::ParameterSet& set_;
  const ToyParameters& ids_;
  bool widens_norm_;  // autocast of activations of 16 bits
  Buffer hidden_, rectified_, normed_, mean_, rstd_, logits_, losses_, lse_, loss_, dlogits_, dnormed_, dhidden_;
  // With widens_norm_ alone: fp32 twins of the norm's input, output, and their gradients; gradients by the matrices.
  Buffer wide_rectified_{}, wide_normed_{}, wide_dnormed_{}, wide_drectified_{}, rounded_fc1_{}, rounded_fc2_{};
  assay::compute::Tensor loss_scale_;
};

class ToyTrainer : public assay::train::Trainer {
 public:
  ToyTrainer(const assay::Host& host, const assay::train::TrainerConfig& config, Casting casting);
  void forward() const override { model_.forward(backend(), x_, labels_); }
  void backward(assay::train::GradientListener* = nullptr) const override { model_.backward(backend(), x_, labels_); }

  const ToyModel& model() const { return model_; }
  const ToyParameters& ids() const { return ids_; }
  const assay::compute::Tensor& inputs() const { return x_; }
  const assay::compute::Tensor& labels() const { return labels_; }
  const assay::compute::Tensor& drawn_inputs() const { return drawn_; }  // fp32, before they were stored in inputs()

 private:
  void take_input_memory() override;
  void load_inputs() override;

  std::uint64_t seed_;
  ToyParameters ids_;
  ToyModel model_;
  assay::DeviceMemory data_memory_;
  assay::compute::Tensor drawn_, x_, labels_;
};

}  // namespace mixed_precision
