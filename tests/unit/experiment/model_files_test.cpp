// config.json of published models as values of parameters: what is read, what is refused by name, and what an
// experiment makes of it.
#include "demo_workload.hpp"

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "experiment/model_files.hpp"

namespace assay::host::experiment::test {
namespace {

using Json = nlohmann::ordered_json;

// With the fields and the figures of meta-llama/Llama-3.2-1B, Qwen/Qwen2.5-0.5B and Qwen/Qwen3-0.6B.
const Json llama = Json::parse(R"({
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 128000,
  "eos_token_id": 128001, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
  "intermediate_size": 8192, "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama",
  "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8, "pretraining_tp": 1,
  "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
  "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0,
  "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.45.0.dev0", "use_cache": true,
  "vocab_size": 128256})");
const Json qwen2 = Json::parse(R"({
  "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151643,
  "hidden_act": "silu", "hidden_size": 896, "initializer_range": 0.02, "intermediate_size": 4864,
  "max_position_embeddings": 32768, "max_window_layers": 24, "model_type": "qwen2", "num_attention_heads": 14,
  "num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
  "sliding_window": 32768, "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.40.1",
  "use_cache": true, "use_mrope": false, "use_sliding_window": false, "vocab_size": 151936})");
const Json qwen3 = Json::parse(R"({
  "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 151643,
  "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 1024, "initializer_range": 0.02,
  "intermediate_size": 3072, "max_position_embeddings": 40960, "max_window_layers": 28, "model_type": "qwen3",
  "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8, "rms_norm_eps": 1e-06,
  "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": true,
  "torch_dtype": "bfloat16", "transformers_version": "4.51.0", "use_cache": true, "use_sliding_window": false,
  "vocab_size": 151936})");

// google/gemma-3-1b-it.
const Json gemma3 = Json::parse(R"({
  "architectures": ["Gemma3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "attn_logit_softcapping": null, "bos_token_id": 2, "cache_implementation": "hybrid", "eos_token_id": [1, 106],
  "final_logit_softcapping": null, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 1152,
  "initializer_range": 0.02, "intermediate_size": 6912, "max_position_embeddings": 32768, "model_type": "gemma3_text",
  "num_attention_heads": 4, "num_hidden_layers": 26, "num_key_value_heads": 1, "pad_token_id": 0,
  "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_local_base_freq": 10000, "rope_scaling": null,
  "rope_theta": 1000000, "sliding_window": 512, "sliding_window_pattern": 6, "torch_dtype": "bfloat16",
  "transformers_version": "4.50.0.dev0", "use_cache": true, "vocab_size": 262144})");

// google/gemma-2-2b.
const Json gemma2 = Json::parse(R"({
  "architectures": ["Gemma2ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "attn_logit_softcapping": 50.0, "bos_token_id": 2, "cache_implementation": "hybrid", "eos_token_id": 1,
  "final_logit_softcapping": 30.0, "head_dim": 256, "hidden_act": "gelu_pytorch_tanh",
  "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 2304, "initializer_range": 0.02, "intermediate_size": 9216,
  "max_position_embeddings": 8192, "model_type": "gemma2", "num_attention_heads": 8, "num_hidden_layers": 26,
  "num_key_value_heads": 4, "pad_token_id": 0, "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06,
  "rope_theta": 10000.0, "sliding_window": 4096, "torch_dtype": "float32", "transformers_version": "4.42.0.dev0",
  "use_cache": true, "vocab_size": 256000})");

// Qwen/Qwen3-30B-A3B, mistralai/Mixtral-8x7B-v0.1 and openai/gpt-oss-20b.
const Json qwen3_moe = Json::parse(R"({
  "architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 151643,
  "decoder_sparse_step": 1, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048,
  "initializer_range": 0.02, "intermediate_size": 6144, "max_position_embeddings": 40960, "max_window_layers": 48,
  "mlp_only_layers": [], "model_type": "qwen3_moe", "moe_intermediate_size": 768, "norm_topk_prob": true,
  "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48,
  "num_key_value_heads": 4, "output_router_logits": false, "rms_norm_eps": 1e-06, "rope_scaling": null,
  "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001, "sliding_window": null, "tie_word_embeddings": false,
  "torch_dtype": "bfloat16", "transformers_version": "4.51.0", "use_cache": true, "use_sliding_window": false,
  "vocab_size": 151936})");
const Json mixtral = Json::parse(R"({
  "architectures": ["MixtralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2,
  "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
  "max_position_embeddings": 32768, "model_type": "mixtral", "num_attention_heads": 32, "num_experts_per_tok": 2,
  "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8, "output_router_logits": false,
  "rms_norm_eps": 1e-05, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.02, "sliding_window": null,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.36.0.dev0", "use_cache": true,
  "vocab_size": 32000})");
const Json gpt_oss = [] {
  Json json = Json::parse(R"({
    "architectures": ["GptOssForCausalLM"], "attention_bias": true, "attention_dropout": 0.0, "eos_token_id": 200002,
    "experts_per_token": 4, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2880, "initial_context_length": 4096,
    "initializer_range": 0.02, "intermediate_size": 2880, "max_position_embeddings": 131072, "model_type": "gpt_oss",
    "num_attention_heads": 64, "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 8,
    "num_local_experts": 32, "output_router_logits": false, "pad_token_id": 199999,
    "quantization_config": {"modules_to_not_convert": ["lm_head"], "quant_method": "mxfp4"}, "rms_norm_eps": 1e-05,
    "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "original_max_position_embeddings": 4096,
    "rope_type": "yarn", "truncate": false}, "rope_theta": 150000, "router_aux_loss_coef": 0.9, "sliding_window": 128,
    "swiglu_limit": 7.0, "tie_word_embeddings": false, "transformers_version": "4.55.0.dev0", "use_cache": true,
    "vocab_size": 201088})");
  for (int l = 0; l < 24; ++l) json["layer_types"].push_back(l % 2 == 0 ? "sliding_attention" : "full_attention");
  return json;
}();

// deepseek-ai/DeepSeek-V2-Lite.
const Json deepseek = Json::parse(R"({
  "architectures": ["DeepseekV2ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "auto_map": {"AutoConfig": "configuration_deepseek.DeepseekV2Config"}, "aux_loss_alpha": 0.001,
  "bos_token_id": 100000, "eos_token_id": 100001, "first_k_dense_replace": 1, "hidden_act": "silu",
  "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 10944, "kv_lora_rank": 512,
  "max_position_embeddings": 163840, "model_type": "deepseek_v2", "moe_intermediate_size": 1408, "moe_layer_freq": 1,
  "n_group": 1, "n_routed_experts": 64, "n_shared_experts": 2, "norm_topk_prob": false, "num_attention_heads": 16,
  "num_experts_per_tok": 6, "num_hidden_layers": 27, "num_key_value_heads": 16, "pretraining_tp": 1,
  "q_lora_rank": null, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06,
  "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 0.707, "mscale_all_dim": 0.707,
  "original_max_position_embeddings": 4096, "type": "yarn"}, "rope_theta": 10000, "routed_scaling_factor": 1.0,
  "scoring_func": "softmax", "seq_aux": true, "tie_word_embeddings": false, "topk_group": 1, "topk_method": "greedy",
  "torch_dtype": "bfloat16", "transformers_version": "4.33.1", "use_cache": true, "v_head_dim": 128,
  "vocab_size": 102400})");

std::string text_of(const Json& json) {
  const ModelConfiguration read = read_model_configuration(json.dump());
  std::string text;
  for (const std::string& problem : read.problems) text += "! " + problem + "\n";
  for (const auto& [name, value] : read.values) text += name + " = " + to_text(value) + "\n";
  return text;
}

TEST(ModelConfiguration, PublishedModelsAreReadWhole) {
  EXPECT_EQ(text_of(llama),
            "d_ff = 8192\nd_model = 2048\nexperts = 0\ngate_activation = silu\nhead_dim = 64\nheads = 32\nkv_heads = "
            "8\nlayers = "
            "16\nnorm_eps = 1e-05\nnorms_from_one = false\npost_norms = false\n"
            "qk_norm = false\nqkv_bias = false\nrope_factor = 32\nrope_high_freq_factor = 4\n"
            "rope_low_freq_factor = 1\nrope_original_context = 8192\nrope_scaling = llama3\nrope_theta = "
            "500000\nscaled_embeddings = false\n"
            "tied_embeddings = true\nvocab_size = 128256\n");
  EXPECT_EQ(text_of(qwen2),
            "d_ff = 4864\nd_model = 896\nexperts = 0\ngate_activation = silu\nhead_dim = 0\nheads = 14\nkv_heads = "
            "2\nlayers = "
            "24\nnorm_eps = 1e-06\nnorms_from_one = false\npost_norms = false\n"
            "qk_norm = false\nqkv_bias = true\nrope_scaling = none\nrope_theta = 1000000\nscaled_embeddings = "
            "false\ntied_embeddings = true\n"
            "vocab_size = 151936\n");
  EXPECT_EQ(text_of(qwen3),
            "d_ff = 3072\nd_model = 1024\nexperts = 0\ngate_activation = silu\nhead_dim = 128\nheads = 16\nkv_heads = "
            "8\nlayers = "
            "28\nnorm_eps = 1e-06\nnorms_from_one = false\npost_norms = false\n"
            "qk_norm = true\nqkv_bias = false\nrope_scaling = none\nrope_theta = 1000000\nscaled_embeddings = "
            "false\ntied_embeddings = true\n"
            "vocab_size = 151936\n");
}

TEST(ModelConfiguration, LocalLayersHaveAWindowAndARotationOfTheirOwn) {
  const std::string expected =
      "d_ff = 6912\nd_model = 1152\nexperts = 0\nfull_attention_every = 6\ngate_activation = gelu_tanh\nhead_dim = "
      "256\n"
      "heads = 4\nkv_heads = 1\nlayers = 26\nnorm_eps = 1e-06\nnorms_from_one = true\npost_norms = true\n"
      "qk_norm = true\nqkv_bias = false\nquery_pre_attn_scalar = 256\nrope_local_theta = 10000\n"
      "rope_scaling = none\nrope_theta = 1000000\nscaled_embeddings = true\nsliding_window = 512\n"
      "tied_embeddings = true\nvocab_size = 262144\n";
  EXPECT_EQ(text_of(gemma3), expected);
  Json newer = gemma3;  // as transformers 5 writes it
  for (const char* gone : {"rope_theta", "rope_local_base_freq", "rope_scaling", "sliding_window_pattern"})
    newer.erase(gone);
  newer["rope_parameters"] = {{"full_attention", {{"rope_type", "default"}, {"rope_theta", 1e6}}},
                              {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}}};
  for (int l = 1; l <= 26; ++l) newer["layer_types"].push_back(l % 6 == 0 ? "full_attention" : "sliding_attention");
  EXPECT_EQ(text_of(newer), expected);
  Json whole = newer;
  whole["layer_types"] = std::vector<std::string>(26, "full_attention");
  const auto seeing_all = read_model_configuration(whole.dump());
  EXPECT_TRUE(seeing_all.problems.empty());
  EXPECT_EQ(to_text(seeing_all.values.at("sliding_window")), "0");
  EXPECT_EQ(to_text(seeing_all.values.at("full_attention_every")), "0");
  EXPECT_EQ(to_text(seeing_all.values.at("rope_local_theta")), "0");
  newer["layer_types"][0] = "full_attention";
  EXPECT_EQ(text_of(newer).substr(0, 16), "! \"layer_types\" ");
  Json capped = gemma3;
  capped["final_logit_softcapping"] = 30.0;
  EXPECT_NE(text_of(capped).find("\nlogit_soft_cap = 30\n"), std::string::npos);
  capped["attn_logit_softcapping"] = 50.0;
  EXPECT_NE(text_of(capped).find("\"attn_logit_softcapping\" is 50.0; expected null"), std::string::npos);
}

TEST(ModelConfiguration, CapsAndWindowsOfGemma2) {
  EXPECT_EQ(text_of(gemma2),
            "attention_soft_cap = 50\nd_ff = 9216\nd_model = 2304\nexperts = 0\nfull_attention_every = 2\n"
            "gate_activation = gelu_tanh\nhead_dim = 256\nheads = 8\nkv_heads = 4\nlayers = 26\nlogit_soft_cap = 30\n"
            "norm_eps = 1e-06\nnorms_from_one = true\npost_norms = true\nqk_norm = false\nqkv_bias = false\n"
            "query_pre_attn_scalar = 256\nrope_scaling = none\nrope_theta = 10000\nscaled_embeddings = true\n"
            "sliding_window = 4096\ntied_embeddings = true\nvocab_size = 256000\n");
}

TEST(ModelConfiguration, ModelsWithExperts) {
  EXPECT_EQ(text_of(qwen3_moe),
            "d_ff = 6144\nd_model = 2048\nexpert_biases = false\nexpert_d_ff = 768\nexperts = 128\n"
            "experts_per_token = 8\ngate_activation = silu\nhead_dim = 128\nheads = 32\nkv_heads = 4\nlayers = 48\n"
            "norm_eps = 1e-06\nnormalized_weights = true\nnorms_from_one = false\npost_norms = false\nqk_norm = true\n"
            "qkv_bias = false\nrope_scaling = none\nrope_theta = 1000000\nscaled_embeddings = false\n"
            "tied_embeddings = false\nvocab_size = 151936\n");
  EXPECT_EQ(text_of(mixtral),
            "d_ff = 14336\nd_model = 4096\nexpert_biases = false\nexpert_d_ff = 14336\nexperts = 8\n"
            "experts_per_token = 2\ngate_activation = silu\nhead_dim = 0\nheads = 32\nkv_heads = 8\nlayers = 32\n"
            "norm_eps = 1e-05\nnormalized_weights = true\nnorms_from_one = false\npost_norms = false\nqk_norm = false\n"
            "qkv_bias = false\nrope_scaling = none\nrope_theta = 1000000\nscaled_embeddings = false\n"
            "tied_embeddings = false\nvocab_size = 32000\n");
  Json windowed = mixtral;
  windowed["sliding_window"] = 4096;
  EXPECT_EQ(to_text(read_model_configuration(windowed.dump()).values.at("sliding_window")), "4096");
  EXPECT_EQ(text_of(gpt_oss),
            "attention_sinks = true\nd_ff = 2880\nd_model = 2880\nexpert_biases = true\nexpert_d_ff = 2880\n"
            "experts = 32\nexperts_per_token = 4\nfull_attention_every = 2\ngate_activation = silu\nhead_dim = 64\n"
            "heads = 64\nkv_heads = 8\nlayers = 24\nnorm_eps = 1e-05\nnormalized_weights = true\n"
            "norms_from_one = false\noutput_bias = true\npost_norms = false\nqk_norm = false\nqkv_bias = true\n"
            "rope_attention_factor = 0\nrope_beta_fast = 32\nrope_beta_slow = 1\nrope_factor = 32\n"
            "rope_original_context = 4096\nrope_scaling = yarn\nrope_theta = 150000\nrope_truncate = false\n"
            "scaled_embeddings = false\nsliding_window = 128\ntied_embeddings = false\nunit_alpha = 1.702\n"
            "unit_limit = 7\nunit_offset = 1\nvocab_size = 201088\n");
}

TEST(ModelConfiguration, LatentAttentionOfDeepSeek) {
  EXPECT_EQ(text_of(deepseek),
            "d_ff = 10944\nd_model = 2048\nexpert_biases = false\nexpert_d_ff = 1408\nexperts = 64\n"
            "experts_per_token = 6\nfirst_dense_layers = 1\ngate_activation = silu\nhead_dim = 0\nheads = 16\n"
            "kv_heads = 16\nkv_lora_rank = 512\nlayers = 27\nnorm_eps = 1e-06\nnormalized_weights = false\n"
            "norms_from_one = false\npost_norms = false\nq_lora_rank = 0\nqk_nope_head_dim = 128\nqk_norm = false\n"
            "qk_rope_head_dim = 64\nqkv_bias = false\nrope_attention_factor = 1\nrope_beta_fast = 32\n"
            "rope_beta_slow = 1\nrope_factor = 40\nrope_mscale_all_dim = 0.707\nrope_original_context = 4096\n"
            "rope_scaling = yarn\nrope_theta = 10000\nrope_truncate = true\nscaled_embeddings = false\n"
            "shared_d_ff = 2816\ntied_embeddings = false\nv_head_dim = 128\nvocab_size = 102400\n"
            "weights_factor = 1\n");
  Json other = deepseek;
  other["n_routed_experts"] = nullptr, other["q_lora_rank"] = 1536, other["rope_scaling"]["mscale"] = 1;
  const auto dense = read_model_configuration(other.dump());
  EXPECT_TRUE(dense.problems.empty());
  EXPECT_EQ(to_text(dense.values.at("experts")), "0");
  EXPECT_EQ(to_text(dense.values.at("q_lora_rank")), "1536");
  EXPECT_FALSE(dense.values.contains("shared_d_ff"));
  EXPECT_NEAR(std::get<double>(dense.values.at("rope_attention_factor")),
              (1 + 0.1 * std::log(40.0)) / (1 + 0.0707 * std::log(40.0)), 1e-12);
}

TEST(ModelConfiguration, TheBaseMayStandWithTheScaling) {
  Json newer = llama;
  newer["rope_parameters"] = newer["rope_scaling"];
  newer["rope_parameters"]["rope_theta"] = newer["rope_theta"];
  newer.erase("rope_scaling"), newer.erase("rope_theta");
  EXPECT_EQ(text_of(newer), text_of(llama));
}

TEST(ModelConfiguration, YarnHasThePapersConstantsWhereItSaysNone) {
  Json scaled = qwen3;
  scaled["rope_scaling"] = {{"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32768}};
  const auto values = read_model_configuration(scaled.dump()).values;
  EXPECT_EQ(values.at("rope_beta_fast"), Value(32.0));
  EXPECT_EQ(values.at("rope_beta_slow"), Value(1.0));
  EXPECT_EQ(values.at("rope_truncate"), Value(true));
  EXPECT_EQ(values.at("rope_attention_factor"), Value(0.0));
  EXPECT_EQ(values.at("rope_original_context"), Value(std::int64_t{32768}));
}

// Each change of a sound file is refused by the name of its field, and nothing else is.
TEST(ModelConfiguration, WhatIsNotKnownIsNamed) {
  const auto problem = [](const Json& base, const char* patch) {
    Json changed = base;
    changed.merge_patch(Json::parse(patch));
    const auto problems = read_model_configuration(changed.dump()).problems;
    EXPECT_EQ(problems.size(), 1u) << patch;
    return problems.empty() ? "" : problems.front();
  };
  EXPECT_EQ(problem(llama, R"({"hidden_sise": 2048})"), "unknown field \"hidden_sise\"; did you mean 'hidden_size'?");
  EXPECT_EQ(problem(llama, R"({"use_sliding_window": true})"),
            "\"use_sliding_window\" is true; expected false: sliding windows are not read from files");
  EXPECT_EQ(problem(llama, R"({"hidden_act": "gelu"})"),
            "\"hidden_act\" is \"gelu\"; expected \"silu\", of the gated unit that this family has here");
  EXPECT_EQ(problem(llama, R"({"attention_dropout": 0.1})"),
            "\"attention_dropout\" is 0.1; expected 0: no weight of attention is dropped here");
  EXPECT_EQ(problem(llama, R"({"attention_bias": true})"),
            "\"attention_bias\" is true; expected false: set qkv_bias and output_bias in the experiment instead");
  EXPECT_EQ(problem(llama, R"({"model_type": "falcon"})"),
            "\"model_type\" is \"falcon\"; expected a family that is known here: llama, qwen2, qwen3, gemma, gemma2, "
            "gemma3_text, qwen3_moe, mixtral, gpt_oss, deepseek_v2");
  EXPECT_EQ(problem(llama, R"({"architectures": ["LlamaForSequenceClassification"]})"),
            "\"architectures\" is [\"LlamaForSequenceClassification\"]; expected [\"LlamaForCausalLM\"], a language "
            "model of this family");
  EXPECT_EQ(problem(llama, R"({"vocab_size": null})"), "\"vocab_size\" is missing");
  EXPECT_EQ(problem(llama, R"({"hidden_size": "2048"})"),
            "\"hidden_size\" is \"2048\"; expected a whole number of at least 1");
  EXPECT_EQ(problem(llama, R"({"num_hidden_layers": 16.0})"),
            "\"num_hidden_layers\" is 16.0; expected a whole number of at least 1");
  EXPECT_EQ(problem(llama, R"({"num_key_value_heads": 5})"),
            "\"num_key_value_heads\" is 5; expected a divisor of \"num_attention_heads\", 32");
  EXPECT_EQ(problem(llama, R"({"head_dim": 63})"),
            "\"head_dim\" is 63; expected an even number, whose pairs are rotated");
  EXPECT_EQ(problem(llama, R"({"rope_theta": null})"),
            "\"rope_theta\" is missing; where a model's files leave it out, transformers has 10000.0");
  EXPECT_EQ(problem(llama, R"({"rope_scaling": {"rope_type": "dynamic"}})"),
            "\"rope_scaling.rope_type\" is \"dynamic\"; expected one of \"default\", \"linear\", \"llama3\" and "
            "\"yarn\"");
  EXPECT_EQ(problem(llama, R"({"rope_scaling": {"mscale": 1.0}})"), "unknown field \"rope_scaling.mscale\"");
  EXPECT_EQ(problem(llama, R"({"rope_scaling": {"low_freq_factor": 4.0}})"),
            "\"rope_scaling.low_freq_factor\" is 4.0; expected 0 < \"low_freq_factor\" < \"high_freq_factor\"");
  EXPECT_EQ(problem(qwen3_moe, R"({"decoder_sparse_step": 2})"),
            "\"decoder_sparse_step\" is 2; expected 1: all layers have experts");
  EXPECT_EQ(problem(qwen3_moe, R"({"mlp_only_layers": [0]})"),
            "\"mlp_only_layers\" is [0]; expected []: all layers have experts");
  EXPECT_EQ(problem(mixtral, R"({"output_router_logits": true})"),
            "\"output_router_logits\" is true; expected false: set balance_coefficient in the experiment instead");
  EXPECT_EQ(problem(gpt_oss, R"({"attention_bias": false})"),
            "\"attention_bias\" is false; expected true: models of this family have biases");
  EXPECT_EQ(problem(gpt_oss, R"({"experts_per_token": 2})"),
            "\"experts_per_token\" is 2; expected what \"num_experts_per_tok\" says");
  EXPECT_EQ(problem(gpt_oss, R"({"swiglu_limit": null})"), "\"swiglu_limit\" is missing");
  EXPECT_EQ(problem(gpt_oss, R"({"swiglu_limit": 0})"), "\"swiglu_limit\" is 0; expected above 0");
  EXPECT_EQ(problem(deepseek, R"({"topk_method": "group_limited_greedy"})"),
            "\"topk_method\" is \"group_limited_greedy\"; expected \"greedy\": a token's experts are the best of all");
  EXPECT_EQ(problem(deepseek, R"({"norm_topk_prob": true})"),
            "\"norm_topk_prob\" is true; expected false: programs for this family differ in what they then multiply "
            "weights by");
  EXPECT_EQ(problem(deepseek, R"({"rms_norm_eps": 1e-5})"),
            "\"rms_norm_eps\" is 1e-05; expected 1e-06: norms of latents have it whatever the file says, and all norms "
            "have one here");
  EXPECT_EQ(
      problem(deepseek, R"({"num_key_value_heads": 4})"),
      "\"num_key_value_heads\" is 4; expected \"num_attention_heads\", 16: each head has its own keys and values");
  EXPECT_EQ(problem(deepseek, R"({"head_dim": 128})"),
            "\"head_dim\" is 128; expected \"qk_rope_head_dim\", 64, or null");
  EXPECT_EQ(problem(deepseek, R"({"rope_scaling": {"mscale": null}})"),
            "\"rope_scaling.mscale\" is missing; programs differ in what one of the two alone means");
  EXPECT_EQ(problem(deepseek, R"({"first_k_dense_replace": -1})"),
            "\"first_k_dense_replace\" is -1; expected a whole number of at least 0");
  EXPECT_EQ(problem(deepseek, R"({"n_experts": 3})").substr(0, 25), "unknown field \"n_experts\"");
  Json unsaid = deepseek;
  unsaid.erase("q_lora_rank");
  EXPECT_EQ(problem(unsaid, "{}"), "\"q_lora_rank\" is missing; null where queries are a product of the token");
  EXPECT_EQ(problem(gemma2, R"({"final_logit_softcapping": 0})"),
            "\"final_logit_softcapping\" is 0; expected above 0, or null where there is none");
  EXPECT_EQ(problem(qwen3, R"({"head_dim": null})"), "\"head_dim\" is missing");
  EXPECT_EQ(problem(qwen2, R"({"num_key_value_heads": null})"), "\"num_key_value_heads\" is missing");
  EXPECT_EQ(problem(qwen2, R"({"num_attention_heads": 10, "num_key_value_heads": 2})"),
            "\"hidden_size\" is 896; expected a multiple of \"num_attention_heads\", 10, or \"head_dim\"");
  EXPECT_EQ(problem(qwen3, R"({"sliding_window": 4096, "use_sliding_window": null})"),
            "\"sliding_window\" is 4096; expected null, or \"use_sliding_window\": false: sliding windows are not read "
            "from files");
  EXPECT_EQ(problem(qwen3, R"({"layer_types": ["full_attention", "sliding_attention"]})").substr(0, 13),
            "\"layer_types\"");
}

TEST(ModelConfiguration, WhatIsNoObjectOrNamesAFieldTwiceIsRefused) {
  const auto only = [](const std::string& text) {
    const auto problems = read_model_configuration(text).problems;
    return problems.size() == 1 ? problems.front() : std::to_string(problems.size()) + " problems";
  };
  for (const char* text : {"", "[]", "{\"rms_norm_eps\": NaN}", "{"})
    EXPECT_EQ(only(text), "it is no JSON object; expected a config.json as transformers writes it") << text;
  EXPECT_EQ(only(R"({"model_type": "llama", "a": {"b": 1}, "b": 2, "model_type": "llama"})"),
            "\"model_type\" stands there twice");
}

// An experiment beside a file of this name.
class ModelFile : public testing::Test {
 protected:
  ModelFile() { std::filesystem::create_directories(folder_); }
  ~ModelFile() override { std::filesystem::remove_all(folder_); }

  void write(const Json& json) const { std::ofstream(folder_ / "config.json") << json.dump(); }
  ParseResult parse(const std::string& params, const std::string& rest = "") const {
    return ExperimentFile::from_text(experiment_text(rest, params), (folder_ / "x.toml").string(), {})
        .finish(&schema());
  }
  // What the demonstration has of a decoder.
  static const plugin::WorkloadSchema& schema() {
    static const plugin::WorkloadSchema made = [] {
      auto schema = schema_with_presets();
      schema.params.front().choices.emplace_back(model_file_param);
      plugin::ParamSpec file;
      file.name = model_file_param, file.type = plugin::ParamType::text;
      file.default_value = std::string(), file.input_path = true;
      schema.params.push_back(file);
      return schema;
    }();
    return made;
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("assay-model-file-" + std::to_string(getpid()));
};

// The demonstration's parameters are d_model and heads; all else the model must not have.
Json as_demonstrated() {
  Json json = llama;
  json["tie_word_embeddings"] = false;
  return json;
}

TEST_F(ModelFile, NamesWhatTheWorkloadHasNoParameterFor) {
  write(as_demonstrated());
  const auto text = lines(parse("config_file = \"config.json\"\n"));
  ASSERT_FALSE(text.empty());
  EXPECT_NE(text.front().find("x.toml:6:"), std::string::npos) << text.front();
  EXPECT_NE(text.front().find("the model has d_ff = 8192, for which demo has no parameter"), std::string::npos);
}

TEST_F(ModelFile, OfAnotherKindThanTheWorkloadsIsRefused) {
  write(mixtral);
  const auto text = lines(parse("config_file = \"config.json\"\n"));
  ASSERT_EQ(text.size(), 1u);
  EXPECT_NE(text.front().find("the model has 8 experts, and demo has none; the workload moe has"), std::string::npos)
      << text.front();
  plugin::WorkloadSchema with_experts = schema();
  plugin::ParamSpec experts;
  experts.name = "experts", experts.type = plugin::ParamType::integer, experts.default_value = std::int64_t{8};
  with_experts.params.push_back(experts);
  write(as_demonstrated());
  const auto dense = lines(ExperimentFile::from_text(experiment_text("", "config_file = \"config.json\"\n"),
                                                     (folder_ / "x.toml").string(), {})
                               .finish(&with_experts));
  ASSERT_EQ(dense.size(), 1u);
  EXPECT_NE(dense.front().find("the model has no experts, and demo trains models that have"), std::string::npos)
      << dense.front();
}

TEST_F(ModelFile, AnswersInThePlaceOfAPresetAndBehindTheExperiment) {
  auto with_all = schema();
  for (const auto& [name, value] : read_model_configuration(llama.dump()).values) {
    const auto is_it = [&name = name](const auto& param) { return param.name == name; };
    if (name == "experts" || std::any_of(with_all.params.begin(), with_all.params.end(), is_it)) continue;
    plugin::ParamSpec spec;
    spec.name = name, spec.default_value = value;
    spec.type = std::holds_alternative<bool>(value)          ? plugin::ParamType::boolean
                : std::holds_alternative<double>(value)      ? plugin::ParamType::real
                : std::holds_alternative<std::string>(value) ? plugin::ParamType::text
                                                             : plugin::ParamType::integer;
    if (name == "layers") spec.default_value = std::int64_t{0};
    with_all.params.push_back(spec);
  }
  write(llama);
  const std::string file = (folder_ / "x.toml").string();
  const auto read = [&](const std::string& text) {
    const auto result = ExperimentFile::from_text(text, file, {}).finish(&with_all);
    for (const auto& line : lines(result)) ADD_FAILURE() << line;
    return result.experiment.value_or(Experiment{});
  };
  const Experiment e =
      read(experiment_text("[sweep]\nlayers = [0, 2]\n", "config_file = \"config.json\"\nheads = 0\n"));
  ASSERT_EQ(e.cases.size(), 2u);
  EXPECT_EQ(e.cases[0].params.at("d_model"), Value(std::int64_t{2048}));
  EXPECT_EQ(e.cases[0].params.at("heads"), Value(std::int64_t{0})) << "as the experiment says it";
  EXPECT_EQ(e.cases[1].params.at("layers"), Value(std::int64_t{2}));
  EXPECT_EQ(e.cases[0].params.at("size"), Value(std::string("config_file")));
  const Experiment again = read(e.resolved_toml);
  ASSERT_EQ(again.cases.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(again.cases[i].params, e.cases[i].params);
  // An axis of files, beside sizes too.
  const Experiment swept = read(experiment_text(
      "[[sweep.zip]]\nconfig_file = [\"config.json\", \"\"]\nsize = [\"config_file\", \"small\"]\n", ""));
  ASSERT_EQ(swept.cases.size(), 2u);
  EXPECT_EQ(swept.cases[0].params.at("d_model"), Value(std::int64_t{2048}));
  EXPECT_EQ(swept.cases[1].params.at("size"), Value(std::string("small")));
  EXPECT_EQ(read(swept.resolved_toml).cases.size(), 2u);
  EXPECT_EQ(read(experiment_text("[sweep]\nconfig_file = [\"config.json\"]\n", "")).cases.size(), 1u);
}

TEST_F(ModelFile, IsNotBesideASizeNorOutsideTheWorkloadsRange) {
  Json json = as_demonstrated();
  json["num_hidden_layers"] = nullptr;
  write(json);
  const auto both = lines(parse("size = \"small\"\nconfig_file = \"config.json\"\n"));
  ASSERT_EQ(both.size(), 2u) << "each once, whatever the cases";
  EXPECT_NE(both[0].find("size says what the model is, too; expected one of the two"), std::string::npos) << both[0];
  EXPECT_NE(both[1].find("\"num_hidden_layers\" is missing"), std::string::npos) << both[1];
  const auto as_size = lines(parse("size = \"config.json\"\n"));
  ASSERT_EQ(as_size.size(), 1u);
  EXPECT_NE(as_size[0].find("did you mean config_file = \"config.json\", in place of size?"), std::string::npos)
      << as_size[0];
  std::ofstream(folder_ / "config.json") << std::string((1 << 20) + 1, ' ');
  const auto large = lines(parse("config_file = \"config.json\"\n"));
  ASSERT_EQ(large.size(), 1u);
  EXPECT_NE(large[0].find("1048577 bytes; expected a config.json of at most 1048576"), std::string::npos) << large[0];
}

}  // namespace
}  // namespace assay::host::experiment::test
