// my_plugin: trains a perceptron of two layers on a batch of random numbers: forward, backward, optimizer.
#include <assay/plugin.hpp>

#include <assay/train/trainer.hpp>
#include <assay/train/training_step.hpp>
#include <assay/verification/gradient_check.hpp>
#include <assay/verification/optimizer_check.hpp>
#include <assay/workload/host_copies.hpp>
#include <cmath>
#include <vector>

#include "model.hpp"

namespace mlp {

// A model with all that trains it, and its batch.
class MlpTrainer : public assay::train::Trainer {
 public:
  MlpTrainer(const assay::Host& host, const assay::train::TrainerConfig& config, const Sizes& sizes)
      : Trainer(host, config), sizes_(sizes), seed_(config.seed), model_(sizes, parameters()) {
    use(model_);
  }

  void forward() const override { model_.forward(backend(), x_, labels_); }
  void backward(assay::train::GradientListener* = nullptr) const override { model_.backward(backend(), x_); }

  const Tensor& x() const { return x_; }
  const Tensor& labels() const { return labels_; }

 private:
  void take_input_memory() override {
    const DType type = parameters().policy().activation;
    x_memory_ = assay::DeviceMemory(host(), ASSAY_MEMORY_DATA,
                                    static_cast<std::size_t>(sizes_.batch * sizes_.inputs) * size_of(type), "inputs");
    labels_memory_ =
        assay::DeviceMemory(host(), ASSAY_MEMORY_DATA, static_cast<std::size_t>(sizes_.batch) * 8, "labels");
    x_ = Tensor(x_memory_.data(), type, {sizes_.batch, sizes_.inputs});
    labels_ = Tensor(labels_memory_.data(), DType::i64, {sizes_.batch});
  }
  // Streams of random numbers beyond those of the parameters, which have their own ids.
  void load_inputs() override {
    backend().run(op::RandomNormal{.x = x_, .seed = seed_, .stream = 1000, .mean = 0.0F, .std = 1.0F});
    backend().run(op::RandomIntegers{.x = labels_, .seed = seed_, .stream = 1001, .low = 0, .high = sizes_.classes});
  }

  Sizes sizes_;
  std::uint64_t seed_;
  Mlp model_;
  assay::DeviceMemory x_memory_, labels_memory_;
  Tensor x_, labels_;
};

class MyPlugin {
 public:
  static constexpr auto id = "my_plugin", summary = "training of a perceptron of two layers", item_unit = "samples";
  static constexpr auto precisions = assay::names("fp32", "bf16");
  static constexpr auto params =
      assay::table(assay::Param::integer("batch", 256).at_least(1).unit("samples").help("samples of a step"),
                   assay::Param::integer("inputs", 256).at_least(1).help("numbers of a sample"),
                   assay::Param::integer("hidden", 512).at_least(1).help("width of the hidden layer"),
                   assay::Param::integer("classes", 16).at_least(2).help("what a sample may be"),
                   assay::Param::choice("precision", "fp32", precisions).help("bf16: with weights of fp32 beside"),
                   assay::Param::real("lr", 1e-3).at_least(0).help("learning rate of AdamW"));
  static constexpr auto phases = assay::train::training_phases;  // forward, backward, optimizer
  static constexpr auto loss = assay::Metric::per_case("loss").help("cross-entropy of the last step, nats");
  static constexpr auto metrics = assay::table(loss);
  using Launch = assay::LaunchOf<MyPlugin>;

  explicit MyPlugin(const assay::Case& c)
      : sizes_{c.get<std::int64_t>("batch"), c.get<std::int64_t>("inputs"), c.get<std::int64_t>("hidden"),
               c.get<std::int64_t>("classes")},
        policy_(assay::workload::precision_policy(c.get<std::string_view>("precision"), c.device_kind())),
        trainer_(c.host(), {.precision = policy_, .optimizer = {.lr = c.get<double>("lr")}, .seed = c.seed()}, sizes_) {
  }

  void setup(const Launch& launch) { trainer_.setup(launch); }

  void run(const Launch& launch) { training_step(trainer_, launch); }

  // The trainer's steps count and mark themselves on the device; the host compares both, and restarts to see them
  // again.
  assay::Account account(const Launch&) { return trainer_.account(); }
  void restart(const Launch&) { trainer_.start(); }

  void finish(const Launch& launch) { launch.report(loss, trainer_.last_loss()); }

  // The optimizer against float64, and the gradients against differences of a loss in float64.
  std::string verify(const Launch& launch) {
    std::string text = assay::verification::check_updates(trainer_, [&] { run(launch); });
    const std::vector<float> x = assay::workload::download_f32(trainer_.backend(), trainer_.x());
    std::vector<std::int64_t> labels(static_cast<std::size_t>(sizes_.batch));
    trainer_.backend().download(labels.data(), trainer_.labels());
    return text + assay::verification::check_gradients_against_float64(
                      trainer_, [&](const Values& parameters) { return loss_of(parameters, x, labels); });
  }

  // A product of [m, k] and [k, n] is 2 m n k operations. Three of the first layer's size but for the gradient of x,
  // which nobody needs, and three of the second's.
  assay::Work work() const {
    const auto [batch, inputs, hidden, classes] = sizes_;
    return {.flops = static_cast<std::uint64_t>(2 * batch * hidden * (2 * inputs + 3 * classes)),
            .items = static_cast<std::uint64_t>(batch),
            .arithmetic = assay::workload::arithmetic_of(policy_)};
  }

 private:
  using Values = std::vector<std::vector<double>>;  // by parameter, as the model adds them

  // The loss in float64 on the host, written down apart from what the device does.
  double loss_of(const Values& p, const std::vector<float>& x, const std::vector<std::int64_t>& labels) const {
    const std::vector<double>&w2 = p[0], &b2 = p[1], &w1 = p[2], &b1 = p[3];
    const auto inputs = static_cast<std::size_t>(sizes_.inputs), hidden = static_cast<std::size_t>(sizes_.hidden),
               classes = static_cast<std::size_t>(sizes_.classes);
    double total = 0;
    for (std::size_t sample = 0; sample < labels.size(); ++sample) {
      std::vector<double> logits = b2;
      for (std::size_t h = 0; h < hidden; ++h) {
        double sum = b1[h];
        for (std::size_t i = 0; i < inputs; ++i) sum += w1[h * inputs + i] * double{x[sample * inputs + i]};
        const double gelu = 0.5 * sum * (1 + std::tanh(std::sqrt(2 / M_PI) * (sum + 0.044715 * sum * sum * sum)));
        for (std::size_t c = 0; c < classes; ++c) logits[c] += w2[c * hidden + h] * gelu;
      }
      double sum_of_powers = 0;
      for (const double logit : logits) sum_of_powers += std::exp(logit);
      total += std::log(sum_of_powers) - logits[static_cast<std::size_t>(labels[sample])];
    }
    return total / static_cast<double>(labels.size());
  }

  Sizes sizes_;
  assay::workload::PrecisionPolicy policy_;
  MlpTrainer trainer_;
};

}  // namespace mlp

ASSAY_PLUGIN("org.example.my_plugin", "0.1.0", mlp::MyPlugin)
