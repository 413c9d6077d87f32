#include "toy_model.hpp"

#include <cmath>

namespace mixed_precision {

namespace op = assay::compute::op;

using assay::compute::Activation;
using assay::compute::Backend;
using assay::compute::DType;
using assay::compute::Tensor;
using assay::train::ParameterSet;

namespace {

constexpr float norm_eps = 1e-5F;
constexpr std::uint64_t input_stream = 1'000'001, label_stream = 1'000'002;

ToyParameters add_parameters(ParameterSet& set) {
  const auto matrix = [](const char* name, std::int64_t out, std::int64_t in) {
    return assay::train::Parameter{name, {out, in}, 0, 0.0F, std::sqrt(2.0F / static_cast<float>(in + out))};
  };
  ToyParameters ids{};
  ids.fc2 = set.add({matrix("fc2.weight", toy_classes, toy_hidden)});
  ids.norm_weight = set.add({{"ln.weight", {toy_hidden}, 0, 1.0F, 0.0F}});
  ids.norm_bias = set.add({{"ln.bias", {toy_hidden}, 0, 0.0F, 0.0F}});
  ids.fc1 = set.add({matrix("fc1.weight", toy_hidden, toy_inputs)});
  return ids;
}

}  // namespace

ToyModel::ToyModel(const ParameterSet& set, const ToyParameters& ids, Casting casting)
    : set_(set), ids_(ids), widens_norm_(casting == Casting::autocast && set.policy().activation != DType::f32) {
  const DType act = set.policy().activation;
  // A few kilobytes: all of them live as long as the step.
  const auto buffer = [&](const char* name, DType dtype, std::initializer_list<std::int64_t> dims) {
    return plan_.add(name, dtype, dims, 0, 1);
  };
  hidden_ = buffer("fc1.output", act, {toy_rows, toy_hidden});
  rectified_ = buffer("relu.output", act, {toy_rows, toy_hidden});
  normed_ = buffer("ln.output", act, {toy_rows, toy_hidden});
  mean_ = buffer("ln.mean", DType::f32, {toy_rows});
  rstd_ = buffer("ln.rstd", DType::f32, {toy_rows});
  logits_ = buffer("logits", act, {toy_rows, toy_classes});
  losses_ = buffer("losses", DType::f32, {toy_rows});
  lse_ = buffer("losses.lse", DType::f32, {toy_rows});
  loss_ = buffer("loss", DType::f32, {1});
  dlogits_ = buffer("logits.gradient", act, {toy_rows, toy_classes});
  dnormed_ = buffer("ln.output.gradient", act, {toy_rows, toy_hidden});
  dhidden_ = buffer("fc1.output.gradient", act, {toy_rows, toy_hidden});
  if (widens_norm_) {
    wide_rectified_ = buffer("ln.input.fp32", DType::f32, {toy_rows, toy_hidden});
    wide_normed_ = buffer("ln.output.fp32", DType::f32, {toy_rows, toy_hidden});
    wide_dnormed_ = buffer("ln.output.fp32.gradient", DType::f32, {toy_rows, toy_hidden});
    wide_drectified_ = buffer("ln.input.fp32.gradient", DType::f32, {toy_rows, toy_hidden});
    rounded_fc1_ = buffer("fc1.weight.gradient", act, {toy_hidden, toy_inputs});
    rounded_fc2_ = buffer("fc2.weight.gradient", act, {toy_classes, toy_hidden});
  }
  plan_.solve();
}

void ToyModel::norm_forward(Backend& b) const {
  if (widens_norm_) b.run(op::Copy{.to = plan_[wide_rectified_], .from = plan_[rectified_]});
  b.run(op::LayerNormForward{.x = plan_[widens_norm_ ? wide_rectified_ : rectified_],
                             .weight = set_.value(ids_.norm_weight),
                             .bias = set_.value(ids_.norm_bias),
                             .y = norm_output(),
                             .mean = plan_[mean_],
                             .rstd = plan_[rstd_],
                             .eps = norm_eps});
  if (widens_norm_) b.run(op::Copy{.to = plan_[normed_], .from = plan_[wide_normed_]});
}

void ToyModel::norm_backward(Backend& b) const {
  if (widens_norm_) b.run(op::Copy{.to = plan_[wide_dnormed_], .from = plan_[dnormed_]});
  b.run(op::LayerNormBackward{.dy = plan_[widens_norm_ ? wide_dnormed_ : dnormed_],
                              .x = plan_[widens_norm_ ? wide_rectified_ : rectified_],
                              .weight = set_.value(ids_.norm_weight),
                              .mean = plan_[mean_],
                              .rstd = plan_[rstd_],
                              .dx = plan_[widens_norm_ ? wide_drectified_ : dhidden_],
                              .dweight = set_.gradient(ids_.norm_weight),
                              .dbias = set_.gradient(ids_.norm_bias)});
  if (widens_norm_) b.run(op::Copy{.to = plan_[dhidden_], .from = plan_[wide_drectified_]});
}

void ToyModel::matrix_gradient(Backend& b, const Tensor& dy, const Tensor& x, ParameterSet::Id id,
                               Buffer rounded) const {
  b.run(op::Matmul{.a = dy, .b = x, .c = widens_norm_ ? plan_[rounded] : set_.gradient(id), .transpose_a = true});
  if (widens_norm_) b.run(op::Copy{.to = set_.gradient(id), .from = plan_[rounded]});
}

void ToyModel::forward(Backend& b, const Tensor& x, const Tensor& labels) const {
  b.run(op::Matmul{.a = x, .b = set_.compute(ids_.fc1), .c = plan_[hidden_], .transpose_b = true});
  b.run(op::ActivationForward{.kind = Activation::relu, .x = plan_[hidden_], .y = plan_[rectified_]});
  norm_forward(b);
  b.run(op::Matmul{.a = plan_[normed_], .b = set_.compute(ids_.fc2), .c = plan_[logits_], .transpose_b = true});
  b.run(op::CrossEntropyForward{
      .logits = plan_[logits_], .labels = labels, .losses = plan_[losses_], .lse = plan_[lse_]});
  b.run(op::Sum{.x = plan_[losses_], .out = plan_[loss_], .factor = 1.0F / static_cast<float>(toy_rows)});
}

void ToyModel::backward(Backend& b, const Tensor& x, const Tensor& labels) const {
  b.run(op::CrossEntropyBackward{.logits = plan_[logits_],
                                 .labels = labels,
                                 .lse = plan_[lse_],
                                 .scale = 1.0F / static_cast<float>(toy_rows),
                                 .loss_scale = loss_scale_,
                                 .dlogits = plan_[dlogits_]});
  matrix_gradient(b, plan_[dlogits_], plan_[normed_], ids_.fc2, rounded_fc2_);
  b.run(op::Matmul{.a = plan_[dlogits_], .b = set_.compute(ids_.fc2), .c = plan_[dnormed_]});
  norm_backward(b);
  b.run(op::ActivationBackward{
      .kind = Activation::relu, .x = plan_[hidden_], .dy = plan_[dhidden_], .dx = plan_[dhidden_]});
  matrix_gradient(b, plan_[dhidden_], x, ids_.fc1, rounded_fc1_);
}

ToyTrainer::ToyTrainer(const assay::Host& host, const assay::train::TrainerConfig& config, Casting casting)
    : Trainer(host, config),
      seed_(config.seed),
      ids_(add_parameters(parameters())),
      model_(parameters(), ids_, casting) {
  use(model_);
}

void ToyTrainer::take_input_memory() {
  constexpr std::size_t room = 4096;  // for each of: fp32 inputs, inputs, labels
  static_assert(toy_rows * toy_inputs * 4 <= room && toy_rows * 8 <= room);
  data_memory_ = assay::DeviceMemory(host(), ASSAY_MEMORY_DATA, 3 * room, "inputs and labels");
  drawn_ = Tensor(data_memory_.data(), DType::f32, {toy_rows, toy_inputs});
  x_ = Tensor(data_memory_.data<char>() + room, parameters().policy().activation, {toy_rows, toy_inputs});
  labels_ = Tensor(data_memory_.data<char>() + 2 * room, DType::i64, {toy_rows});
}

void ToyTrainer::load_inputs() {
  backend().run(op::RandomNormal{.x = drawn_, .seed = seed_, .stream = input_stream, .mean = 0.0F, .std = 1.0F});
  backend().run(op::Copy{.to = x_, .from = drawn_});
  backend().run(op::RandomIntegers{.x = labels_, .seed = seed_, .stream = label_stream, .low = 0, .high = toy_classes});
}

}  // namespace mixed_precision
