#include <assay/models/decoder.hpp>
#include <assay/train/safetensors.hpp>

#include <sys/stat.h>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "e2e/support/sandbox.hpp"
#include "support/decoder_reference.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using train::SafetensorsReader;

class Decoder : public Sandbox {
 protected:
  // `more`: of [run], and further tables.
  std::vector<json> run_cases(const std::string& params, const std::string& more = "", int expected_code = 0) {
    return records_of({.plugin = "decoder", .params = params, .measure = "warmup = 0\nsteps = 1", .run = more},
                      expected_code);
  }
};

// The shape of tests/data/decoder.
const std::string reference_params =
    "d_model = 48\nd_ff = 112\nlayers = 2\nheads = 3\nvocab_size = 97\nbatch_size = 2\ncontext_length = 21\nlr = 1e-2\n"
    "weights = \"" +
    decoder_data + "weights.safetensors" + "\"\ninputs = \"" + decoder_data + "inputs.safetensors" + "\"\n";

double worst_error(const SafetensorsReader& got, const std::string& prefix) {
  return worst_decoder_error(prefix, [&](const std::string& name, const std::vector<std::int64_t>& dims) {
    EXPECT_EQ(got.at(name).dims, dims) << name;
    return floats_of(got, name);
  });
}

TEST_F(Decoder, TheDumpOfOneStepEqualsPyTorch) {
  const auto records = run_cases(reference_params + "dump = \"step.safetensors\"\npass = \"forward_backward\"");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["verify"]["status"], "ok");
  EXPECT_FALSE(records[0]["algorithms"].empty()) << "what runs its products";
  for (const auto& [product, algorithm] : records[0]["algorithms"].items()) {
    EXPECT_TRUE(product.starts_with("matmul ")) << product;
    EXPECT_TRUE(algorithm.get<std::string>().starts_with("oneDNN ")) << algorithm;
  }
  const SafetensorsReader dump(run_folder() / "step.safetensors");
  EXPECT_EQ(dump.at("logits").dims, (std::vector<std::int64_t>{2, 21, 97}));
  for (const char* what : {"logits", "loss", "grad."}) EXPECT_LE(worst_error(dump, what), 1e-5) << what;
}

TEST_F(Decoder, TheDumpOfThreeStepsEqualsPyTorch) {
  run_cases(reference_params + "dump = \"step.safetensors\"\npass = \"train_step\"",
            "[[sweep.zip]]\n\"measure.steps\" = [3]\n");
  const SafetensorsReader dump(run_folder() / "step.safetensors");
  EXPECT_LE(worst_error(dump, "weight."), 1e-5);
}

// The shape of tests/data/decoder_grouped: grouped queries, biases and tied embeddings, by the names of published
// files.
const std::string grouped_data = reference_folder("decoder_grouped");
const std::string grouped_params =
    "d_model = 48\nd_ff = 112\nlayers = 2\nheads = 6\nkv_heads = 2\nqkv_bias = true\ntied_embeddings = true\n"
    "rope_theta = 1e6\nnorm_eps = 1e-6\nvocab_size = 97\ncontext_length = 21\nlr = 1e-4\npass = \"train_step\"\n"
    "weights = \"" +
    grouped_data + "published.safetensors" + "\"\ninputs = \"" + grouped_data + "inputs.safetensors" + "\"\n";

TEST_F(Decoder, PublishedWeightsAreTrainedInChunksOfTheLossAsByPyTorch) {
  const auto records = run_cases(grouped_params + "batch_size = 2\nloss_chunks = 3\ndump = \"step.safetensors\"\n",
                                 "[[sweep.zip]]\n\"measure.steps\" = [3]\n");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["verify"]["status"], "ok") << records[0]["verify"];
  const SafetensorsReader dump(run_folder() / "step.safetensors");
  EXPECT_EQ(dump.at("logits").dims, (std::vector<std::int64_t>{2, 21, 97}));
  EXPECT_LE(worst_reference_error("decoder_grouped", "weight.",
                                  [&](const std::string& name, const auto&) { return floats_of(dump, name); }),
            1e-5);
}

// Each micro-batch has one of the two sequences, of which one has a label that is left out.
TEST_F(Decoder, MicroBatchesCountAllTokensOfAnUpdate) {
  const auto records = run_cases(grouped_params + "batch_size = 1\naccumulation_steps = 2\n",
                                 "[sweep]\nexecution = [\"graph\", \"eager\"]\n\"measure.prepare\" = [true, false]\n");
  ASSERT_EQ(records.size(), 4u);
  const double expected =
      static_cast<double>(floats_of(SafetensorsReader(grouped_data + "expected.safetensors"), "loss")[0]);
  for (const json& r : records) {
    EXPECT_EQ(r["verify"]["status"], "ok") << r["axes"] << r["verify"];
    EXPECT_EQ(r["work"]["items"], 42);
    EXPECT_NEAR(r["metrics"]["loss"]["value"].get<double>(), expected, 1e-5 * expected);
  }
  const auto refused =
      run_cases(grouped_params + "batch_size = 1\naccumulation_steps = 2\ndump = \"x\"\n", "allow = [\"failed\"]\n");
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_NE(refused[0]["reason"].get<std::string>().find("accumulation_steps = 1"), std::string::npos);
}

TEST_F(Decoder, ASizeOfAPublicModelSetsAllThatIsItsOwn) {
  const auto records = run_cases(
      "size = \"qwen2.5-0.5b\"\nlayers = 1\nvocab_size = 500\nd_ff = 256\nbatch_size = 2\ncontext_length = 16\n"
      "loss_chunks = 2");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["verify"]["status"], "ok") << records[0]["verify"];
  const json& params = records[0]["params"];
  EXPECT_EQ(params["d_model"], 896);
  EXPECT_EQ(params["kv_heads"], 2);
  EXPECT_EQ(params["qkv_bias"], true);
  EXPECT_EQ(params["tied_embeddings"], true);
  EXPECT_EQ(params["rope_theta"], 1e6);
  EXPECT_EQ(params["norm_eps"], 1e-6);
  EXPECT_EQ(params["vocab_size"], 500) << "what the experiment says comes first";
}

// The figures of Llama 3.2 1B, of which the experiment takes a part.
TEST_F(Decoder, APublishedConfigurationStandsInThePlaceOfASize) {
  const auto write = [&](const char* more) {
    std::ofstream(folder() / "config.json")
        << R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 128, "head_dim": 64,
               "intermediate_size": 8192, "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 16,
               "vocab_size": 128256, "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": true,
               "hidden_act": "silu", "torch_dtype": "bfloat16", "rope_scaling": {"rope_type": "llama3", "factor": 32.0,
               "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192})"
        << more << "}";
  };
  const std::string params =
      "config_file = \"config.json\"\nd_ff = 64\nheads = 2\nkv_heads = 1\nlayers = 1\nvocab_size = 97\n"
      "tied_embeddings = false\nbatch_size = 2\ncontext_length = 16\n";
  write("");
  const auto records = run_cases(params);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["verify"]["status"], "ok") << records[0]["verify"];
  const json& found = records[0]["params"];
  EXPECT_EQ(found["size"], "config_file");
  EXPECT_EQ(found["d_model"], 128);
  EXPECT_EQ(found["head_dim"], 64);
  EXPECT_EQ(found["rope_scaling"], "llama3");
  EXPECT_EQ(found["rope_original_context"], 8192);
  EXPECT_EQ(found["tied_embeddings"], false) << "what the experiment says comes first";
  EXPECT_TRUE(records[0]["files"].contains("input.config_file")) << records[0]["files"];
  write(R"(, "mlp_bias": true)");
  const RunResult refused = run_experiment({.plugin = "decoder", .params = params});
  EXPECT_NE(refused.exit.code, 0);
  EXPECT_PRED2(contains, refused.output, "\"mlp_bias\" is true; expected false");
}

// DeepSeek-V2's configuration of a dense model: latents of queries, too, and a rotation of another magnitude.
TEST_F(Decoder, APublishedConfigurationMayHaveLatentAttention) {
  std::ofstream(folder() / "config.json")
      << R"({"architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "hidden_act": "silu",
             "hidden_size": 32, "intermediate_size": 48, "kv_lora_rank": 16, "n_routed_experts": null,
             "num_attention_heads": 2, "num_hidden_layers": 1, "num_key_value_heads": 2, "q_lora_rank": 12,
             "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "rms_norm_eps": 1e-06, "rope_theta": 10000,
             "rope_scaling": {"factor": 4, "mscale": 1.0, "mscale_all_dim": 0.707,
             "original_max_position_embeddings": 64, "type": "yarn"}, "tie_word_embeddings": false,
             "v_head_dim": 6, "vocab_size": 97})";
  const auto records = run_cases("config_file = \"config.json\"\nbatch_size = 2\ncontext_length = 16\n");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["verify"]["status"], "ok") << records[0]["verify"];
  EXPECT_EQ(records[0]["params"]["q_lora_rank"], 12);
  EXPECT_NEAR(records[0]["params"]["rope_attention_factor"].get<double>(), 1.13863 / 1.09801, 1e-5);
}

TEST_F(Decoder, HeadsOfAWidthOfTheirOwnAndTheirNormsAreVerified) {
  const auto records = run_cases(
      "d_model = 48\nd_ff = 80\nlayers = 2\nheads = 4\nkv_heads = 2\nhead_dim = 24\nvocab_size = 96\nbatch_size = 2\n"
      "qk_norm = true\ncontext_length = 16\npass = \"train_step\"",
      "[sweep]\nprecision = [\"fp32\", \"bf16\"]\nexecution = [\"graph\", \"eager\"]\n");
  ASSERT_EQ(records.size(), 4u);
  for (const json& r : records) EXPECT_EQ(r["verify"]["status"], "ok") << r["axes"] << r["verify"];
}

// All other tests make the trial with small matrices.
TEST_F(Decoder, ThePeakIsFoundByTrialWithLargeMatricesUnlessItIsToBeBrief) {
  const std::string small =
      "d_model = 32\nd_ff = 64\nlayers = 1\nheads = 2\nvocab_size = 96\nbatch_size = 1\ncontext_length = 16";
  for (const auto& [wanted, said] : {std::pair{"", "products 768 wide, and of copies of 32 MiB"},
                                     std::pair{"brief", "products 256 wide, and of copies of 1 MiB"}}) {
    set_variable("ASSAY_PEAK_TRIAL", wanted);
    const auto records = run_cases(small);
    ASSERT_EQ(records.size(), 1u);
    const json& measured = records[0]["efficiency"]["measured"];
    EXPECT_PRED2(contains, measured["text"], said);
    EXPECT_GT(measured["gflop_per_s"].get<double>(), 0);
    EXPECT_GT(measured["gbytes_per_s"].get<double>(), 0);
  }
}

// One token sees no other: the true gradients of queries and keys are 0, and two right ones are two roundings of it.
// Of one token each, where no query or key has a gradient, and one as long as the sequence, with its 780 pairs.
TEST_F(Decoder, PackedDocumentsAreVerified) {
  const auto records = run_cases("size = \"tiny\"\nvocab_size = 300\nbatch_size = 2\ncontext_length = 39\n",
                                 "[sweep]\ndocument_tokens = [1, 39]\nattention = [\"flash\", \"naive\"]");
  ASSERT_EQ(records.size(), 4u);
  for (const auto& r : records) {
    EXPECT_EQ(r["verify"]["status"], "ok") << r["reason"];
    const bool one = r["params"]["document_tokens"] == 1;
    EXPECT_DOUBLE_EQ(r["metrics"]["attention_pair_share"]["value"].get<double>(), one ? 39.0 / 780 : 1);
  }
}

TEST_F(Decoder, AContextOfOneTokenIsRight) {
  for (const char* pass : {"forward", "forward_backward", "train_step"})
    for (const char* precision : {"fp32", "bf16", "bf16_pure"}) {
      const auto records =
          run_cases("size = \"tiny\"\nvocab_size = 300\nbatch_size = 3\ncontext_length = 1\npass = \"" +
                    std::string(pass) + "\"\nprecision = \"" + precision + "\"");
      ASSERT_EQ(records.size(), 1u);
      EXPECT_EQ(records[0]["verify"]["status"], "ok") << records[0]["reason"];
      EXPECT_PRED2(contains, records[0]["verify"]["text"],
                   "1 steps counted by what they have done, the first 1 repeated");
    }
}

// The other attention makes its scores in parts there, and is no tiled one.
TEST_F(Decoder, ALongContextIsHeldAgainstAttentionByItsDefinition) {
  const auto records = run_cases(
      "d_model = 32\nd_ff = 64\nlayers = 1\nheads = 2\nvocab_size = 96\nbatch_size = 1\ncontext_length = 1100");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["verify"]["status"], "ok") << records[0]["reason"];
  EXPECT_PRED2(contains, records[0]["verify"]["text"], "fused path against the unfused one");
}

// All sizes: Decoder.ParameterCountsOfAllSizes of models_test.
TEST_F(Decoder, SmallCountsItsParameters) {
  const auto records = run_cases("batch_size = 1\ncontext_length = 16\npass = \"forward\"");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["metrics"]["parameters"]["value"], 128'625'408);
}

TEST_F(Decoder, MemoryByKindIsTheFormula) {
  const auto records = run_cases("size = \"tiny\"\nbatch_size = 2\ncontext_length = 64\npass = \"train_step\"");
  ASSERT_EQ(records.size(), 1u);
  models::DecoderConfig c;
  c.batch_size = 2, c.context_length = 64, c.d_model = 128, c.d_ff = 512, c.layers = 2, c.heads = 4;
  train::ParameterSet set(c.precision);
  const auto ids = models::add_decoder_parameters(set, c);
  const models::DecoderModel model(c, set, ids);
  // 2 V d + d + N (4 d^2 + 3 d ff + 2 d), all multiples of 64: no padding.
  const double parameters = 2.0 * 10'000 * 128 + 128 + 2 * (4.0 * 128 * 128 + 3.0 * 128 * 512 + 2.0 * 128);
  const json& peak = records[0]["memory"]["peak_mib"];
  const double mib = 1024 * 1024;
  EXPECT_DOUBLE_EQ(peak["parameters"].get<double>() * mib, 4 * parameters);
  EXPECT_DOUBLE_EQ(peak["gradients"].get<double>() * mib, 4 * parameters);
  EXPECT_DOUBLE_EQ(peak["optimizer_state"].get<double>() * mib, 8 * parameters + 512);
  EXPECT_DOUBLE_EQ(records[0]["memory"]["moments"][0]["current_mib"]["activations"].get<double>() * mib,
                   static_cast<double>(model.activation_bytes()));
  EXPECT_DOUBLE_EQ(peak["data"].get<double>() * mib, 2.0 * 2 * 64 * 8);
}

TEST_F(Decoder, ASizeIsResolvedInParametersAndSummary) {
  const auto records = run_cases("size = \"tiny\"\nheads = 2\nbatch_size = 1\ncontext_length = 16\npass = \"forward\"");
  ASSERT_EQ(records.size(), 1u);
  const json& params = records[0]["params"];
  EXPECT_EQ(params["d_model"], 128);
  EXPECT_EQ(params["d_ff"], 512);
  EXPECT_EQ(params["layers"], 2);
  EXPECT_EQ(params["heads"], 2);
  for (const auto& entry : fs::directory_iterator(run_folder()))
    if (entry.path().filename().string().starts_with("bench_")) {
      const json config = json::parse(std::ifstream(entry.path()))["config"]["workload"]["params"];
      EXPECT_EQ(config["d_model"], 128);
      EXPECT_EQ(config["heads"], 2);
      return;
    }
  ADD_FAILURE() << "no summary";
}

// A cold start takes the same steps, and pays in the first of them for what set-up does otherwise.
TEST_F(Decoder, AColdStartTakesTheSameSteps) {
  const auto records =
      records_of({.plugin = "decoder",
                  .params = "size = \"tiny\"\nbatch_size = 2\ncontext_length = 32\npass = \"train_step\"",
                  .measure = "warmup = 0\nsteps = 3",
                  .run = "[sweep]\nexecution = [\"eager\", \"graph\"]\n\"measure.prepare\" = [true, false]\n"});
  ASSERT_EQ(records.size(), 4u);
  for (std::size_t i : {0u, 2u}) {
    const json &warm = records[i], &cold = records[i + 1];
    EXPECT_EQ(warm["metrics"]["loss"]["value"], cold["metrics"]["loss"]["value"]);
    EXPECT_EQ(warm["metrics"]["live_activations"]["value"], cold["metrics"]["live_activations"]["value"]);
    EXPECT_EQ(cold["verify"]["status"], "ok");
    EXPECT_EQ(warm["memory"]["peak_mib"], cold["memory"]["peak_mib"]);
    const auto after_setup = [](const json& r) { return r["memory"]["moments"][0]["current_mib"]; };
    EXPECT_TRUE(after_setup(warm).contains("gradients"));
    EXPECT_TRUE(after_setup(cold).contains("parameters"));
    for (const char* kind : {"gradients", "activations", "optimizer_state"})
      EXPECT_FALSE(after_setup(cold).contains(kind)) << kind;
    EXPECT_NE(cold["notes"].dump().find("prepare = false"), std::string::npos);
    EXPECT_EQ(warm["notes"].dump().find("prepare = false"), std::string::npos);
    for (const json& r : {warm, cold})
      EXPECT_EQ(r["notes"].dump().find("device memory"), std::string::npos) << r["notes"];
  }
}

TEST_F(Decoder, EveryPrecisionExecutionAndAttentionIsVerified) {
  const auto records =
      run_cases("size = \"tiny\"\nvocab_size = 300\nbatch_size = 2\ncontext_length = 48\npass = \"train_step\"",
                "[sweep]\nprecision = [\"fp32\", \"bf16\", \"bf16_pure\"]\nexecution = [\"eager\", \"graph\"]\n"
                "attention = [\"naive\", \"flash\"]\nactivation_checkpointing = [false, true]\n");
  ASSERT_EQ(records.size(), 24u);
  for (const json& r : records) EXPECT_EQ(r["verify"]["status"], "ok") << r["axes"] << r["verify"]["text"];
}

TEST_F(Decoder, APrecisionThatTheDeviceLacksIsUnsupported) {
  const auto records = run_cases("size = \"tiny\"\nprecision = \"tf32\"", "allow = [\"unsupported\"]\n");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["status"], "unsupported");
  EXPECT_NE(records[0]["reason"].get<std::string>().find("tf32"), std::string::npos);
}

TEST_F(Decoder, AModelThatCannotFitIsOom) {
  const auto records = run_cases("size = \"2.7B\"\nlayers = 4096\npass = \"train_step\"", "allow = [\"oom\"]\n");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["status"], "oom");
  EXPECT_EQ(records[0]["stage"], "setup");
  EXPECT_NE(records[0]["reason"].get<std::string>().find("parameters"), std::string::npos);
}

TEST_F(Decoder, WeightsThatDoNotFitAreNamed) {
  const auto records = run_cases(reference_params + "d_ff = 120", "", 2);
  EXPECT_TRUE(records.empty());  // d_ff twice: a mistake in the file
  std::string other = reference_params;
  other.replace(other.find("d_ff = 112"), 10, "d_ff = 120");
  const auto failed = run_cases(other, "", 1);
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0]["status"], "failed");
  const std::string reason = failed[0]["reason"];
  EXPECT_NE(reason.find("'layers.1.ffn.w1.weight' has shape [112, 48], expected [120, 48]"), std::string::npos)
      << reason;
}

// A model without biases, whose file has some: names of the file, all of them.
TEST_F(Decoder, PublishedWeightsThatDoNotFitAreNamed) {
  std::string other = grouped_params + "batch_size = 2\n";
  other.replace(other.find("qkv_bias = true"), 15, "qkv_bias = false");
  other.replace(other.find("tied_embeddings = true"), 22, "tied_embeddings = false");
  const std::string stored = grouped_data + "published.safetensors", part = "model-00001-of-00002.safetensors";
  std::filesystem::copy_file(stored, folder() / part);
  other.replace(other.find(stored), stored.size(), part);
  const auto failed = run_cases(other, "", 1);
  ASSERT_EQ(failed.size(), 1u);
  const std::string reason = failed[0]["reason"];
  EXPECT_NE(reason.find("tensor 'lm_head.weight' is missing"), std::string::npos) << reason;
  EXPECT_NE(reason.find("one of several by its name, and expected is one with the whole model"), std::string::npos);
  EXPECT_NE(reason.find("'model.layers.0.self_attn.k_proj.bias' is not a parameter"), std::string::npos) << reason;
}

// Two files and their index, each of which is an input of the case.
TEST_F(Decoder, PublishedWeightsInSeveralFilesAreLoaded) {
  const std::string stored = grouped_data + "published.safetensors", index = "model.safetensors.index.json";
  const SafetensorsReader whole(stored);
  json map;
  std::map<std::string, std::vector<std::string>> by_file;
  for (const auto& [name, tensor] : whole.tensors()) {
    const std::string file = "model-0000" + std::to_string(1 + map.size() % 2) + "-of-00002.safetensors";
    map[name] = file;
    by_file[file].push_back(name);
  }
  for (const auto& [file, names] : by_file) {
    train::SafetensorsWriter writer(folder() / file);
    for (const std::string& name : names) writer.declare(name, whole.at(name).dtype, whole.at(name).dims);
    for (const std::string& name : names) writer.write(name, whole.read(name).data(), whole.at(name).bytes);
    writer.finish();
  }
  std::ofstream(folder() / index) << json{{"weight_map", map}};
  std::string params = grouped_params + "batch_size = 2\n";
  params.replace(params.find(stored), stored.size(), index);
  const auto records = run_cases(params);
  ASSERT_EQ(records.size(), 1u);
  const double expected =
      static_cast<double>(floats_of(SafetensorsReader(grouped_data + "expected.safetensors"), "loss")[0]);
  EXPECT_NEAR(records[0]["metrics"]["loss"]["value"].get<double>(), expected, 1e-5 * expected);
  for (const char* input : {"input.weights", "input.weights/model-00001-of-00002.safetensors",
                            "input.weights/model-00002-of-00002.safetensors"})
    EXPECT_TRUE(records[0]["files"].contains(input)) << records[0]["files"];
  const std::string second = "model-00002-of-00002.safetensors", broken = by_file[second].front();
  std::fstream bytes(folder() / second, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(static_cast<std::streamoff>(SafetensorsReader(folder() / second).at(broken).offset) + 3 * 4);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  bytes.write(reinterpret_cast<const char*>(&nan), 4);
  bytes.close();
  const auto not_finite = run_cases(params, "", 1);
  ASSERT_EQ(not_finite.size(), 1u);
  EXPECT_PRED2(contains, not_finite[0]["reason"], second + ": tensor '" + broken + "' has nan as element 3");
  fs::remove(folder() / "model-00002-of-00002.safetensors");
  const RunResult refused = run_experiment({.plugin = "decoder", .params = params});
  EXPECT_NE(refused.exit.code, 0);
  EXPECT_PRED2(contains, refused.output, "it names 'model-00002-of-00002.safetensors'");
  EXPECT_PRED2(contains, refused.output, "expected all 2 files beside the index");
}

TEST_F(Decoder, HeadsThatDoNotDivideAreNamed) {
  run_cases("size = \"tiny\"\nheads = 7", "", 2);
  EXPECT_TRUE(contains(output(),
                       "x.toml:7:1: d_model 128 is not a multiple of heads 7 (what the experiment does not set is of "
                       "size = \"tiny\")\n1 mistake; nothing was started"))
      << output();
}

TEST_F(Decoder, SettingsThatHaveNoEffectOrNoPlaceAreNamed) {
  struct Refused {
    std::string params, words;
  };
  const std::string beside = "size = \"tiny\"\nupdate = \"beside_backward\"\n", step = "pass = \"train_step\"\n";
  for (const auto& [params, words] : std::to_array<Refused>(
           {{beside, "needs a training step; expected pass = \"train_step\""},
            {beside + step + "side_lane = true", "expected side_lane = false"},
            {"size = \"tiny\"\nupdate = \"in_products\"\n",
             "is of experts' products; expected a model with experts, or update = \"after_backward\""},
            {"size = \"tiny\"\nleave_multiprocessors = 8\n" + step, "set update = \"beside_backward\""},
            {"size = \"tiny\"\nexecution = \"eager\"\nkeep_outputs = true", "keep_outputs needs fused operations"},
            {"size = \"tiny\"\ndocument_lengths = \"log_normal\"", "set document_tokens, their mean length"},
            {"size = \"tiny\"\ncontext_length = 16\ndocument_tokens = 17", "is longer than a sequence of 16"},
            {"size = \"tiny\"\nlogit_soft_cap = 1e39",
             "logit_soft_cap is 1e+39; expected a number >= 0 and <= 3.4e+38"},
            {"size = \"tiny\"\nkv_lora_rank = 1048576",
             "kv_lora_rank is 1048576; expected an integer >= 0 and <= 65536"},
            {"size = \"tiny\"\nmoments = \"bf16\"", "expected optimizer = \"adamw\" and pass = \"train_step\""}})) {
    run_cases(params, "", 2);
    EXPECT_TRUE(contains(output(), words)) << output();
  }
  const auto records = run_cases(beside + step + "leave_multiprocessors = 8\n");  // a CPU has none, and leaves none
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["verify"]["status"], "ok") << records[0]["verify"];
}

TEST_F(Decoder, AMissingInputFileIsAMistakeWithItsPlace) {
  run_cases("size = \"tiny\"\nweights = \"absent.safetensors\"", "", 2);
  EXPECT_NE(output().find("x.toml:7:"), std::string::npos) << output();
  ASSERT_EQ(mkfifo((folder() / "fifo").c_str(), 0600), 0);
  run_cases("size = \"tiny\"\nweights = \"fifo\"", "", 2);
  EXPECT_TRUE(contains(output(), "is no regular file")) << output();
}

TEST_F(Decoder, AFileOfOtherWeightsIsRefusedInAFewWords) {
  run_cases(reference_params + "dump = \"step.safetensors\"");
  const std::string dump = (folder() / "step.safetensors").string();
  fs::copy_file(run_folder() / "step.safetensors", dump);
  const std::string size =
      "d_model = 48\nd_ff = 112\nlayers = 2\nheads = 3\nvocab_size = 97\nbatch_size = 2\n"
      "context_length = 21\n";
  const auto records = run_cases(size + "weights = \"" + dump + "\"\n", "", 1);
  ASSERT_EQ(records.size(), 1u);
  const std::string reason = records[0]["reason"];
  EXPECT_PRED2(contains, reason, "a workload's `dump` wrote this file");
  EXPECT_PRED2(contains, reason, " more are missing; tensor '");
  EXPECT_PRED2(contains, reason, " more are no parameters of this model");
  EXPECT_LT(reason.size(), 1000u) << reason;
}

// Every experiment that is shipped is valid, and expands.
TEST_F(Decoder, ShippedExperimentsAreValid) {
  int seen = 0;
  for (const auto& entry : fs::directory_iterator(ASSAY_CONFIGS)) {
    if (entry.path().extension() != ".toml") continue;
    ++seen;
    // Not every machine has room for each of them.
    EXPECT_EQ(run({"run", entry.path().string(), "--dry-run", "--set", "run.allow=[\"oom\"]"}).exit.code, 0)
        << output();
  }
  EXPECT_GT(seen, 0);
}

}  // namespace
}  // namespace assay::test
