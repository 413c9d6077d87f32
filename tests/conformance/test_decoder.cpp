// The decoder as a whole, on the backend under test, against PyTorch's numbers (tests/data/decoder, decoder_grouped
// and decoder_qk_norm, made in float64 by scripts/make_decoder_reference.py): logits, loss, every gradient, and the
// weights after three AdamW steps.
#include <assay/models/decoder.hpp>
#include <assay/models/published_weights.hpp>
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
  // As people train models: grouped queries, biases, tied embeddings (tests/data/decoder_grouped).
  bool grouped = false;
  std::int64_t score_rows = 0, loss_chunks = 1, micro_batches = 1;
  bool keep_outputs = false;     // and the residual in the products that end a branch
  bool qk_norm = false;          // norms of queries and keys, and another head_dim (tests/data/decoder_qk_norm)
  const char* family = nullptr;  // of scripts/decoder_families.py

  bool windows = false;  // in some layers, with sinks, capped scores and biases (tests/data/decoder_windows)

  bool documents = false;  // with windows: packed in the sequences (tests/data/decoder_documents)

  const char* reference() const {
    return family      ? family
           : documents ? "decoder_documents"
           : windows   ? "decoder_windows"
           : qk_norm   ? "decoder_qk_norm"
           : grouped   ? "decoder_grouped"
                       : "decoder";
  }
  double lr() const {  // of the reference's three steps
    return family ? 1e-3 : windows || qk_norm || grouped ? 1e-4 : 1e-2;
  }
};
constexpr Variant variants[] = {{"fused_flash", true, true, false},
                                {"fused_naive", true, false, false},
                                {"unfused_flash", false, true, false},
                                {"unfused_naive", false, false, false},
                                {"fused_recomputed", true, true, true},
                                {"unfused_recomputed", false, false, true},
                                {"fused_side_lane", true, true, false, true},
                                {"side_lane_recomputed", true, true, true, true},
                                {"fused_outputs_kept", true, true, false, true, false, 0, 1, 1, true}};
constexpr Variant grouped_variants[] = {{"fused_flash", true, true, false, false, true},
                                        {"unfused_naive", false, false, false, false, true},
                                        {"fused_naive_in_parts", true, false, false, false, true, 8},
                                        {"unfused_flash", false, true, false, false, true},
                                        {"side_lane_recomputed", true, true, true, true, true},
                                        {"loss_in_chunks", true, true, false, false, true, 0, 4},
                                        {"unfused_loss_in_chunks", false, false, true, false, true, 0, 42},
                                        {"micro_batches", true, true, false, false, true, 0, 1, 2},
                                        {"unfused_micro_batches", false, true, false, false, true, 0, 1, 2},
                                        {"chunks_in_micro_batches", true, true, true, true, true, 0, 2, 2}};
constexpr Variant qk_norm_variants[] = {
    {.name = "fused_flash", .fused = true, .flash = true, .checkpointing = false, .qk_norm = true},
    {.name = "fused_naive", .fused = true, .flash = false, .checkpointing = false, .qk_norm = true},
    {.name = "unfused_naive_recomputed", .fused = false, .flash = false, .checkpointing = true, .qk_norm = true},
    {.name = "micro_batches_recomputed",
     .fused = true,
     .flash = true,
     .checkpointing = true,
     .side_lane = true,
     .micro_batches = 2,
     .qk_norm = true}};
constexpr Variant windows_variants[] = {
    {.name = "fused_flash", .fused = true, .flash = true, .checkpointing = false, .windows = true},
    {.name = "unfused_naive", .fused = false, .flash = false, .checkpointing = false, .windows = true},
    {.name = "naive_in_parts", .fused = true, .flash = false, .checkpointing = true, .score_rows = 8, .windows = true},
    {.name = "micro_batches",
     .fused = false,
     .flash = true,
     .checkpointing = true,
     .micro_batches = 2,
     .windows = true}};
constexpr Variant documents_variants[] = {
    {.name = "fused_flash", .fused = true, .flash = true, .checkpointing = false, .windows = true, .documents = true},
    {.name = "unfused_naive",
     .fused = false,
     .flash = false,
     .checkpointing = false,
     .windows = true,
     .documents = true},
    {.name = "naive_in_parts_of_micro_batches",
     .fused = true,
     .flash = false,
     .checkpointing = true,
     .score_rows = 8,
     .micro_batches = 2,
     .windows = true,
     .documents = true}};
// The same of a head with its own weights.
constexpr Variant parts_variants[] = {{"loss_in_chunks", true, true, false, false, false, 0, 5},
                                      {"micro_batches", true, true, false, true, false, 0, 1, 2},
                                      {"chunks_in_micro_batches", false, false, true, false, false, 0, 3, 2}};

constexpr Variant family_variants[] = {
    {.name = "llama3", .fused = true, .flash = true, .checkpointing = false, .family = "decoder_llama3"},
    {.name = "yarn_unfused", .fused = false, .flash = false, .checkpointing = true, .family = "decoder_yarn"},
    {.name = "gemma", .fused = true, .flash = true, .checkpointing = false, .family = "decoder_gemma"},
    {.name = "gemma_unfused", .fused = false, .flash = false, .checkpointing = false, .family = "decoder_gemma"},
    {.name = "gemma_recomputed",
     .fused = true,
     .flash = true,
     .checkpointing = true,
     .side_lane = true,
     .loss_chunks = 3,
     .micro_batches = 2,
     .family = "decoder_gemma"},
    {.name = "gemma_unfused_recomputed",
     .fused = false,
     .flash = true,
     .checkpointing = true,
     .family = "decoder_gemma"},
    {.name = "gemma2_in_chunks",
     .fused = true,
     .flash = true,
     .checkpointing = false,
     .loss_chunks = 3,
     .family = "decoder_gemma2"},
    {.name = "gemma2_unfused", .fused = false, .flash = false, .checkpointing = false, .family = "decoder_gemma2"},
    {.name = "latent", .fused = true, .flash = true, .checkpointing = false, .family = "decoder_latent"},
    {.name = "latent_unfused", .fused = false, .flash = false, .checkpointing = true, .family = "decoder_latent"},
    {.name = "latent_lite", .fused = false, .flash = true, .checkpointing = false, .family = "decoder_latent_lite"},
    {.name = "latent_recomputed",
     .fused = true,
     .flash = true,
     .checkpointing = true,
     .side_lane = true,
     .micro_batches = 2,
     .family = "decoder_latent_lite"}};

PrecisionPolicy policy(const char* name) { return workload::precision_policy(name, backend().kind()); }

DecoderConfig config_of(const Variant& v, const PrecisionPolicy& precision) {
  DecoderConfig c;
  if (v.family) {
    c = test::family_config(v.family);
  } else {
    c.vocab_size = 97, c.batch_size = 2, c.context_length = 21;
    c.d_model = 48, c.d_ff = 112, c.layers = 2, c.heads = 3;
  }
  c.keep_outputs = c.residual_in_products = v.keep_outputs;
  c.precision = precision;
  c.fused = v.fused, c.flash = v.flash, c.checkpointing = v.checkpointing;
  c.side_lane = v.side_lane;
  c.batch_size /= v.micro_batches, c.accumulation_steps = v.micro_batches;
  c.loss_chunks = v.loss_chunks;
  c.keep_logits = v.micro_batches == 1;
  c.score_rows = v.score_rows;
  if (v.qk_norm) {
    c.d_model = 24, c.d_ff = 40, c.heads = 4, c.kv_heads = 2, c.head_dim = 10;
    c.qk_norm = c.tied_embeddings = true;
    c.rope_theta = 1e6, c.norm_eps = 1e-6;
  }
  if (v.windows) {
    c.d_model = 32, c.d_ff = 40, c.layers = 3, c.heads = 4, c.kv_heads = 2, c.vocab_size = 61;
    c.qkv_bias = c.output_bias = true;
    c.sliding_window = 6, c.full_attention_every = 3;
    c.attention_sinks = true, c.attention_soft_cap = 1.5;
  }
  if (v.documents) c.documents = {1, 9, 3, 8};
  if (!v.grouped) return c;
  c.heads = 6, c.kv_heads = 2;
  c.qkv_bias = c.tied_embeddings = true;
  c.rope_theta = 1e6, c.norm_eps = 1e-6;
  return c;
}

// A model with all its memory, at the reference's weights.
class Trainer {
 public:
  Trainer(const Variant& variant, const PrecisionPolicy& precision)
      : Trainer(config_of(variant, precision), test::reference_folder(variant.reference()), variant.lr()) {}
  Trainer(const DecoderConfig& config, const std::string& folder, double lr)
      : set_(config.precision),
        ids_(models::add_decoder_parameters(set_, config)),
        model_(config, set_, ids_),
        optimizer_({.lr = lr}, set_),
        values_(set_.value_bytes()),
        copy_(set_.copy_bytes() + 256),
        state_(optimizer_.state_bytes()),
        scaler_(config.precision),
        scaler_state_(scaler_.state_bytes()),
        gradients_(set_.gradient_bytes()),
        activations_(model_.activation_bytes()),
        inputs_(DType::i64, {config.step_rows()}),
        labels_(DType::i64, {config.step_rows()}) {
    set_.bind(values_.data(), copy_.data(), gradients_.data());
    optimizer_.bind(state_.data());
    scaler_.bind(scaler_state_.data());
    model_.bind(gradients_.data(), activations_.data());
    model_.set_loss_scale(scaler_.tensors().scale);
    backend().set_product_math(config.precision.product_math);
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

  ~Trainer() { backend().set_product_math(compute::ProductMath::exact); }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // The same weights from a file with the names and the layout in which models are published.
  void load_published(const char* reference) {
    const SafetensorsReader file(test::reference_folder(reference) + "published.safetensors");
    ASSERT_TRUE(models::has_published_names(file));
    set_.initialize(backend(), 2);
    train::load_parameters(backend(), set_, file, models::published_layout(model_.config()));
  }
  void forward_backward() { model_.whole_step(backend(), inputs_, labels_, valid_rows_); }
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
    if (model_.config().keep_logits) put("logits", model_.kept_logits());
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

double worst_error(const Variant& v, const std::map<std::string, Values>& got, const std::string& prefix,
                   const std::string& left_out = "") {
  return test::worst_reference_error(
      v.reference(), prefix, [&](const std::string& name, const auto&) { return got.at(name); }, left_out);
}

class DecoderParity : public testing::TestWithParam<Variant> {};

TEST_P(DecoderParity, LogitsLossAndEveryGradientInFp32) {
  Trainer trainer(GetParam(), {});
  run([&] { trainer.forward_backward(); });
  const auto got = trainer.results();
  for (const char* what : {"logits", "loss", "grad."}) {
    if (!got.contains("logits") && std::string_view(what) == "logits") continue;  // of the last micro-batch alone
    const double error = worst_error(GetParam(), got, what);
    std::printf("  %-20s %-8s worst relative error %.2e\n", GetParam().name, what, error);
    EXPECT_LE(error, 1e-5) << what;
  }
}

TEST_P(DecoderParity, WeightsAfterThreeAdamWStepsInFp32) {
  Trainer trainer(GetParam(), {});
  for (int i = 0; i < 3; ++i) run([&] { trainer.step(); });
  const double error = worst_error(GetParam(), trainer.results(), "weight.");
  std::printf("  %-20s %-8s worst relative error %.2e\n", GetParam().name, "weights", error);
  EXPECT_LE(error, 1e-5);
}

// Of the backend and the variant.
bool is_served(std::string_view precision, const Variant& v) {
  // Tiled attention of 16 bits on CUDA serves heads of multiples of 8, with packed documents of 16.
  const std::int64_t columns = v.documents ? 16 : 8;
  if (is_cuda() && v.flash && precision != "fp32" && precision != "tf32" &&
      config_of(v, {}).head_width() % columns != 0)
    return false;
  const bool is_gemma = std::string_view(v.reference()).starts_with("decoder_gemma");
  if (precision.starts_with("fp8")) return v.fused && !is_gemma && !v.windows && !config_of(v, {}).latent.any();
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
constexpr Coarse coarse[] = {{"tf32", 5e-3, 2e-3, 2e-2},
                             {"bf16", 0.03, 0.01, 0.08},
                             {"fp16", 5e-3, 2e-3, 2e-2},
                             {"fp8", 0.25, 0.02, 0.5},
                             {"fp8_dw_bf16", 0.25, 0.02, 0.5}};

TEST_P(DecoderParity, CoarserPrecisionsStayNear) {
  for (const Coarse& c : coarse) {
    if (!is_served(c.precision, GetParam())) continue;
    Trainer trainer(GetParam(), policy(c.precision));
    if (const std::string why = refusal([&] { trainer.forward_backward(); }); !why.empty()) {
      EXPECT_TRUE(is_cuda() && std::string_view(c.precision).starts_with("fp8")) << why;
      continue;
    }
    const auto got = trainer.results();
    const double logits = got.contains("logits") ? worst_error(GetParam(), got, "logits") : 0;
    // The terms of a gradient by the keys' bias cancel: a number added to all scores of a query changes nothing.
    // Formats of so few bits leave noise of it.
    const bool is_noisy = c.gradients > 0.05;
    const double gradients = worst_error(GetParam(), got, "grad.", is_noisy ? "k_proj.bias" : "");
    std::printf("  %-20s %-5s worst relative error: logits %.2e, gradients %.2e\n", GetParam().name, c.precision,
                logits, gradients);
    EXPECT_LE(logits, c.logits) << c.precision;
    EXPECT_LE(worst_error(GetParam(), got, "loss"), c.loss) << c.precision;
    EXPECT_LE(gradients, c.gradients) << c.precision;
  }
}

// What is captured and replayed is what is enqueued.
TEST_P(DecoderParity, AGraphDoesAsItsOperations) {
  Trainer one(GetParam(), {}), other(GetParam(), {});
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
  // By the definition a group's heads have products each, and parts of the rows of queries, too.
  const std::uint64_t of_attention = GetParam().grouped || GetParam().qk_norm || GetParam().windows ? 3 * 8 * 6 : 2 * 6;
  const auto of_head = static_cast<std::uint64_t>(3 * GetParam().loss_chunks);
  const std::uint64_t most_products =
      static_cast<std::uint64_t>(GetParam().micro_batches) * (2 * (3 * 7 + 7 + of_attention) + of_head);
  constexpr std::uint64_t most_in_a_product = 32;
  Trainer trainer(GetParam(), {});
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
    Trainer trainer(config_of(GetParam(), policy(name)), test::reference_folder(GetParam().reference()), 1e-2);
    if (const std::string why = refusal([&] { trainer.step(); }); !why.empty()) {
      EXPECT_TRUE(is_cuda() && std::string_view(name).starts_with("fp8")) << why;
      continue;
    }
    const double first = trainer.results()["loss"][0];
    for (int i = 0; i < 20; ++i) run([&] { trainer.step(); });
    const double last = trainer.results()["loss"][0];
    EXPECT_LT(last, 0.7 * first) << name;
  }
}

TEST(PublishedWeights, GiveTheLossAndTheGradientsOfTheModelTheyWereWrittenFor) {
  for (const Variant& v : {grouped_variants[0], qk_norm_variants[0]}) {
    Trainer trainer(v, {});
    trainer.load_published(v.reference());
    run([&] { trainer.forward_backward(); });
    for (const char* what : {"logits", "loss", "grad."})
      EXPECT_LE(worst_error(v, trainer.results(), what), 1e-5) << v.reference() << ' ' << what;
  }
}

INSTANTIATE_TEST_SUITE_P(QkNorm, DecoderParity, testing::ValuesIn(qk_norm_variants),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Grouped, DecoderParity, testing::ValuesIn(grouped_variants),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Families, DecoderParity, testing::ValuesIn(family_variants),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Documents, DecoderParity, testing::ValuesIn(documents_variants),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Windows, DecoderParity, testing::ValuesIn(windows_variants),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(InParts, DecoderParity, testing::ValuesIn(parts_variants),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(All, DecoderParity, testing::ValuesIn(variants),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace assay::conformance
