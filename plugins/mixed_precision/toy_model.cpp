#include "toy_model.hpp"

#include <cmath>

namespace mixed_precision {

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

ToyModel::ToyModel(const ParameterSet& set, const ToyParameters& ids) : set_(set), ids_(ids) {
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
  plan_.solve();
}

void ToyModel::forward(Backend& b, const Tensor& x, const Tensor& labels) const {
  b.matmul(x, set_.compute(ids_.fc1), plan_[hidden_], {.transpose_b = true});
  b.activation_forward(Activation::relu, plan_[hidden_], plan_[rectified_]);
  b.layer_norm_forward(plan_[rectified_], set_.value(ids_.norm_weight), set_.value(ids_.norm_bias), plan_[normed_],
                       plan_[mean_], plan_[rstd_], norm_eps);
  b.matmul(plan_[normed_], set_.compute(ids_.fc2), plan_[logits_], {.transpose_b = true});
  b.cross_entropy_forward(plan_[logits_], labels, plan_[losses_], plan_[lse_]);
  b.sum(plan_[losses_], plan_[loss_], 1.0F / static_cast<float>(toy_rows));
}

void ToyModel::backward(Backend& b, const Tensor& x, const Tensor& labels) const {
  b.cross_entropy_backward(plan_[logits_], labels, plan_[lse_], 1.0F / static_cast<float>(toy_rows), loss_scale_,
                           plan_[dlogits_]);
  b.matmul(plan_[dlogits_], plan_[normed_], set_.gradient(ids_.fc2), {.transpose_a = true});
  b.matmul(plan_[dlogits_], set_.compute(ids_.fc2), plan_[dnormed_]);
  b.layer_norm_backward(plan_[dnormed_], plan_[rectified_], set_.value(ids_.norm_weight), plan_[mean_], plan_[rstd_],
                        {}, plan_[dhidden_], set_.gradient(ids_.norm_weight), set_.gradient(ids_.norm_bias), false);
  b.activation_backward(Activation::relu, plan_[hidden_], plan_[dhidden_], plan_[dhidden_]);
  b.matmul(plan_[dhidden_], x, set_.gradient(ids_.fc1), {.transpose_a = true});
}

ToyTrainer::ToyTrainer(const assay::Host& host, const assay::train::TrainerConfig& config)
    : Trainer(host, config), seed_(config.seed), ids_(add_parameters(parameters())), model_(parameters(), ids_) {
  use(model_);
}

void ToyTrainer::setup(const assay::Launch& launch, const std::function<void()>& enqueue) {
  open(launch);
  take_parameter_memory();
  take_state_memory();
  take_step_memory();
  constexpr std::size_t room = 4096;  // for each of: fp32 inputs, inputs, labels
  static_assert(toy_rows * toy_inputs * 4 <= room && toy_rows * 8 <= room);
  data_memory_ = assay::DeviceMemory(host(), ASSAY_MEMORY_DATA, 3 * room, "inputs and labels");
  x_ = Tensor(data_memory_.data<char>() + room, parameters().policy().activation, {toy_rows, toy_inputs});
  labels_ = Tensor(data_memory_.data<char>() + 2 * room, DType::i64, {toy_rows});
  prepare([&] {
    make_inputs(seed_);
    enqueue();
  });
  make_inputs(seed_);
  initialize();
  start();
}

void ToyTrainer::make_inputs(std::uint64_t seed) {
  const Tensor normal(data_memory_.data(), DType::f32, {toy_rows, toy_inputs});
  backend().random_normal(normal, seed, input_stream, 0.0F, 1.0F);
  backend().copy(x_, normal);
  backend().random_integers(labels_, seed, label_stream, 0, toy_classes);
}

}  // namespace mixed_precision
