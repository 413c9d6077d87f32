// The decoder as a whole, on the backend under test, against PyTorch's numbers (tests/data/decoder, made in float64 by
// scripts/make_decoder_reference.py): logits, loss, every gradient, and the weights after three AdamW steps.
#include <assay/train/checkpoint.hpp>
#include <assay/train/decoder.hpp>
#include <assay/train/optimizer.hpp>
#include <cmath>
#include <cstring>
#include <map>

#include "harness.hpp"
#include "support/decoder_reference.hpp"

namespace assay::conformance {
namespace {

using train::DecoderConfig;
using train::PrecisionPolicy;
using train::SafetensorsReader;

struct Variant {
  const char* name;
  bool fused, flash, checkpointing;
};
constexpr Variant variants[] = {{"fused_flash", true, true, false},     {"fused_naive", true, false, false},
                                {"unfused_flash", false, true, false},  {"unfused_naive", false, false, false},
                                {"fused_recomputed", true, true, true}, {"unfused_recomputed", false, false, true}};

PrecisionPolicy bf16_policy() { return {.activation = DType::bf16}; }

DecoderConfig config_of(const Variant& v, const PrecisionPolicy& precision) {
  DecoderConfig c;
  c.vocab_size = 97, c.batch_size = 2, c.context_length = 21;
  c.d_model = 48, c.d_ff = 112, c.layers = 2, c.heads = 3;
  c.precision = precision;
  c.fused = v.fused, c.flash = v.flash, c.checkpointing = v.checkpointing;
  c.keep_logits = true;
  return c;
}

// A model with all its memory, at the reference's weights.
class Trainer {
 public:
  explicit Trainer(const DecoderConfig& config)
      : set_(config.precision),
        ids_(train::add_decoder_parameters(set_, config)),
        model_(config, set_, ids_),
        optimizer_({.lr = 1e-2}, set_),
        values_(set_.value_bytes()),
        copy_(set_.copy_bytes() + 256),
        gradients_(set_.gradient_bytes()),
        state_(optimizer_.state_bytes()),
        activations_(model_.plan().total_bytes()),
        inputs_(DType::i64, {config.rows()}),
        labels_(DType::i64, {config.rows()}) {
    set_.bind(values_.data(), copy_.data(), gradients_.data());
    optimizer_.bind(state_.data());
    model_.bind(activations_.data());
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
    set_.initialize(backend(), 1);  // the padding, too
    train::load_parameters(backend(), set_, SafetensorsReader(test::decoder_data + "weights.safetensors"));
  }

  void forward_backward() {
    const Tensor labels = labels_;
    model_.forward(backend(), inputs_, &labels, valid_rows_);
    model_.backward(backend(), inputs_, labels, valid_rows_);
  }
  void step() {
    forward_backward();
    optimizer_.step(backend());
  }
  std::map<std::string, Values> results() const {
    std::map<std::string, Values> out;
    const auto put = [&](const std::string& name, const Tensor& t) {
      const std::vector<float> v = train::download_f32(backend(), t);
      out[name] = Values(v.begin(), v.end());
    };
    put("logits", model_.kept_logits());
    put("loss", model_.loss());
    for (std::size_t i = 0; i < set_.all().size(); ++i) {
      put("grad." + set_.all()[i].name, set_.gradient(i));
      put("weight." + set_.all()[i].name, set_.value(i));
    }
    return out;
  }
  const train::DecoderModel& model() const { return model_; }

 private:
  train::ParameterSet set_;
  train::DecoderParameters ids_;
  train::DecoderModel model_;
  train::Optimizer optimizer_;
  Buffer values_, copy_, gradients_, state_, activations_;
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

// bf16 keeps 8 bits: products and activations round at 2^-9, and errors add over the layers.
TEST_P(DecoderParity, Bf16StaysNear) {
  Trainer trainer(config_of(GetParam(), bf16_policy()));
  run([&] { trainer.forward_backward(); });
  const auto got = trainer.results();
  EXPECT_LE(worst_error(got, "logits"), 0.03);
  EXPECT_LE(worst_error(got, "loss"), 0.01);
  const double error = worst_error(got, "grad.");
  std::printf("  %-20s bf16 gradients worst relative error %.2e\n", GetParam().name, error);
  EXPECT_LE(error, 0.08);
}

// No operation of ours allocates in a step. oneDNN's executions do, a few small blocks each (22 at most were seen), so
// the bound is by their number: a projection's forward and its two gradients, at most 7 per layer, the head, and
// attention's.
TEST_P(DecoderParity, AStepAllocatesNothingOfItsOwn) {
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
  for (const PrecisionPolicy& policy :
       {PrecisionPolicy{}, bf16_policy(), PrecisionPolicy{DType::bf16, DType::bf16, DType::bf16, DType::bf16}}) {
    Trainer trainer(config_of(GetParam(), policy));
    run([&] { trainer.step(); });
    const double first = trainer.results()["loss"][0];
    for (int i = 0; i < 20; ++i) run([&] { trainer.step(); });
    const double last = trainer.results()["loss"][0];
    EXPECT_LT(last, 0.7 * first) << compute::name_of(policy.parameter) << "/" << compute::name_of(policy.activation);
  }
}

INSTANTIATE_TEST_SUITE_P(All, DecoderParity, testing::ValuesIn(variants),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace assay::conformance
