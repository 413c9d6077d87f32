#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

constexpr std::int64_t d = 48, ff = 80, words = 152, batch = 2, context = 24;

class PipelineParallel : public Sandbox {
 protected:
  std::vector<json> run_cases(const std::string& params, const std::string& sweep) {
    return records_of({.plugin = "pipeline_parallel",
                       .params = "d_model = 48\nd_ff = 80\nheads = 4\nkv_heads = 2\n" +
                                 std::string(contains(params, "vocab_size") ? "" : "vocab_size = 152\n") +
                                 "batch_size = 2\ncontext_length = 24\n" + params,
                       .measure = "warmup = 1\nsteps = 2",
                       .run = "threads = 1\nallow = [\"unsupported\"]",
                       .sweep = sweep});
  }
  void expect_verified(const std::string& params, const std::string& sweep, std::size_t cases) {
    const auto records = run_cases(params, sweep);
    EXPECT_EQ(records.size(), cases);
    for (const json& r : records) {
      SCOPED_TRACE(r["axes"].dump());
      EXPECT_EQ(r["status"], "ok") << r["reason"];
      EXPECT_EQ(r["verify"]["status"], "ok") << r["reason"];
    }
  }
};

// plugins/pipeline_parallel/README.md has the formulas.
TEST_F(PipelineParallel, RanksTrainAsTheWholeModel) {
  constexpr std::int64_t layers = 5, micro_batches = 4;
  constexpr std::int64_t parameters = 2 * words * d + layers * (3 * d * ff + 2 * d * d + 2 * d * (d / 2) + 2 * d) + d;
  const auto records = run_cases("layers = 5\naccumulation_steps = 4\nprecision = \"fp32\"\n",
                                 "\"run.ranks\" = [1, 2, 3]\nactivation_checkpointing = [false, true]");
  ASSERT_EQ(records.size(), 6u);
  for (const json& r : records) {
    SCOPED_TRACE(r["axes"].dump());
    ASSERT_EQ(r["status"], "ok") << r["reason"];
    EXPECT_EQ(r["verify"]["status"], "ok") << r["reason"];
    for (const char* checked : {"at the start, each rank's stages against the whole model: loss differs by",
                                "after 3 steps, each rank's stages against the whole model: loss differs by"})
      EXPECT_PRED2(contains, r["verify"]["text"], checked);
    EXPECT_EQ(metric(r, "parameters"), parameters);
    const std::int64_t ranks = r["axes"]["run.ranks"];
    EXPECT_DOUBLE_EQ(metric(r, "bubble_formula"), static_cast<double>(ranks - 1) / (micro_batches + ranks - 1));
    EXPECT_NEAR(r["rates"]["items_per_s"].get<double>() * r["phases"]["step"]["mean_ms"].get<double>() / 1000,
                micro_batches * batch * context, 0.02 * micro_batches * batch * context);
    if (ranks == 1) continue;
    EXPECT_PRED2(contains, r["verify"]["text"], "weights of all stages identical to the bit");
    if (ranks > 2) continue;
    // Each micro-batch goes forward once and backward once.
    EXPECT_EQ(metric(r, "messages"), 2 * micro_batches);
    EXPECT_EQ(metric(r, "communication_bytes"), 2 * micro_batches * batch * context * d * 4);
    EXPECT_EQ(metric(r, "sent_bytes"), micro_batches * batch * context * d * 4);
  }
}

TEST_F(PipelineParallel, InterleavedStagesAreVerified) {
  expect_verified("layers = 9\nprecision = \"fp32\"\n",
                  "[[sweep.zip]]\n\"run.ranks\" = [2, 2, 3, 4]\nvirtual_stages = [2, 4, 2, 2]\n"
                  "accumulation_steps = [2, 4, 6, 4]\nbalance = [\"work\", \"work\", \"layers\", \"work\"]\n"
                  "receives = [\"beside_work\", \"between_works\", \"beside_work\", \"between_works\"]",
                  4);
}

// Fewer micro-batches than ranks, and one; windows and norms of the layers of a later stage.
TEST_F(PipelineParallel, ShortPipelinesAndLayersThatDifferAreVerified) {
  expect_verified(
      "layers = 6\nprecision = \"fp32\"\nreceives = \"between_works\"\nsliding_window = 5\nfull_attention_every = "
      "3\nqk_norm = true\n"
      "qkv_bias = true\nrope_local_theta = 100\n",
      "\"run.ranks\" = [2, 4]\naccumulation_steps = [1, 3]", 4);
}

// Ranks 0 and 1 are the stages of one replica of two, ranks 2 and 3 of the other one; and each rank a whole replica.
TEST_F(PipelineParallel, ReplicasAverageTheGradientsOfTheirBatches) {
  constexpr std::int64_t micro_batches = 4;
  std::vector<json> records =
      run_cases("layers = 4\naccumulation_steps = 4\nprecision = \"fp32\"\n", "\"run.ranks\" = [4]\nreplicas = [2, 4]");
  for (json& r : run_cases("layers = 5\naccumulation_steps = 4\nprecision = \"bf16_pure\"\nvirtual_stages = 2\n",
                           "\"run.ranks\" = [4]\nreplicas = [2]"))
    records.push_back(std::move(r));
  ASSERT_EQ(records.size(), 3u);
  for (const json& r : records) {
    SCOPED_TRACE(r["axes"].dump());
    ASSERT_EQ(r["status"], "ok") << r["reason"];
    EXPECT_EQ(r["verify"]["status"], "ok") << r["reason"];
    const std::int64_t replicas = r["axes"]["replicas"];
    EXPECT_PRED2(contains, r["verify"]["text"],
                 "weights of " + std::to_string(replicas) + " replicas identical to the bit after 3 steps");
    EXPECT_EQ(metric(r, "replica_messages"), 1);
    const auto tokens = static_cast<double>(replicas * micro_batches * batch * context);
    EXPECT_NEAR(r["rates"]["items_per_s"].get<double>() * r["phases"]["step"]["mean_ms"].get<double>() / 1000, tokens,
                0.02 * tokens);
    if (r["params"]["precision"] != "fp32") continue;
    const std::int64_t sent = replicas == 4 ? 0 : 2 * micro_batches;
    EXPECT_EQ(metric(r, "messages"), sent + 1);
    EXPECT_EQ(metric(r, "communication_bytes"),
              sent * batch * context * d * 4 + metric(r, "replica_communication_bytes"));
    EXPECT_DOUBLE_EQ(metric(r, "bubble_formula"), replicas == 4 ? 0.0 : 1.0 / (micro_batches + 1));
  }
}

TEST_F(PipelineParallel, BothFormatsOfBf16AndTheLossInChunksAreVerified) {
  expect_verified("layers = 4\naccumulation_steps = 4\nloss_chunks = 3\nexecution = \"graph\"\n",
                  "\"run.ranks\" = [2]\nprecision = [\"bf16\", \"bf16_pure\"]\nvirtual_stages = [1, 2]", 4);
}

TEST_F(PipelineParallel, BlocksOfGemmaAreVerified) {
  expect_verified(
      "layers = 4\naccumulation_steps = 2\npost_norms = true\nnorms_from_one = true\nscaled_embeddings = true\n"
      "gate_activation = \"gelu_tanh\"\nlogit_soft_cap = 5\nkeep_outputs = true\noptimizer = \"sgd\"\n",
      "\"run.ranks\" = [2]\nprecision = [\"fp32\"]", 1);
}

// A head of about five layers, on three ranks and four: those before the last one share almost all layers.
TEST_F(PipelineParallel, StagesOfEqualWorkAndOfEqualLayersAreVerified) {
  const auto records = run_cases("layers = 7\naccumulation_steps = 4\nprecision = \"fp32\"\nvocab_size = 2200\n",
                                 "\"run.ranks\" = [3, 4]\nbalance = [\"work\", \"layers\"]\n"
                                 "receives = [\"beside_work\", \"between_works\"]");
  ASSERT_EQ(records.size(), 8u);
  constexpr double layer = 3 * d * ff + 2 * d * d + 2 * d * (d / 2) + context * d;  // scores and their sums
  constexpr double head = d * 2200 / layer;
  for (const json& r : records) {
    SCOPED_TRACE(r["axes"].dump());
    ASSERT_EQ(r["status"], "ok") << r["reason"];
    EXPECT_EQ(r["verify"]["status"], "ok") << r["reason"];
    const std::int64_t ranks = r["axes"]["run.ranks"];
    const bool by_work = r["axes"]["balance"] == "work";
    std::vector<double> layers;
    for (const json& rank : r.at("by_rank")) layers.push_back(rank.at("metrics").at("stage_layers"));
    EXPECT_EQ(layers, ranks == 3 ? (by_work ? std::vector<double>{3, 3, 1} : std::vector<double>{3, 2, 2})
                                 : (by_work ? std::vector<double>{2, 2, 2, 1} : std::vector<double>{2, 2, 2, 1}));
    EXPECT_NEAR(metric(r, "head_layers"), head, 1e-9);
    const double most = layers.back() + head;
    EXPECT_NEAR(metric(r, "bubble_by_work"),
                1 - 4 * (7 + head) / static_cast<double>(ranks) / (4 * most + 7 + head - most), 1e-9);
  }
}

// A rank of the first stages keeps more micro-batches than one of the last, and each the memory of its own layers.
TEST_F(PipelineParallel, StatesLayersAndKeptMicroBatchesOfRanks) {
  const auto records = run_cases("layers = 5\naccumulation_steps = 8\n", "\"run.ranks\" = [2]");
  ASSERT_EQ(records.size(), 1u);
  ASSERT_EQ(records[0]["status"], "ok") << records[0]["reason"];
  std::vector<double> kept, layers;
  for (const json& rank : records[0].at("by_rank")) {
    kept.push_back(rank.at("metrics").at("kept_micro_batches"));
    layers.push_back(rank.at("metrics").at("stage_layers"));
  }
  EXPECT_EQ(kept, (std::vector<double>{2, 1}));
  EXPECT_EQ(layers, (std::vector<double>{3, 2})) << "the last rank has the head";
}

TEST_F(PipelineParallel, OffersNoOptimizerThatItRefuses) {
  const RunResult described = run({"describe", "pipeline_parallel"});
  EXPECT_EQ(described.exit.code, 0) << described.output;
  EXPECT_PRED2(contains, described.output, "(adamw | sgd)");
  EXPECT_FALSE(contains(described.output, "muon_")) << described.output;
  const RunResult refused = run_experiment({.plugin = "pipeline_parallel", .params = "optimizer = \"muon\"\n"});
  EXPECT_EQ(refused.exit.code, 2) << refused.output;
  EXPECT_PRED2(contains, refused.output, "muon");
}

TEST_F(PipelineParallel, RefusesWhatStagesDoNotServe) {
  const auto refused = [&](const std::string& params, const char* text) {
    const auto records = run_cases(params, "\"run.ranks\" = [2]");
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0]["status"], "unsupported");
    EXPECT_PRED2(contains, records[0]["reason"], text);
  };
  refused("layers = 4\ntied_embeddings = true\n", "expected tied_embeddings = false");
  refused("layers = 1\n",
          "1 layer is fewer than the 2 stages, each of which has one at least; expected layers of at "
          "least 2, or fewer ranks");
  refused("layers = 3\nvirtual_stages = 2\naccumulation_steps = 2\n", "expected layers of at least 4, fewer virtual");
  refused("layers = 4\nvirtual_stages = 2\naccumulation_steps = 3\n", "expected accumulation_steps = 2 or 4 in place");
}

}  // namespace
}  // namespace assay::test
