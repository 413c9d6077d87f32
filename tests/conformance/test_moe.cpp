// Decoders with experts as a whole, on the backend under test, against PyTorch's numbers (tests/data/moe_*, made in
// float64 by scripts/make_moe_reference.py) at odd shapes: experts without tokens, one token, tokens that go to all
// experts. Logits, loss, every gradient, and the weights after three AdamW steps.
#include <assay/models/decoder.hpp>
#include <assay/train/checkpoint.hpp>
#include <assay/train/optimizer.hpp>
#include <assay/workload/host_copies.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "harness.hpp"
#include "support/reference.hpp"

namespace assay::conformance {
namespace {

using models::DecoderConfig;
using train::SafetensorsReader;

enum class Reference { few_tokens, one_token, sigmoid };
struct Form {
  const char* name;
  bool fused, flash, checkpointing = false, keep_outputs = false;
};
struct MoeVariant {
  const char* name;
  Reference reference;
  Form form;
};
constexpr Form forms[] = {{"fused", true, true},
                          {"fused_recomputed", true, true, true},
                          {"fused_outputs_kept", true, true, false, true},
                          {"unfused", false, false},
                          {"unfused_recomputed", false, true, true}};

const char* folder_of(Reference r) {
  return r == Reference::few_tokens ? "moe_few_tokens" : r == Reference::one_token ? "moe_one_token" : "moe_sigmoid";
}

// As scripts/make_moe_reference.py has them.
DecoderConfig config_of(const MoeVariant& v) {
  DecoderConfig c;
  c.vocab_size = 41, c.d_model = 24, c.heads = 3, c.kv_heads = 1, c.d_ff = 40, c.layers = 2;
  c.fused = v.form.fused, c.flash = v.form.flash, c.checkpointing = v.form.checkpointing;
  c.keep_outputs = v.form.keep_outputs;
  c.keep_logits = true;
  models::ExpertsConfig& e = c.experts;
  switch (v.reference) {
    case Reference::few_tokens:
      c.batch_size = 1, c.context_length = 6;
      e.count = 12, e.per_token = 2, e.d_ff = 12;
      e.balance_coefficient = 0.05, e.z_coefficient = 0.01;
      break;
    case Reference::one_token:
      c.batch_size = 1, c.context_length = 1;
      c.qkv_bias = e.biases = true;
      e.count = 4, e.per_token = 4, e.d_ff = 12;
      e.rule.normalized = false;
      e.unit = {.alpha = 1.702F, .limit = 0.8F, .offset = 1.0F};
      break;
    case Reference::sigmoid:
      c.batch_size = 2, c.context_length = 9, c.layers = 3;
      e.count = 5, e.per_token = 3, e.d_ff = 20, e.shared_d_ff = 16, e.first_dense_layers = 1;
      e.rule = {.score = compute::ExpertScore::sigmoid, .normalized = true, .factor = 2.5F};
      e.balance_coefficient = 0.05;
      break;
  }
  return c;
}

// Of one token the softmax of attention is 1 whatever queries and keys are: their gradients are rounding alone, and so
// is the sign by which AdamW changes their weights.
bool is_rounding(Reference r, const std::string& name) {
  return r == Reference::one_token &&
         (name.find("q_proj") != std::string::npos || name.find("k_proj") != std::string::npos);
}

// A model with all its memory, at the reference's weights.
class MoeTrainer {
 public:
  explicit MoeTrainer(const MoeVariant& v)
      : variant_(v),
        config_(config_of(v)),
        set_(config_.precision),
        ids_(models::add_decoder_parameters(set_, config_)),
        model_(config_, set_, ids_),
        optimizer_({.lr = 1e-3}, set_),
        values_(set_.value_bytes()),
        state_(optimizer_.state_bytes()),
        scaler_(config_.precision),
        scaler_state_(scaler_.state_bytes() + 256),
        gradients_(set_.gradient_bytes()),
        activations_(model_.activation_bytes()),
        inputs_(DType::i64, {config_.rows()}),
        labels_(DType::i64, {config_.rows()}) {
    set_.bind(values_.data(), nullptr, gradients_.data());
    optimizer_.bind(state_.data());
    scaler_.bind(scaler_state_.data());
    model_.bind(gradients_.data(), activations_.data());
    model_.set_loss_scale(scaler_.tensors().scale);
    const std::string folder = test::reference_folder(folder_of(v.reference));
    const SafetensorsReader inputs(folder + "inputs.safetensors");
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
    train::load_parameters(backend(), set_, SafetensorsReader(folder + "weights.safetensors"));
  }

  const models::DecoderModel& model() const { return model_; }
  void forward_backward() { model_.whole_step(backend(), inputs_, labels_, valid_rows_); }
  void step() {
    forward_backward();
    optimizer_.step(backend(), scaler_);
  }
  // The worst error of the tensors of the reference whose names begin so.
  double error(const std::string& prefix) const {
    std::map<std::string, Tensor> tensors{{"logits", model_.kept_logits()}, {"loss", model_.loss()}};
    for (std::size_t i = 0; i < set_.all().size(); ++i) {
      tensors["grad." + set_.all()[i].name] = set_.gradient(i);
      tensors["weight." + set_.all()[i].name] = set_.value(i);
    }
    const SafetensorsReader expected(test::reference_folder(folder_of(variant_.reference)) + "expected.safetensors");
    return test::worst_reference_error(
        folder_of(variant_.reference), prefix, [&](const std::string& name, const auto&) {
          const std::vector<float> got = workload::download_f32(backend(), tensors.at(name));
          if (!is_rounding(variant_.reference, name)) return got;
          if (prefix == "grad.") {
            for (const float x : got) EXPECT_LE(std::fabs(x), 1e-6F) << name;
          }
          return test::floats_of(expected, name);
        });
  }

 private:
  MoeVariant variant_;
  DecoderConfig config_;
  train::ParameterSet set_;
  models::DecoderParameters ids_;
  models::DecoderModel model_;
  train::Optimizer optimizer_;
  Buffer values_, state_;
  train::LossScaler scaler_;
  Buffer scaler_state_, gradients_, activations_;
  DeviceTensor inputs_, labels_;
  std::int64_t valid_rows_ = 0;
};

class MoeParity : public testing::TestWithParam<MoeVariant> {};

TEST_P(MoeParity, LogitsLossAndEveryGradientInFp32) {
  MoeTrainer trainer(GetParam());
  run([&] { trainer.forward_backward(); });
  for (const char* what : {"logits", "loss", "grad."}) {
    const double error = trainer.error(what);
    std::printf("  %-30s %-8s worst relative error %.2e\n", GetParam().name, what, error);
    EXPECT_LE(error, 1e-5) << what;
  }
}

TEST_P(MoeParity, WeightsAfterThreeAdamWStepsInFp32) {
  MoeTrainer trainer(GetParam());
  for (int i = 0; i < 3; ++i) run([&] { trainer.step(); });
  const double error = trainer.error("weight.");
  std::printf("  %-30s %-8s worst relative error %.2e\n", GetParam().name, "weights", error);
  EXPECT_LE(error, 1e-5);
}

// The shapes are as odd as they are said to be.
TEST(MoeReference, SomeExpertsHaveNoTokens) {
  MoeTrainer trainer({"fused", Reference::few_tokens, forms[0]});
  run([&] { trainer.forward_backward(); });
  std::vector<std::int32_t> counts(12);
  backend().download(counts.data(), trainer.model().expert_counts(0));
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), 12);
  EXPECT_EQ(counts, (std::vector<std::int32_t>{4, 1, 1, 0, 1, 0, 1, 1, 1, 0, 1, 1}));
}

std::vector<MoeVariant> variants_of(Reference r) {
  std::vector<MoeVariant> all;
  for (const Form& form : forms) all.push_back({form.name, r, form});
  return all;
}
const auto name_of_variant = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(FewTokens, MoeParity, testing::ValuesIn(variants_of(Reference::few_tokens)), name_of_variant);
INSTANTIATE_TEST_SUITE_P(OneToken, MoeParity, testing::ValuesIn(variants_of(Reference::one_token)), name_of_variant);
INSTANTIATE_TEST_SUITE_P(Sigmoid, MoeParity, testing::ValuesIn(variants_of(Reference::sigmoid)), name_of_variant);

}  // namespace
}  // namespace assay::conformance
