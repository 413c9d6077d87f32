#include <fstream>
#include <nlohmann/json.hpp>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class Moe : public Sandbox {
 protected:
  std::vector<json> run_cases(const std::string& params, const std::string& sweep = "", int expected_code = 0) {
    return records_of({.plugin = "moe", .params = params, .measure = "warmup = 0\nsteps = 2", .sweep = sweep},
                      expected_code);
  }
};

const std::string small =
    "d_model = 32\nd_ff = 64\nlayers = 2\nheads = 2\nkv_heads = 2\nvocab_size = 96\nbatch_size = 2\ncontext_length = "
    "16\n"
    "experts = 4\nexpert_d_ff = 16\n";

void expect_ok(const std::vector<json>& records) {
  for (const json& record : records) EXPECT_EQ(record["verify"]["status"], "ok") << record["verify"];
}

TEST_F(Moe, EveryRoutingIsVerifiedAndCountsItsTokens) {
  const auto records = run_cases(small + "experts_per_token = 2\n", "routing = [\"learned\", \"balanced\", \"zipf\"]");
  ASSERT_EQ(records.size(), 3u);
  expect_ok(records);
  for (const json& record : records) {
    EXPECT_EQ(metric(record, "tokens_by_expert_mean"), 16) << "32 tokens, 2 of 4 experts";
    EXPECT_EQ(metric(record, "parameters") - metric(record, "active_parameters"), 2 * 2 * 3 * 32 * 16);
  }
  EXPECT_EQ(metric(records[1], "tokens_by_expert_min"), 16);
  EXPECT_EQ(metric(records[1], "tokens_by_expert_variation"), 0);
  EXPECT_NEAR(metric(records[1], "balance_loss"), 1, 1e-5) << "of equal counts, whatever the scores";
  EXPECT_GT(metric(records[2], "tokens_by_expert_variation"), 0.1);
}

// The configurations of openai/gpt-oss-20b and deepseek-ai/DeepSeek-V2-Lite and the presets are one model each, of
// which the experiment takes a part.
TEST_F(Moe, APublishedConfigurationIsWhatItsPresetIs) {
  const auto expect_one_model = [&](const std::string& model, const std::string& part) {
    auto from_preset = run_cases("model = \"" + model + "\"\n" + part),
         from_file = run_cases("config_file = \"config.json\"\n" + part);
    ASSERT_EQ(from_preset.size(), 1u);
    ASSERT_EQ(from_file.size(), 1u);
    expect_ok(from_preset), expect_ok(from_file);
    json &preset = from_preset[0]["params"], &file = from_file[0]["params"];
    EXPECT_EQ(preset["rope_scaling"], "yarn");
    EXPECT_EQ(file["model"], "config_file");
    for (const char* of : {"model", "config_file"}) preset.erase(of), file.erase(of);
    EXPECT_EQ(preset, file);
  };
  std::ofstream(folder() / "config.json")
      << R"({"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "attention_bias": true, "head_dim": 64,
             "hidden_act": "silu", "hidden_size": 2880, "intermediate_size": 2880, "num_attention_heads": 64,
             "num_key_value_heads": 8, "num_hidden_layers": 24, "num_local_experts": 32, "num_experts_per_tok": 4,
             "rms_norm_eps": 1e-05, "rope_theta": 150000, "sliding_window": 128, "swiglu_limit": 7.0,
             "tie_word_embeddings": false, "vocab_size": 201088, "rope_scaling": {"rope_type": "yarn", "factor": 32.0,
             "beta_fast": 32.0, "beta_slow": 1.0, "original_max_position_embeddings": 4096, "truncate": false}})";
  expect_one_model("gpt-oss-20b", small + "experts_per_token = 2\nsliding_window = 6\n");
  std::ofstream(folder() / "config.json")
      << R"({"architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "first_k_dense_replace": 1,
             "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 10944, "kv_lora_rank": 512,
             "moe_intermediate_size": 1408, "moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 64,
             "n_shared_experts": 2, "norm_topk_prob": false, "num_attention_heads": 16, "num_experts_per_tok": 6,
             "num_hidden_layers": 27, "num_key_value_heads": 16, "q_lora_rank": null, "qk_nope_head_dim": 128,
             "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06, "rope_theta": 10000, "routed_scaling_factor": 1.0,
             "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 0.707, "mscale_all_dim": 0.707,
             "original_max_position_embeddings": 4096, "type": "yarn"}, "scoring_func": "softmax", "topk_group": 1,
             "tie_word_embeddings": false, "topk_method": "greedy", "v_head_dim": 128, "vocab_size": 102400})";
  expect_one_model("deepseek-v2-lite", small + "experts_per_token = 2\n");
}

TEST_F(Moe, OddShapesAreVerified) {
  // Experts without tokens, one token, all experts, and widths that no vector fits.
  expect_ok(
      run_cases("d_model = 36\nlayers = 2\nheads = 2\nkv_heads = 1\nvocab_size = 97\nbatch_size = 1\nexperts = 7\n"
                "expert_d_ff = 13\n",
                "context_length = [1, 5]\nexperts_per_token = [2, 7]"));
}

TEST_F(Moe, BiasesSharedExpertsAndDenseLayersAreVerified) {
  expect_ok(run_cases(small + "experts_per_token = 2\nunit_alpha = 1.702\nunit_limit = 7\nunit_offset = 1\n"
                              "shared_d_ff = 24\nfirst_dense_layers = 1\n",
                      "expert_biases = [false, true]\nexecution = [\"graph\", \"eager\"]"));
}

// The preset's latent attention, 512 columns of a latent, 128 + 64 of a head's key and 128 of its value, with yarn.
TEST_F(Moe, DeepSeekHasItsLatentAttention) {
  const auto records = run_cases(
      "model = \"deepseek-v2-lite\"\nd_model = 32\nd_ff = 64\nlayers = 2\nheads = 2\nkv_heads = 2\nvocab_size = 96\n"
      "batch_size = 1\ncontext_length = 16\nexperts = 4\nexperts_per_token = 2\nexpert_d_ff = 16\nshared_d_ff = 24\n",
      "execution = [\"graph\", \"eager\"]\nrope_scaling = [\"yarn\", \"none\"]");
  expect_ok(records);
  const int attention = 32 * (2 * 192 + 512 + 64) + 512 + 512 * 2 * (128 + 128) + 2 * 128 * 32;
  for (const json& record : records)
    EXPECT_EQ(metric(record, "parameters"),
              2 * 96 * 32 + 32 + 2 * (attention + 2 * 32) + 3 * 32 * 64 + 4 * 32 + 3 * 4 * 32 * 16 + 3 * 32 * 24);
}

TEST_F(Moe, LossesOfTheRouterMicroBatchesAndRecomputationAreVerified) {
  expect_ok(run_cases(small + "experts_per_token = 2\naccumulation_steps = 2\nloss_chunks = 3\n"
                              "balance_coefficient = 0.5\nz_coefficient = 0.1\n",
                      "activation_checkpointing = [false, true]\nprecision = [\"fp32\", \"bf16\"]"));
  expect_ok(run_cases(small + "score = \"sigmoid\"\nchoice_bias = true\nweights_factor = 2.5\nkeep_outputs = true\n"));
}

TEST_F(Moe, ARouterThatCouldLearnNothingIsRefused) {
  const RunResult result = run_experiment({.plugin = "moe", .params = small + "experts_per_token = 1\n"});
  EXPECT_EQ(result.exit.code, 2);
  EXPECT_NE(result.output.find("would learn nothing"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("is of model = \"tiny\""), std::string::npos) << result.output;
  const RunResult large = run_experiment({.plugin = "moe", .params = small + "weights_factor = 1e300\n"});
  EXPECT_EQ(large.exit.code, 2);
  EXPECT_NE(large.output.find("weights_factor is 1e+300; expected a number"), std::string::npos) << large.output;
}

TEST_F(Moe, ExpertsOverRanksAreVerified) {
  const auto records = run_cases(small + "experts_per_token = 2\nexpert_parallel = true\ncapacity_factor = 4\n",
                                 "\"run.ranks\" = [2, 4]\nrouting = [\"learned\", \"balanced\", \"zipf\"]");
  ASSERT_EQ(records.size(), 6u);
  expect_ok(records);
  for (const json& record : records) {
    EXPECT_EQ(metric(record, "parameters") - metric(record, "active_parameters"), 2 * 2 * 3 * 32 * 16);
    EXPECT_EQ(metric(record, "dispatch_bytes"), metric(record, "combine_bytes"));
    EXPECT_GE(metric(record, "largest_rank_imbalance"), metric(record, "rank_imbalance"));
  }
  // Of 64 rows on 2 ranks 32 go to the other one, in 2 layers, forward with a weight and backward without.
  EXPECT_EQ(metric(records[1], "rank_imbalance"), 1);
  EXPECT_EQ(metric(records[1], "dispatch_bytes"), 2 * 32 * (2 * 32 * 4 + 4));
}

TEST_F(Moe, RowsBeyondTheCapacityFailAndAreNotDropped) {
  const auto records = run_cases(small +
                                     "experts_per_token = 2\nexpert_parallel = true\ncapacity_factor = 1\nrouting = "
                                     "\"zipf\"\nzipf_exponent = 3\n",
                                 "\"run.ranks\" = [2]", 1);
  EXPECT_NE(records.at(0)["reason"].get<std::string>().find("raise capacity_factor to"), std::string::npos)
      << records[0]["reason"];
}

}  // namespace
}  // namespace assay::test
