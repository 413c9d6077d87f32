// What was trained, held against what the experiment asks for.
#include <assay/models/decoder_params.hpp>
#include <assay/verification/asked_decoder.hpp>

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "trainer_host.hpp"

namespace assay::train {
namespace {

// A case of a workload whose table is model_params and optimizer_params: their defaults, and what a test sets.
class AskedCase {
 public:
  AskedCase() {
    for (const Param& p : models::model_params) values_[p.row.name] = p.row;
    for (const Param& p : models::checkpointing_params) values_[p.row.name] = p.row;
    for (const Param& p : models::accumulation_params) values_[p.row.name] = p.row;
    for (const Param& p : optimizer_params) values_[p.row.name] = p.row;
    for (const auto& [name, number] : {std::pair{"d_model", 64},
                                       {"d_ff", 128},
                                       {"layers", 2},
                                       {"heads", 4},
                                       {"kv_heads", 2},
                                       {"accumulation_steps", 2}})
      values_[name].default_int = number;
    abi_.get_bool = [](const assay_config* c, assay_str key, std::int32_t* out) noexcept {
      *out = static_cast<std::int32_t>(of(c, key).default_int);
      return assay_status{ASSAY_OK};
    };
    abi_.get_int = [](const assay_config* c, assay_str key, std::int64_t* out) noexcept {
      *out = of(c, key).default_int;
      return assay_status{ASSAY_OK};
    };
    abi_.get_float = [](const assay_config* c, assay_str key, double* out) noexcept {
      *out = of(c, key).default_float;
      return assay_status{ASSAY_OK};
    };
    abi_.get_string = [](const assay_config* c, assay_str key, assay_str* out) noexcept {
      *out = to_abi(of(c, key).default_string);
      return assay_status{ASSAY_OK};
    };
    case_.struct_size = sizeof case_;
    case_.config = reinterpret_cast<const assay_config*>(&values_);
    case_.seed = 42, case_.rank_count = 1, case_.device_kind = "cpu";
  }
  AskedCase(const AskedCase&) = delete;
  AskedCase& operator=(const AskedCase&) = delete;

  void set(const char* key, const char* choice) { values_.at(key).default_string = choice; }
  void set(const char* key, double number) {
    values_.at(key).default_float = number, values_.at(key).default_int = static_cast<std::int64_t>(number);
  }
  Case of_host() const { return Case(&abi_, &case_); }

 private:
  using Values = std::map<std::string, assay_param>;
  static const assay_param& of(const assay_config* config, assay_str key) {
    return reinterpret_cast<const Values*>(config)->at(std::string(from_abi(key)));
  }

  Values values_;
  assay_host abi_{};
  assay_case case_{};
};

models::DecoderTrainerConfig as_asked() {
  models::DecoderTrainerConfig c;
  c.model.d_model = 64, c.model.d_ff = 128, c.model.layers = 2, c.model.heads = 4, c.model.kv_heads = 2;
  c.model.vocab_size = 10'000, c.model.batch_size = 4, c.model.context_length = 512;
  c.model.rope_theta = 1e4, c.model.norm_eps = 1e-5;
  c.model.accumulation_steps = 2;
  c.optimizer.lr = 1e-4;
  c.seed = 42;
  return c;
}

TEST(AskedDecoder, IsWhatTheTablesDefaultsSay) {
  const AskedCase asked;
  EXPECT_EQ(test::wrong_result_of([&] { verification::AskedDecoder(asked.of_host()).check(as_asked()); }), "");
}

TEST(AskedDecoder, NamesTheSettingThatIsAnother) {
  const AskedCase asked;
  const verification::AskedDecoder check(asked.of_host());
  using Config = models::DecoderTrainerConfig;
  const std::pair<const char*, void (*)(Config&)> changes[] = {
      {"rope_theta 500, the experiment asks for 10000", [](Config& c) { c.model.rope_theta = 500; }},
      {"norm_eps 1e-06, the experiment asks for 1e-05", [](Config& c) { c.model.norm_eps = 1e-6; }},
      {"rope_factor 8, the experiment asks for 1", [](Config& c) { c.model.rope_scaling.factor = 8; }},
      {"rope_original_context 4096, the experiment asks for 0",
       [](Config& c) { c.model.rope_scaling.original_positions = 4096; }},
      {"rope_scaling (of none, linear, llama3, yarn) 3, the experiment asks for 0",
       [](Config& c) { c.model.rope_scaling.kind = compute::RotaryScalingKind::yarn; }},
      {"d_ff 64, the experiment asks for 128", [](Config& c) { c.model.d_ff = 64; }},
      {"layers 1, the experiment asks for 2", [](Config& c) { c.model.layers = 1; }},
      {"kv_heads 0, the experiment asks for 2", [](Config& c) { c.model.kv_heads = 0; }},
      {"head_dim 32, the experiment asks for 0", [](Config& c) { c.model.head_dim = 32; }},
      {"qkv_bias 1, the experiment asks for 0", [](Config& c) { c.model.qkv_bias = true; }},
      {"qk_norm 1, the experiment asks for 0", [](Config& c) { c.model.qk_norm = true; }},
      {"sliding_window 64, the experiment asks for 0", [](Config& c) { c.model.sliding_window = 64; }},
      {"kv_lora_rank 64, the experiment asks for 0", [](Config& c) { c.model.latent.kv_lora_rank = 64; }},
      {"v_head_dim 16, the experiment asks for 0", [](Config& c) { c.model.latent.v_head_dim = 16; }},
      {"rope_mscale_all_dim 1, the experiment asks for 0", [](Config& c) { c.model.latent.mscale_all_dim = 1; }},
      {"attention_sinks 1, the experiment asks for 0", [](Config& c) { c.model.attention_sinks = true; }},
      {"attention_soft_cap 50, the experiment asks for 0", [](Config& c) { c.model.attention_soft_cap = 50; }},
      {"logit_soft_cap 30, the experiment asks for 0", [](Config& c) { c.model.logit_soft_cap = 30; }},
      {"tied_embeddings 1, the experiment asks for 0", [](Config& c) { c.model.tied_embeddings = true; }},
      {"vocab_size 5000, the experiment asks for 10000", [](Config& c) { c.model.vocab_size = 5000; }},
      {"context_length 256, the experiment asks for 512", [](Config& c) { c.model.context_length = 256; }},
      {"accumulation_steps 1, the experiment asks for 2", [](Config& c) { c.model.accumulation_steps = 1; }},
      {"activation_checkpointing 1, the experiment asks for 0", [](Config& c) { c.model.checkpointing = true; }},
      {"lr 0.001, the experiment asks for 0.0001", [](Config& c) { c.optimizer.lr = 1e-3; }},
      {"beta2 0.99000001, the experiment asks for 0.999000013", [](Config& c) { c.optimizer.beta2 = 0.99F; }},
      {"weight_decay 0, the experiment asks for 0.00999999978", [](Config& c) { c.optimizer.weight_decay = 0; }},
      {"muon_lr 0.02, the experiment asks for 0.001", [](Config& c) { c.optimizer.muon.lr = 0.02; }},
      {"muon_momentum 0.899999976, the experiment asks for 0.949999988",
       [](Config& c) { c.optimizer.muon.momentum = 0.9F; }},
      {"muon_steps 4, the experiment asks for 5", [](Config& c) { c.optimizer.muon.steps = 4; }},
      {"muon_adjust 1, the experiment asks for 0",
       [](Config& c) { c.optimizer.muon.adjust = MuonAdjust::match_rms_adamw; }},
      {"documents of 500, 12 tokens, the experiment asks for whole sequences",
       [](Config& c) { c.model.documents = {500, 12}; }},
      {"optimizer sgd, the experiment asks for adamw", [](Config& c) { c.optimizer.name = "sgd"; }},
      {"seed 1, the experiment asks for 42", [](Config& c) { c.seed = 1; }}};
  for (const auto& [text, change] : changes) {
    Config found = as_asked();
    change(found);
    EXPECT_EQ(test::wrong_result_of([&] { check.check(found); }), std::string("what was trained has ") + text);
  }
}

TEST(AskedDecoder, CountsTheBatches) {
  const AskedCase asked;
  const verification::AskedDecoder check(asked.of_host(), 2);
  models::DecoderTrainerConfig found = as_asked();
  EXPECT_EQ(test::wrong_result_of([&] { check.check(found); }),
            "what was trained has batches 1, the experiment asks for 2");
  found.data_ranks = 2;
  EXPECT_EQ(test::wrong_result_of([&] { check.check(found); }), "");
}

// Which has nothing to make again.
TEST(AskedDecoder, AForwardAloneMayLeaveOutRecomputation) {
  const AskedCase asked;
  models::DecoderTrainerConfig found = as_asked();
  found.model.backward = false, found.model.checkpointing = true;
  EXPECT_EQ(test::wrong_result_of([&] { verification::AskedDecoder(asked.of_host()).check(found); }), "");
}

TEST(OptimizerConfig, OfMuonIsOfWorkloadsWithWholeMatrices) {
  AskedCase asked;
  asked.set("optimizer", "muon");
  asked.set("muon_adjust", "match_rms_adamw");
  const OptimizerConfig config = optimizer_config(asked.of_host(), WholeMatrixOptimizers::served);
  EXPECT_EQ(config.name, "muon");
  EXPECT_EQ(config.muon.adjust, MuonAdjust::match_rms_adamw);
  try {
    optimizer_config(asked.of_host());
    FAIL() << "expected a refusal";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_UNSUPPORTED);
    EXPECT_NE(std::string(e.what()).find("expected optimizer = \"adamw\""), std::string::npos) << e.what();
  }
}

std::string refusal_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_INVALID_ARGUMENT) << e.what();
    return e.what();
  }
  return "";
}

struct Setting {
  const char* param;
  double number;
};

// One that nothing reads is refused, and what to set instead is said; at its default, or as a size has it, it is not.
TEST(OptimizerConfig, RefusesSettingsThatNothingReads) {
  struct {
    const char* optimizer;
    std::vector<Setting> settings;
    const char* refusal;
  } const table[] = {
      {"muon", {{"muon_lr", 0.02}, {"muon_steps", 3}}, ""},
      {"adamw", {{"muon_lr", 1e-3}}, ""},
      {"adamw",
       {{"muon_lr", 0.02}},
       "optimizer = \"adamw\" does not read muon_lr = 0.02, which is of \"muon\"; leave it out, or set its default, "
       "muon_lr = 0.001"},
      {"sgd",
       {{"muon_nesterov", 0}, {"muon_steps", 3}},
       "optimizer = \"sgd\" does not read muon_nesterov = false, which is of \"muon\", and muon_steps = 3, which is of "
       "\"muon\"; leave them out, or set their defaults, muon_nesterov = true and muon_steps = 5"},
      {"muon",
       {{"muon_momentum", 1}},
       "muon_momentum = 1 takes nothing of a gradient, so that no matrix learns; expected less than 1"}};
  for (const auto& row : table) {
    AskedCase asked;
    asked.set("optimizer", row.optimizer);
    for (const Setting& s : row.settings) asked.set(s.param, s.number);
    EXPECT_EQ(refusal_of([&] { optimizer_config(asked.of_host(), WholeMatrixOptimizers::served); }), row.refusal);
  }
}

// Workloads that serve no optimizer of matrices have no rows of one.
TEST(OptimizerConfig, ReadsNoRowsOfMuonWhereItIsNotServed) {
  AskedCase asked;
  asked.set("muon_lr", 7.0), asked.set("muon_momentum", 1.0), asked.set("muon_steps", 3.0);
  const OptimizerConfig found = optimizer_config(asked.of_host(), WholeMatrixOptimizers::refused);
  EXPECT_EQ(found.name, "adamw");
  EXPECT_EQ(found.muon.lr, MuonConfig().lr);
  EXPECT_EQ(test::wrong_result_of([&] { verification::AskedDecoder(asked.of_host()).check(as_asked()); }), "");
  for (const Param& row : elementwise_optimizer_params)
    EXPECT_EQ(std::string(row.row.name).find("muon"), std::string::npos) << row.row.name;
  for (const char* const name : elementwise_optimizer_names) EXPECT_STRNE(name, "muon");
}

TEST(RopeScaling, RefusesSettingsThatNothingReads) {
  const char* const factor_of_1 =
      "rope_scaling = \"linear\" scales by rope_factor = 1, which changes nothing; expected rope_factor above 1, or "
      "rope_scaling = \"none\"";
  struct {
    const char *size, *kind;
    std::vector<Setting> settings;
    const char* refusal;
  } const table[] = {
      {"tiny", "none", {}, ""},
      {"tiny", "linear", {{"rope_factor", 2}}, ""},
      {"tiny", "linear", {}, factor_of_1},
      {"tiny", "yarn", {{"rope_original_context", 64}, {"rope_attention_factor", 2}}, ""},
      {"tiny",
       "none",
       {{"rope_factor", 4}},
       "rope_scaling = \"none\" does not read rope_factor = 4, which is of \"linear\", \"llama3\" and \"yarn\"; leave "
       "it out, or set its default, rope_factor = 1"},
      {"tiny",
       "llama3",
       {{"rope_factor", 4}, {"rope_original_context", 64}, {"rope_truncate", 0}},
       "rope_scaling = \"llama3\" does not read rope_truncate = false, which is of \"yarn\"; leave it out, or set its "
       "default, rope_truncate = true"},
      {"tiny",
       "linear",
       {{"rope_factor", 4}, {"rope_high_freq_factor", 8}, {"rope_beta_fast", 20}},
       "rope_scaling = \"linear\" does not read rope_high_freq_factor = 8, which is of \"llama3\", and rope_beta_fast "
       "= "
       "20, which is of \"yarn\"; leave them out, or set their defaults, rope_high_freq_factor = 4 and rope_beta_fast "
       "= "
       "32"},
      // What the size says of llama3 was not asked for.
      {"llama3.2-1b", "none", {{"rope_factor", 32}, {"rope_original_context", 8192}}, ""},
      {"llama3.2-1b",
       "none",
       {{"rope_factor", 16}, {"rope_original_context", 8192}},
       "rope_scaling = \"none\" does not read rope_factor = 16, which is of \"linear\", \"llama3\" and \"yarn\"; leave "
       "it out, or set its default, rope_factor = 1"}};
  for (const auto& row : table) {
    AskedCase asked;
    asked.set("size", row.size);
    asked.set("rope_scaling", row.kind);
    for (const Setting& s : row.settings) asked.set(s.param, s.number);
    EXPECT_EQ(refusal_of([&] { models::rope_scaling(asked.of_host()); }), row.refusal) << row.size << ' ' << row.kind;
  }
}

// As their publishers' configurations have them (config.json of each model).
TEST(AskedDecoder, PublishedModelsHaveTheirPublishedSizes) {
  const models::PublicModel published[] = {
      {{"qwen2.5-0.5b", 896, 4864, 24, 14}, 2, 151936, 0, true, false, true, 1e6, 1e-6},
      {{"qwen2.5-1.5b", 1536, 8960, 28, 12}, 2, 151936, 0, true, false, true, 1e6, 1e-6},
      {{"qwen2.5-3b", 2048, 11008, 36, 16}, 2, 151936, 0, true, false, true, 1e6, 1e-6},
      {{"qwen2.5-7b", 3584, 18944, 28, 28}, 4, 152064, 0, true, false, false, 1e6, 1e-6},
      {{"qwen3-0.6b", 1024, 3072, 28, 16}, 8, 151936, 128, false, true, true, 1e6, 1e-6},
      {{"qwen3-1.7b", 2048, 6144, 28, 16}, 8, 151936, 128, false, true, true, 1e6, 1e-6},
      {{"qwen3-4b", 2560, 9728, 36, 32}, 8, 151936, 128, false, true, true, 1e6, 1e-6},
      {{"qwen3-8b", 4096, 12288, 36, 32}, 8, 151936, 128, false, true, false, 1e6, 1e-6},
      {{"llama3-8b", 4096, 14336, 32, 32}, 8, 128256, 0, false, false, false, 5e5, 1e-5}};
  // Of Llama 3.1 and 3.2: rope_type llama3, factor, original_max_position_embeddings, low and high frequency factor.
  const std::map<std::string, std::array<double, 4>> scalings{
      {"llama3.1-8b", {8, 8192, 1, 4}}, {"llama3.2-1b", {32, 8192, 1, 4}}, {"llama3.2-3b", {32, 8192, 1, 4}}};
  std::map<std::string, double> presets;  // by model and parameter
  std::map<std::string, std::string> scaled;
  for (const Preset& p : models::model_presets) {
    if (p.type == ASSAY_TYPE_STRING) scaled[p.row.choice] = p.row.string_value;
    const double number = p.type == ASSAY_TYPE_FLOAT ? p.row.float_value : static_cast<double>(p.row.int_value);
    presets[std::string(p.row.choice) + " " + p.row.param] = number;
  }
  for (const models::PublicModel& m : published) {
    const auto preset = [&](const char* param) { return presets.at(std::string(m.size.name) + " " + param); };
    EXPECT_EQ(preset("d_model"), static_cast<double>(m.size.d_model)) << m.size.name;
    EXPECT_EQ(preset("d_ff"), static_cast<double>(m.size.d_ff)) << m.size.name;
    EXPECT_EQ(preset("layers"), static_cast<double>(m.size.layers)) << m.size.name;
    EXPECT_EQ(preset("heads"), static_cast<double>(m.size.heads)) << m.size.name;
    EXPECT_EQ(preset("kv_heads"), static_cast<double>(m.kv_heads)) << m.size.name;
    EXPECT_EQ(preset("vocab_size"), static_cast<double>(m.vocab_size)) << m.size.name;
    EXPECT_EQ(preset("head_dim"), static_cast<double>(m.head_dim)) << m.size.name;
    EXPECT_EQ(preset("qk_norm"), m.qk_norm ? 1 : 0) << m.size.name;
    EXPECT_EQ(preset("qkv_bias"), m.qkv_bias ? 1 : 0) << m.size.name;
    EXPECT_EQ(preset("tied_embeddings"), m.tied_embeddings ? 1 : 0) << m.size.name;
    EXPECT_EQ(preset("rope_theta"), m.rope_theta) << m.size.name;
    EXPECT_EQ(preset("norm_eps"), m.norm_eps) << m.size.name;
    EXPECT_FALSE(scaled.contains(m.size.name)) << m.size.name;
  }
  for (const auto& [name, s] : scalings) {
    EXPECT_EQ(scaled.at(name), "llama3");
    EXPECT_EQ(presets.at(name + " rope_theta"), 5e5) << name;
    const char* const params[] = {"rope_factor", "rope_original_context", "rope_low_freq_factor",
                                  "rope_high_freq_factor"};
    for (std::size_t i = 0; i < s.size(); ++i) EXPECT_EQ(presets.at(name + " " + params[i]), s[i]) << name;
  }
}

}  // namespace
}  // namespace assay::train
