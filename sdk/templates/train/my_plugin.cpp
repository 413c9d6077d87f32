// my_plugin: trains a perceptron of two layers on a batch of random numbers: forward, backward, optimizer.
#include <assay/plugin.hpp>

#include <assay/train/checkpoint.hpp>
#include <assay/train/optimizer_check.hpp>
#include <assay/train/sampling.hpp>
#include <assay/train/trainer.hpp>
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

  void setup(const assay::Launch& launch) {
    open(launch);
    take_parameter_memory();
    take_state_memory();
    take_step_memory();
    take_batch_memory();
    prepare([this] { make_batch(), step(); });  // finds kernels; touches no tensor
    make_batch();
    initialize();
    start();  // parameters, optimizer state and step number as they are before the first step
  }

  void forward() const { model_.forward(backend(), x_, labels_); }
  void backward() const { model_.backward(backend(), x_); }
  void step() const { forward(), backward(), update(); }

  const Mlp& model() const { return model_; }
  const Tensor& x() const { return x_; }
  const Tensor& labels() const { return labels_; }

 private:
  void take_batch_memory() {
    const DType type = parameters().policy().activation;
    x_memory_ = assay::DeviceMemory(host(), ASSAY_MEMORY_DATA,
                                    static_cast<std::size_t>(sizes_.batch * sizes_.inputs) * size_of(type), "inputs");
    labels_memory_ =
        assay::DeviceMemory(host(), ASSAY_MEMORY_DATA, static_cast<std::size_t>(sizes_.batch) * 8, "labels");
    x_ = Tensor(x_memory_.data(), type, {sizes_.batch, sizes_.inputs});
    labels_ = Tensor(labels_memory_.data(), DType::i64, {sizes_.batch});
  }
  // Streams of random numbers beyond those of the parameters, which have their own ids.
  void make_batch() const {
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
  static constexpr auto forward = assay::phase("forward"), backward = assay::phase("backward"),
                        optimizer = assay::phase("optimizer");
  static constexpr auto phases = assay::table(forward, backward, optimizer);
  static constexpr auto loss = assay::Metric::per_case("loss").help("cross-entropy of the last step, nats");
  static constexpr auto metrics = assay::table(loss);
  using Launch = assay::LaunchOf<MyPlugin>;

  explicit MyPlugin(const assay::Case& c)
      : sizes_{c.get<std::int64_t>("batch"), c.get<std::int64_t>("inputs"), c.get<std::int64_t>("hidden"),
               c.get<std::int64_t>("classes")},
        policy_(assay::train::precision_policy(c.get<std::string_view>("precision"), c.device_kind())),
        trainer_(c.host(), {.precision = policy_, .optimizer = {.lr = c.get<double>("lr")}, .seed = c.seed()}, sizes_) {
  }

  void setup(const Launch& launch) { trainer_.setup(launch); }

  void run(const Launch& launch) {
    {
      const auto phase = launch.phase(forward);
      trainer_.forward();
    }
    {
      const auto phase = launch.phase(backward);
      trainer_.backward();
    }
    const auto phase = launch.phase(optimizer);
    trainer_.update();
  }

  void finish(const Launch& launch) { launch.report(loss, trainer_.last_loss()); }

  // The optimizer against float64, and the gradients against differences of a float64 loss.
  std::string verify(const Launch& launch) {
    std::string text = assay::train::check_updates(trainer_, [&] { run(launch); });
    trainer_.start();
    trainer_.forward();
    trainer_.backward();
    trainer_.backend().synchronize();
    return text + check_loss_and_gradients();
  }

  // A product of [m, k] and [k, n] is 2 m n k operations. Three of the first layer's size but for the gradient of x,
  // which nobody needs, and three of the second's.
  assay::Work work() const {
    const auto [batch, inputs, hidden, classes] = sizes_;
    return {.flops = static_cast<std::uint64_t>(2 * batch * hidden * (2 * inputs + 3 * classes)),
            .items = static_cast<std::uint64_t>(batch),
            .arithmetic = assay::train::arithmetic_of(policy_)};
  }

 private:
  using Values = std::vector<std::vector<double>>;  // by parameter

  // The loss in float64 on the host, written down apart from what the device does.
  double loss_of(const Values& p, const std::vector<float>& x, const std::vector<std::int64_t>& labels) const {
    const Mlp& m = trainer_.model();
    const auto inputs = static_cast<std::size_t>(sizes_.inputs), hidden = static_cast<std::size_t>(sizes_.hidden),
               classes = static_cast<std::size_t>(sizes_.classes);
    double total = 0;
    for (std::size_t sample = 0; sample < labels.size(); ++sample) {
      std::vector<double> logits = p[m.b2];
      for (std::size_t h = 0; h < hidden; ++h) {
        double sum = p[m.b1][h];
        for (std::size_t i = 0; i < inputs; ++i) sum += p[m.w1][h * inputs + i] * double{x[sample * inputs + i]};
        const double gelu = 0.5 * sum * (1 + std::tanh(std::sqrt(2 / M_PI) * (sum + 0.044715 * sum * sum * sum)));
        for (std::size_t c = 0; c < classes; ++c) logits[c] += p[m.w2][c * hidden + h] * gelu;
      }
      double sum_of_powers = 0;
      for (const double logit : logits) sum_of_powers += std::exp(logit);
      total += std::log(sum_of_powers) - logits[static_cast<std::size_t>(labels[sample])];
    }
    return total / static_cast<double>(labels.size());
  }

  // Every element of a parameter is moved by plus or minus a little, the signs drawn by lot. What the loss then changes
  // by is known from the gradient, whose elements all count: one that is wrong shows.
  std::string check_loss_and_gradients() const {
    constexpr double step = 1e-5;
    const double tolerance = policy_.activation == DType::f32 ? 1e-4 : 5e-2;
    const auto& set = trainer_.parameters();
    const std::vector<float> x = assay::train::download_f32(trainer_.backend(), trainer_.x());
    std::vector<std::int64_t> labels(static_cast<std::size_t>(sizes_.batch));
    trainer_.backend().download(labels.data(), trainer_.labels());
    Values values;
    for (ParameterSet::Id id = 0; id < set.all().size(); ++id) {
      const std::vector<float> downloaded = assay::train::download_f32(trainer_.backend(), set.compute(id));
      values.emplace_back(downloaded.begin(), downloaded.end());
    }
    const double found_loss = trainer_.last_loss(), expected_loss = loss_of(values, x, labels);
    judge("the loss", found_loss, expected_loss, expected_loss, tolerance);

    std::uint64_t lot = 1;
    for (ParameterSet::Id id = 0; id < set.all().size(); ++id) {
      const std::vector<float> gradient = assay::train::download_f32(trainer_.backend(), set.gradient(id));
      Values up = values, down = values;
      double change = 0, squares = 0;
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        lot = lot * 6364136223846793005U + 1442695040888963407U;
        const double sign = (lot >> 63) != 0 ? 1 : -1;
        up[id][i] += sign * step, down[id][i] -= sign * step;
        change += sign * double{gradient[i]}, squares += double{gradient[i]} * double{gradient[i]};
      }
      const double expected = (loss_of(up, x, labels) - loss_of(down, x, labels)) / (2 * step);
      judge("the gradient by " + set.all()[id].name, change, expected, std::sqrt(squares), tolerance);
    }
    return "loss and the gradients by all " + std::to_string(set.all().size()) + " parameters within " +
           assay::train::number(tolerance) + " of float64";
  }

  static void judge(const std::string& what, double found, double expected, double scale, double tolerance) {
    if (std::abs(found - expected) <= tolerance * scale && scale > 0) return;
    throw assay::Error(ASSAY_WRONG_RESULT, what + " is off: " + assay::train::number(found, "%.9g") + ", expected " +
                                               assay::train::number(expected, "%.9g") + " within " +
                                               assay::train::number(tolerance * scale));
  }

  Sizes sizes_;
  assay::train::PrecisionPolicy policy_;
  MlpTrainer trainer_;
};

}  // namespace mlp

ASSAY_PLUGIN("org.example.my_plugin", "0.1.0", mlp::MyPlugin)
