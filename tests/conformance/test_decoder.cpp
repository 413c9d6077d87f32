// The decoder as a whole, on the backend under test, against PyTorch's numbers (tests/data/decoder, made in float64 by
// scripts/make_decoder_reference.py): logits, loss, every gradient, and the weights after three AdamW steps.
#include <assay/models/decoder.hpp>
#include <assay/train/checkpoint.hpp>
#include <assay/train/optimizer.hpp>
#include <assay/workload/host_copies.hpp>
#include <assay/workload/precision.hpp>
#include <cmath>
#include <cstring>
#include <map>

#include "harness.hpp"
#include "support/decoder_reference.hpp"

namespace assay::conformance {
namespace {

using models::DecoderConfig;
using train::SafetensorsReader;
using workload::PrecisionPolicy;

struct Variant {
  const char* name;
  bool fused, flash, checkpointing, side_lane = false;
};
constexpr Variant variants[] = {
    {"fused_flash", true, true, false},           {"fused_naive", true, false, false},
    {"unfused_flash", false, true, false},        {"unfused_naive", false, false, false},
    {"fused_recomputed", true, true, true},       {"unfused_recomputed", false, false, true},
    {"fused_side_lane", true, true, false, true}, {"side_lane_recomputed", true, true, true, true}};

PrecisionPolicy policy(const char* name) { return workload::precision_policy(name, backend().kind()); }

DecoderConfig config_of(const Variant& v, const PrecisionPolicy& precision) {
  DecoderConfig c;
  c.vocab_size = 97, c.batch_size = 2, c.context_length = 21;
  c.d_model = 48, c.d_ff = 112, c.layers = 2, c.heads = 3;
  c.precision = precision;
  c.fused = v.fused, c.flash = v.flash, c.checkpointing = v.checkpointing;
  c.side_lane = v.side_lane;
  c.keep_logits = true;
  return c;
}

// A model with all its memory, at the reference's weights.
class Trainer {
 public:
  explicit Trainer(const DecoderConfig& config)
      : set_(config.precision),
        ids_(models::add_decoder_parameters(set_, config)),
        model_(config, set_, ids_),
        optimizer_({.lr = 1e-2}, set_),
        values_(set_.value_bytes()),
        copy_(set_.copy_bytes() + 256),
        state_(optimizer_.state_bytes()),
        scaler_(config.precision),
        scaler_state_(scaler_.state_bytes()),
        gradients_(set_.gradient_bytes()),
        activations_(model_.activation_bytes()),
        inputs_(DType::i64, {config.rows()}),
        labels_(DType::i64, {config.rows()}) {
    set_.bind(values_.data(), copy_.data(), gradients_.data());
    optimizer_.bind(state_.data());
    scaler_.bind(scaler_state_.data());
    model_.bind(gradients_.data(), activations_.data());
    model_.set_loss_scale(scaler_.tensors().scale);
    backend().set_product_math(config.precision.product_math);
    const SafetensorsReader inputs(test::decoder_data + "inputs.safetensors");
    backend().upload(inputs_, inputs.read("input_ids").data());
    const auto labels = inputs.read("labels");
    backend().upload(labels_, labels.data());
    for (std::size_t i = 0; i < labels.size(); i += 8) {
      std::int64_t label = 0;
      std::memcpy(&label, labels.data() + i, 8);
      valid_rows_ += label >= 0 ? 1 : 0;
    }
    model_.initialize(backend());
    optimizer_.reset(backend());
    scaler_.reset(backend(), 1024);
    set_.initialize(backend(), 1);  // the padding, too
    train::load_parameters(backend(), set_, SafetensorsReader(test::decoder_data + "weights.safetensors"));
  }

  ~Trainer() { backend().set_product_math(compute::ProductMath::exact); }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  void forward_backward() {
    const Tensor labels = labels_;
    model_.forward(backend(), inputs_, &labels, valid_rows_);
    model_.backward(backend(), inputs_, labels, valid_rows_);
  }
  void step() {
    forward_backward();
    optimizer_.step(backend(), scaler_);
  }
  std::map<std::string, Values> results() const {
    std::map<std::string, Values> out;
    const auto put = [&](const std::string& name, const Tensor& t, double scale = 1.0) {
      const std::vector<float> v = workload::download_f32(backend(), t);
      out[name] = Values(v.begin(), v.end());
      for (double& x : out[name]) x /= scale;
    };
    put("logits", model_.kept_logits());
    put("loss", model_.loss());
    for (std::size_t i = 0; i < set_.all().size(); ++i) {
      put("grad." + set_.all()[i].name, set_.gradient(i), scaler_.scale_of_gradients(backend()));
      put("weight." + set_.all()[i].name, set_.value(i));
    }
    return out;
  }
  const models::DecoderModel& model() const { return model_; }

 private:
  train::ParameterSet set_;
  models::DecoderParameters ids_;
  models::DecoderModel model_;
  train::Optimizer optimizer_;
  Buffer values_, copy_, state_;
  train::LossScaler scaler_;
  Buffer scaler_state_, gradients_, activations_;
  DeviceTensor inputs_, labels_;
  std::int64_t valid_rows_ = 0;
};

double worst_error(const std::map<std::string, Values>& got, const std::string& prefix) {
  return test::worst_decoder_error(prefix, [&](const std::string& name, const auto&) { return got.at(name); });
}

class DecoderParity : public testing::TestWithParam<Variant> {};

TEST_P(DecoderParity, LogitsLossAndEveryGradientInFp32) {
  Trainer trainer(config_of(GetParam(), {}));
  run([&] { trainer.forward_backward(); });
  const auto got = trainer.results();
  for (const char* what : {"logits", "loss", "grad."}) {
    const double error = worst_error(got, what);
    std::printf("  %-20s %-8s worst relative error %.2e\n", GetParam().name, what, error);
    EXPECT_LE(error, 1e-5) << what;
  }
}

TEST_P(DecoderParity, WeightsAfterThreeAdamWStepsInFp32) {
  Trainer trainer(config_of(GetParam(), {}));
  for (int i = 0; i < 3; ++i) run([&] { trainer.step(); });
  const double error = worst_error(trainer.results(), "weight.");
  std::printf("  %-20s %-8s worst relative error %.2e\n", GetParam().name, "weights", error);
  EXPECT_LE(error, 1e-5);
}

// Of the backend and the variant.
bool is_served(std::string_view precision, const Variant& v) {
  if (precision == "fp8") return v.fused;
  return is_cuda() || (precision != "tf32" && precision != "fp16");
}

// Why the GPU at hand has not what a step needs, as products of 8 bits; empty where it has.
std::string refusal(const std::function<void()>& step) {
  std::string text;
  return status_of([&] { run(step); }, &text) == ASSAY_UNSUPPORTED ? text : "";
}

// Errors add over the layers. tf32 and fp16 keep 10 bits of mantissa, bf16 keeps 7.
struct Coarse {
  const char* precision;
  double logits, loss, gradients;
};
constexpr Coarse coarse[] = {
    {"tf32", 5e-3, 2e-3, 2e-2}, {"bf16", 0.03, 0.01, 0.08}, {"fp16", 5e-3, 2e-3, 2e-2}, {"fp8", 0.25, 0.02, 0.4}};

TEST_P(DecoderParity, CoarserPrecisionsStayNear) {
  for (const Coarse& c : coarse) {
    if (!is_served(c.precision, GetParam())) continue;
    Trainer trainer(config_of(GetParam(), policy(c.precision)));
    if (const std::string why = refusal([&] { trainer.forward_backward(); }); !why.empty()) {
      EXPECT_TRUE(is_cuda() && std::string_view(c.precision) == "fp8") << why;
      continue;
    }
    const auto got = trainer.results();
    const double logits = worst_error(got, "logits"), gradients = worst_error(got, "grad.");
    std::printf("  %-20s %-5s worst relative error: logits %.2e, gradients %.2e\n", GetParam().name, c.precision,
                logits, gradients);
    EXPECT_LE(logits, c.logits) << c.precision;
    EXPECT_LE(worst_error(got, "loss"), c.loss) << c.precision;
    EXPECT_LE(gradients, c.gradients) << c.precision;
  }
}

// What is captured and replayed is what is enqueued.
TEST_P(DecoderParity, AGraphDoesAsItsOperations) {
  Trainer one(config_of(GetParam(), {})), other(config_of(GetParam(), {}));
  backend().set_mode(Mode::prepare);
  one.step();
  backend().set_mode(Mode::execute);
  const Buffer workspace(backend().workspace_bytes());
  backend().set_workspace(workspace.data(), backend().workspace_bytes());
  one.step();
  const std::unique_ptr<compute::Graph> graph = backend().capture([&] { one.step(); });
  if (!graph) GTEST_SKIP() << "no graphs on " << backend().kind();
  EXPECT_GT(graph->node_count(), 50u);
  for (int i = 0; i < 2; ++i) graph->launch();
  backend().synchronize();
  for (int i = 0; i < 3; ++i) run([&] { other.step(); });
  EXPECT_EQ(one.results(), other.results());
}

// No operation of ours allocates in a step. oneDNN's executions do, a few small blocks each (22 at most were seen), so
// the bound is by their number: a projection's forward and its two gradients, at most 7 per layer, the head, and
// attention's.
TEST_P(DecoderParity, AStepAllocatesNothingOfItsOwn) {
  if (is_cuda()) GTEST_SKIP() << "counted on the CPU, whose kernels run in this process";
  constexpr std::uint64_t most_products = 2 * (3 * 7 + 7 + 2 * 6) + 3;
  constexpr std::uint64_t most_in_a_product = 32;
  Trainer trainer(config_of(GetParam(), {}));
  EXPECT_LE(allocations_in_second([&] { trainer.step(); }), most_products * most_in_a_product);
  const std::size_t primitives = backend().primitives().size();
  const std::size_t workspace_bytes = backend().workspace_bytes();
  run([&] { trainer.step(); });
  EXPECT_EQ(backend().primitives().size(), primitives);
  EXPECT_EQ(backend().workspace_bytes(), workspace_bytes);
}

TEST_P(DecoderParity, TrainingOnOneBatchLowersTheLoss) {
  for (const char* name : workload::precision_names_with_fp8) {
    if (!is_served(name, GetParam())) continue;
    Trainer trainer(config_of(GetParam(), policy(name)));
    if (const std::string why = refusal([&] { trainer.step(); }); !why.empty()) {
      EXPECT_TRUE(is_cuda() && std::string_view(name) == "fp8") << why;
      continue;
    }
    const double first = trainer.results()["loss"][0];
    for (int i = 0; i < 20; ++i) run([&] { trainer.step(); });
    const double last = trainer.results()["loss"][0];
    EXPECT_LT(last, 0.7 * first) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, DecoderParity, testing::ValuesIn(variants),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace assay::conformance
