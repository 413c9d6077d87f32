#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class ContextParallel : public Sandbox {
 protected:
  std::vector<json> run_cases(const std::string& params, const std::string& sweep) {
    return records_of(
        {.plugin = "context_parallel",
         .params = "d_model = 48\nd_ff = 80\nheads = 4\nkv_heads = 2\nlayers = 3\nvocab_size = 152\n" + params,
         .measure = "warmup = 1\nsteps = 2",
         .run = "threads = 1\nallow = [\"unsupported\"]",
         .sweep = sweep});
  }
};

// plugins/context_parallel/README.md has the formulas. Gradients are one bucket here.
TEST_F(ContextParallel, RanksTrainAsTheWholeModelOnWholeSequences) {
  constexpr std::int64_t d = 48, kv_width = 24, ff = 80, layers = 3, words = 152, batch = 2, context = 48;
  constexpr std::int64_t parameters = 2 * words * d + layers * (3 * d * ff + 2 * d * d + 2 * d * kv_width + 2 * d) + d;
  constexpr std::int64_t arena = parameters + (2 * layers + 1) * (64 - d);  // each norm begins a line of 64
  const auto records = run_cases("batch_size = 2\ncontext_length = 48\nprecision = \"fp32\"\n",
                                 "\"run.ranks\" = [2, 4]\nactivation_checkpointing = [false, true]");
  ASSERT_EQ(records.size(), 4u);
  for (const json& r : records) {
    SCOPED_TRACE(r["axes"].dump());
    ASSERT_EQ(r["status"], "ok") << r["reason"];
    EXPECT_EQ(r["verify"]["status"], "ok") << r["reason"];
    for (const char* checked :
         {"at the start, the ranks' sums against the whole model: loss differs by",
          "after 3 steps, the ranks' sums against the whole model: loss differs by",
          "gradients of all ranks identical to the bit", "weights of all ranks identical to the bit"})
      EXPECT_PRED2(contains, r["verify"]["text"], checked);
    EXPECT_EQ(metric(r, "parameters"), parameters);
    // Keys and values are gathered forward and backward, and their gradients summed.
    EXPECT_EQ(metric(r, "messages"), 3 * layers + 1);
    EXPECT_EQ(metric(r, "communication_bytes"), 4 * (3 * layers * batch * context * 2 * kv_width + arena));
    // Of one batch, however many ranks work on it.
    EXPECT_NEAR(r["rates"]["items_per_s"].get<double>() * r["phases"]["step"]["mean_ms"].get<double>() / 1000,
                batch * context, 0.02 * batch * context);
  }
}

// Ranks 0 and 1 share the sequences of one replica of two, ranks 2 and 3 those of the other one. One sum of gradients
// is over all four.
TEST_F(ContextParallel, ReplicasTrainOnBatchesOfTheirOwn) {
  constexpr std::int64_t d = 48, kv_width = 24, ff = 80, layers = 3, words = 152, batch = 2, context = 48;
  constexpr std::int64_t parameters = 2 * words * d + layers * (3 * d * ff + 2 * d * d + 2 * d * kv_width + 2 * d) + d;
  constexpr std::int64_t arena = parameters + (2 * layers + 1) * (64 - d);  // each norm begins a line of 64
  std::vector<json> records =
      run_cases("batch_size = 2\ncontext_length = 48\nprecision = \"fp32\"\n",
                "\"run.ranks\" = [4]\nreplicas = [2, 4]\nactivation_checkpointing = [false, true]");
  for (json& r : run_cases("batch_size = 2\ncontext_length = 48\nprecision = \"bf16\"\nexecution = \"graph\"\n"
                           "bucket_mb = 0.01\n",
                           "\"run.ranks\" = [4]\nreplicas = [2]\noptimizer = [\"adamw\", \"sgd\"]"))
    records.push_back(std::move(r));
  ASSERT_EQ(records.size(), 6u);
  for (const json& r : records) {
    SCOPED_TRACE(r["axes"].dump());
    ASSERT_EQ(r["status"], "ok") << r["reason"];
    EXPECT_EQ(r["verify"]["status"], "ok") << r["reason"];
    const std::int64_t replicas = r["axes"]["replicas"];
    const std::string of_replicas = "weights of " + std::to_string(replicas) + " replicas identical to the bit ";
    for (const std::string& checked :
         {std::string("after 3 steps, the ranks' sums against the whole model: loss differs by"),
          std::string("gradients of all ranks identical to the bit"),
          std::string("weights of all ranks identical to the bit"), of_replicas + "after 3 steps",
          of_replicas + "after the measured steps"})
      EXPECT_PRED2(contains, r["verify"]["text"], checked);
    EXPECT_NEAR(r["rates"]["items_per_s"].get<double>() * r["phases"]["step"]["mean_ms"].get<double>() / 1000,
                static_cast<double>(replicas * batch * context),
                0.02 * static_cast<double>(replicas * batch * context));
    if (r["params"]["precision"] == "bf16") {
      EXPECT_GT(metric(r, "replica_messages"), 1);
      EXPECT_EQ(metric(r, "replica_communication_bytes"), 2 * arena);
      continue;
    }
    const std::int64_t exchanges = replicas == 4 ? 0 : 3 * layers;  // of keys and values, between two ranks
    EXPECT_EQ(metric(r, "replica_messages"), 1);
    EXPECT_EQ(metric(r, "replica_communication_bytes"), 4 * arena);
    EXPECT_EQ(metric(r, "messages"), exchanges + 1);
    EXPECT_EQ(metric(r, "communication_bytes"), 4 * (exchanges * batch * context * 2 * kv_width + arena));
  }
}

TEST_F(ContextParallel, OneSequenceInBf16WithTheLossInChunksIsVerified) {
  const auto records = run_cases(
      "batch_size = 1\ncontext_length = 24\nprecision = \"bf16\"\nqkv_bias = true\ntied_embeddings = true\n"
      "loss_chunks = 3\nexecution = \"graph\"\noptimizer = \"sgd\"\n",
      "\"run.ranks\" = [1, 4]");
  ASSERT_EQ(records.size(), 2u);
  for (const json& r : records) EXPECT_EQ(r["verify"]["status"], "ok") << r["reason"];
}

// A window reaches into the chunk before; norms and rotations are of this rank's positions.
TEST_F(ContextParallel, WindowsCapsAndNormsOfHeadsAreVerified) {
  const auto records = run_cases(
      "batch_size = 2\ncontext_length = 32\nprecision = \"fp32\"\nqk_norm = true\nsliding_window = 5\n"
      "full_attention_every = 3\nattention_soft_cap = 1.5\nrope_scaling = \"linear\"\nrope_factor = 2\n",
      "\"run.ranks\" = [2]\nactivation_checkpointing = [false, true]");
  ASSERT_EQ(records.size(), 2u);
  for (const json& r : records) EXPECT_EQ(r["verify"]["status"], "ok") << r["reason"];
}

// Norms before and after branches, a rotation of local layers, scaled and tied embeddings and both caps.
TEST_F(ContextParallel, BlocksOfGemmaAreVerified) {
  const auto records = run_cases(
      "batch_size = 2\ncontext_length = 32\ntied_embeddings = true\npost_norms = true\nnorms_from_one = true\n"
      "gate_activation = \"gelu_tanh\"\nscaled_embeddings = true\nqk_norm = true\nsliding_window = 6\n"
      "full_attention_every = 2\nrope_local_theta = 100\nrope_scaling = \"linear\"\nrope_factor = 2\n"
      "attention_soft_cap = 3\nlogit_soft_cap = 5\n",
      "\"run.ranks\" = [2]\nprecision = [\"fp32\", \"bf16\"]\nactivation_checkpointing = [false, true]");
  ASSERT_EQ(records.size(), 4u);
  for (const json& r : records) EXPECT_EQ(r["verify"]["status"], "ok") << r["reason"];
}

TEST_F(ContextParallel, SequencesWithoutTwoChunksForEachRankAndScoreMatricesAreRefused) {
  const auto refused = [&](const std::string& params, const char* text) {
    const auto records = run_cases(params, "\"run.ranks\" = [4]");
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0]["status"], "unsupported");
    EXPECT_PRED2(contains, records[0]["reason"], text);
  };
  refused("context_length = 50\n", "expected a multiple of 8, 48 or 56");
  refused("context_length = 48\nattention = \"naive\"\n", "attention = \"flash\"");
}

}  // namespace
}  // namespace assay::test
