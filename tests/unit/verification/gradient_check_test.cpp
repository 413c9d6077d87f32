// The checks that authors call for their own models, with the perceptron of the SDK.
#include <assay/models/mlp.hpp>
#include <assay/verification/gradient_check.hpp>
#include <assay/workload/host_copies.hpp>

#include <cmath>
#include <vector>

#include "trainer_host.hpp"

namespace assay::verification {
namespace {

namespace op = compute::op;

using compute::DType;
using compute::Tensor;

const models::MlpConfig three_layers{.batch = 12, .widths = {10, 14, 9, 5}};

class MlpTrainer : public train::Trainer {
 public:
  MlpTrainer(const Host& host, const workload::PrecisionPolicy& precision)
      : Trainer(host, {.precision = precision}), model_(three_layers, parameters()) {
    use(model_);
  }
  void forward() const override { model_.forward(backend(), x_, labels_); }
  void backward(train::GradientListener* listener) const override { model_.backward(backend(), x_, listener); }

  std::vector<float> x() const { return workload::download_f32(backend(), x_); }
  std::vector<std::int64_t> labels() const {
    std::vector<std::int64_t> found(static_cast<std::size_t>(three_layers.batch));
    backend().download(found.data(), labels_);
    return found;
  }

 private:
  void take_input_memory() override {
    const std::int64_t batch = three_layers.batch, inputs = three_layers.widths.front();
    memory_ = DeviceMemory(host(), ASSAY_MEMORY_DATA, 4096, "inputs");
    x_ = Tensor(memory_.data(), parameters().policy().activation, {batch, inputs});
    labels_ = Tensor(memory_.data<char>() + 2048, DType::i64, {batch});
  }
  void load_inputs() override {
    backend().run(op::RandomNormal{.x = x_, .seed = 1, .stream = 1000, .mean = 0.0F, .std = 1.0F});
    backend().run(
        op::RandomIntegers{.x = labels_, .seed = 1, .stream = 1001, .low = 0, .high = three_layers.widths.back()});
  }

  models::Mlp model_;
  DeviceMemory memory_;
  Tensor x_, labels_;
};

// The loss in float64, of parameters in the order in which the model adds them: the last layer first.
double loss_of(const std::vector<std::vector<double>>& parameters, const std::vector<float>& x,
               const std::vector<std::int64_t>& labels) {
  const std::vector<std::int64_t>& widths = three_layers.widths;
  const std::size_t layers = widths.size() - 1;
  double total = 0;
  for (std::size_t sample = 0; sample < labels.size(); ++sample) {
    const auto inputs = static_cast<std::size_t>(widths[0]);
    std::vector<double> state(x.begin() + static_cast<std::ptrdiff_t>(sample * inputs),
                              x.begin() + static_cast<std::ptrdiff_t>((sample + 1) * inputs));
    for (std::size_t layer = 0; layer < layers; ++layer) {
      const std::vector<double>&weight = parameters[2 * (layers - 1 - layer)],
            &bias = parameters[2 * (layers - 1 - layer) + 1];
      std::vector<double> next = bias;
      for (std::size_t o = 0; o < next.size(); ++o) {
        for (std::size_t i = 0; i < state.size(); ++i) next[o] += weight[o * state.size() + i] * state[i];
        if (layer + 1 < layers)
          next[o] =
              0.5 * next[o] * (1 + std::tanh(std::sqrt(2 / M_PI) * (next[o] + 0.044715 * next[o] * next[o] * next[o])));
      }
      state = next;
    }
    double powers = 0;
    for (const double logit : state) powers += std::exp(logit);
    total += std::log(powers) - state[static_cast<std::size_t>(labels[sample])];
  }
  return total / static_cast<double>(labels.size());
}

std::string against_float64(MlpTrainer& trainer) {
  const std::vector<float> x = trainer.x();
  const std::vector<std::int64_t> labels = trainer.labels();
  return check_gradients_against_float64(trainer, [&](const auto& p) { return loss_of(p, x, labels); });
}

TEST(GradientCheck, TakesARightModel) {
  const test::TrainerHost host;
  MlpTrainer trainer(host.host(), {});
  trainer.setup(host.launch());
  EXPECT_NE(check_gradients_by_differences(trainer).find("within 1%"), std::string::npos);
  EXPECT_NE(against_float64(trainer).find("all 6 parameters within 0.0001 of float64"), std::string::npos);
}

TEST(GradientCheck, TakesARightModelInBf16AgainstFloat64Alone) {
  const test::TrainerHost host;
  MlpTrainer trainer(host.host(), workload::precision_policy("bf16", "cpu"));
  trainer.setup(host.launch());
  EXPECT_NE(against_float64(trainer).find("within 0.05 of float64"), std::string::npos);
  EXPECT_THROW(check_gradients_by_differences(trainer), Error);
}

// A bias whose gradient is left as it was, and one element of a weight's gradient that is too large.
class ForgetsBiases final : public test::BrokenBackend {
 public:
  using BrokenBackend::BrokenBackend;
  void run_any(const compute::AnyOperation& operation) override {
    const auto* backward = compute::operation_cast<op::BiasBackward>(operation);
    if (!backward) return real().run_any(operation);
    if (executes()) real().run(op::Fill{.x = backward->dbias, .value = 0.0});
  }
};
class SpoilsAWeight final : public test::BrokenBackend {
 public:
  using BrokenBackend::BrokenBackend;
  void run_any(const compute::AnyOperation& operation) override {
    real().run_any(operation);
    const auto* product = compute::operation_cast<op::Matmul>(operation);
    if (product && executes() && product->transpose_a)
      real().run(op::Fill{.x = product->c.view({product->c.elements()}).slice(0, 3, 1), .value = 1.0});
  }
};

TEST(GradientCheck, FindsABiasThatIsForgotten) {
  const test::TrainerHost host(test::broken<ForgetsBiases>());
  MlpTrainer trainer(host.host(), {});
  trainer.setup(host.launch());
  EXPECT_NE(test::wrong_result_of([&] { check_gradients_by_differences(trainer); }).find("layer2.bias is 0 in every"),
            std::string::npos);
  EXPECT_NE(test::wrong_result_of([&] { against_float64(trainer); }).find("the gradient by layer2.bias is off"),
            std::string::npos);
}

// Most of a weight's gradient is 0: what is left of it is right, and the loss changes along it by its length.
class LeavesMostOut final : public test::BrokenBackend {
 public:
  using BrokenBackend::BrokenBackend;
  void run_any(const compute::AnyOperation& operation) override {
    real().run_any(operation);
    const auto* product = compute::operation_cast<op::Matmul>(operation);
    if (!product || !executes() || !product->transpose_a) return;
    const Tensor flat = product->c.view({product->c.elements()});
    real().run(op::Fill{.x = flat.slice(0, 0, flat.elements() * 9 / 10), .value = 0.0});
  }
};

TEST(GradientCheck, FindsAGradientOfWhichMostIsMissing) {
  const test::TrainerHost host(test::broken<LeavesMostOut>());
  MlpTrainer trainer(host.host(), {});
  trainer.setup(host.launch());
  EXPECT_NE(test::wrong_result_of([&] { check_gradients_by_differences(trainer); }).find("with the elements of layer"),
            std::string::npos);
}

TEST(GradientCheck, FindsAnElementThatIsWrong) {
  const test::TrainerHost host(test::broken<SpoilsAWeight>());
  MlpTrainer trainer(host.host(), {});
  trainer.setup(host.launch());
  EXPECT_NE(test::wrong_result_of([&] { check_gradients_by_differences(trainer); }).find("layer2.weight is off"),
            std::string::npos);
  EXPECT_NE(test::wrong_result_of([&] { against_float64(trainer); }).find("the gradient by layer2.weight is off"),
            std::string::npos);
}

TEST(Mlp, RefusesWhatIsNoPerceptron) {
  train::ParameterSet set{workload::PrecisionPolicy{}};
  EXPECT_THROW(models::Mlp({.batch = 4, .widths = {8}}, set), Error);
  EXPECT_THROW(models::Mlp({.batch = 4, .widths = {8, 0, 2}}, set), Error);
  EXPECT_EQ(models::mlp_step_flops({.batch = 2, .widths = {3, 5, 7}}), 2u * 2 * (2 * 15 + 3 * 35));
}

}  // namespace
}  // namespace assay::verification
