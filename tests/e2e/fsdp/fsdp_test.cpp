#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class Fsdp : public Sandbox {
 protected:
  // A small model, of which no block divides evenly on 4 ranks, with `params` and the axes `sweep`.
  std::vector<json> run_cases(const std::string& params, const std::string& sweep, const char* depth = "3") {
    return records_of({.plugin = "fsdp",
                       .params = "d_model = 48\nd_ff = 80\nheads = 2\nvocab_size = 151\nbatch_size = 2\n"
                                 "context_length = 24\n" +
                                 params + "layers = " + depth + "\n",
                       .measure = "warmup = 1\nsteps = 2",
                       .run = "threads = 1",
                       .sweep = sweep});
  }
  static std::int64_t whole(const json& record, const char* name) {
    return static_cast<std::int64_t>(metric(record, name));
  }
  static std::int64_t peak_bytes(const json& record, const char* kind) {
    return static_cast<std::int64_t>(record["memory"]["peak_mib"].value(kind, 0.0) * 1024 * 1024 + 0.5);
  }
};

// plugins/fsdp/README.md has the formulas.
constexpr std::int64_t d = 48, ff = 80, layers = 3, vocabulary = 151;
constexpr std::int64_t matrices = vocabulary * d, layer = 3 * d * ff + 4 * d * d;
constexpr std::int64_t parameters = 2 * matrices + layers * (layer + 2 * d) + d;
constexpr std::int64_t rounded_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}
struct Shards {
  explicit Shards(std::int64_t ranks)
      : matrix(rounded_up(matrices, 64 * ranks)),
        of_layer(rounded_up(layer, 64 * ranks)),
        norms(rounded_up(64 * (2 * layers + 1), 64 * ranks)) {}
  std::int64_t elements() const { return 2 * matrix + layers * of_layer + norms; }
  std::int64_t matrix, of_layer, norms;
};

const std::string both = "reshard = [false, true]\n";

void expect_verified(const json& r) {
  EXPECT_EQ(r["verify"]["status"], "ok") << r["reason"];
  for (const char* checked :
       {"at the start: loss of each rank as the whole model's", "after 3 steps: loss of each rank as the whole model's",
        "differ from the mean of the ranks' own", "each rank's part: optimizer: 3 updates",
        "is identical to the bit with what their owners have after 3 steps"})
    EXPECT_PRED2(contains, r["verify"]["text"], checked);
}

// Hybrid sharding: ranks 0 and 1 share one replica of two, ranks 2 and 3 the other one; each rank has a batch.
TEST_F(Fsdp, ReplicasAverageTheGradientsOfTheirParts) {
  std::vector<json> records = run_cases("precision = \"fp32\"\n", "\"run.ranks\" = [4]\nreplicas = [2, 4]\n" + both);
  for (json& r : run_cases("precision = \"bf16\"\naccumulation_steps = 2\n",
                           "\"run.ranks\" = [4]\nreplicas = [2]\nsync_every_micro_batch = [true, false]"))
    records.push_back(std::move(r));
  ASSERT_EQ(records.size(), 6u);
  for (const json& r : records) {
    SCOPED_TRACE(r["axes"].dump());
    ASSERT_EQ(r["status"], "ok") << r["reason"];
    expect_verified(r);
    const std::int64_t replicas = r["axes"]["replicas"];
    EXPECT_PRED2(contains, r["verify"]["text"],
                 "weights of " + std::to_string(replicas) + " replicas identical to the bit after 3 steps");
    const Shards shards(4 / replicas);
    const std::int64_t kept = shards.elements() / (4 / replicas), width = r["params"]["precision"] == "bf16" ? 2 : 4;
    EXPECT_EQ(whole(r, "gradient_bytes"), width * kept);
    EXPECT_EQ(whole(r, "replica_communication_bytes"), width * kept);
    EXPECT_EQ(whole(r, "replica_messages"), 2);
  }
}

TEST_F(Fsdp, EveryNumberOfRanksIsVerifiedAndKeepsAndSendsItsPartToTheByte) {
  const auto records = run_cases("", "\"run.ranks\" = [1, 2, 4]\nprecision = [\"fp32\", \"bf16\"]\n" + both);
  ASSERT_EQ(records.size(), 12u);
  for (const json& r : records) {
    SCOPED_TRACE(r["axes"].dump());
    ASSERT_EQ(r["status"], "ok") << r["reason"];
    expect_verified(r);
    const bool is_bf16 = r["axes"]["precision"] == "bf16", reshard = r["axes"]["reshard"];
    const std::int64_t narrow = is_bf16 ? 2 : 4, ranks = r["ranks"];
    const Shards shards(ranks);
    const std::int64_t kept = shards.elements() / ranks;
    EXPECT_EQ(whole(r, "parameters"), parameters);
    EXPECT_EQ(whole(r, "parameter_bytes"), (is_bf16 ? 6 : 4) * kept);
    EXPECT_EQ(whole(r, "gradient_bytes"), narrow * kept);
    EXPECT_EQ(whole(r, "optimizer_state_bytes"), 8 * kept);
    EXPECT_EQ(whole(r, "shard_padding_bytes"), 8 * (ranks * kept - parameters));
    EXPECT_EQ(peak_bytes(r, "parameters"), whole(r, "parameter_bytes"));
    EXPECT_EQ(peak_bytes(r, "gradients"), whole(r, "gradient_bytes"));
    EXPECT_EQ(peak_bytes(r, "communication"), whole(r, "gathered_bytes"));
    const std::int64_t gathered = narrow * (2 * shards.matrix + layers * shards.of_layer) + 4 * shards.norms;
    const std::int64_t again = reshard ? narrow * layers * shards.of_layer : 0;
    EXPECT_EQ(whole(r, "communication_bytes"), gathered + again + narrow * shards.elements());
    EXPECT_EQ(whole(r, "messages"), 2 * (layers + 3) + (reshard ? layers : 0));
    EXPECT_EQ(r.contains("silent") && r["silent"].contains("communication_tax"), ranks > 1);
  }
}

// Biases belong to their layer's block.
TEST_F(Fsdp, ServesGroupedQueriesWithBiases) {
  const auto records =
      records_of({.plugin = "fsdp",
                  .params = "d_model = 48\nd_ff = 80\nheads = 4\nkv_heads = 2\nqkv_bias = true\nqk_norm = true\n"
                            "output_bias = true\nattention_sinks = true\nsliding_window = 5\n"
                            "layers = 2\nvocab_size = 151\nbatch_size = 2\ncontext_length = 24\n",
                  .measure = "warmup = 1\nsteps = 2",
                  .run = "threads = 1\nranks = 2"});
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["verify"]["status"], "ok") << records[0]["reason"];
}

// Its matrices are of a layer's block, its norms resident.
TEST_F(Fsdp, ServesLatentAttention) {
  const auto records = records_of(
      {.plugin = "fsdp",
       .params = "d_model = 48\nd_ff = 80\nheads = 3\nkv_lora_rank = 20\nq_lora_rank = 14\nqk_nope_head_dim = 10\n"
                 "qk_rope_head_dim = 6\nv_head_dim = 12\nlayers = 2\nvocab_size = 151\nbatch_size = 2\n"
                 "context_length = 24\n",
       .measure = "warmup = 1\nsteps = 2",
       .run = "threads = 1\nranks = 2"});
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["verify"]["status"], "ok") << records[0]["reason"];
}

// What plugins/fsdp/README.md says of a step of `micro_batches` of which each reduces its gradients, or the last one.
void expect_exchanged(const json& r, bool tied, bool reshard, std::int64_t micro_batches, bool reduces_each) {
  const Shards shards(r["ranks"]);
  const std::int64_t bytes = r["params"]["precision"] == "bf16" ? 2 : 4;
  const std::int64_t ends = tied && !reshard ? 1 : 2;  // times that the embedding or the head is gathered
  const std::int64_t kept = (tied ? 1 : 2) * shards.matrix + layers * shards.of_layer + shards.norms;
  const std::int64_t gathered = ends * shards.matrix + (reshard ? 2 : 1) * layers * shards.of_layer;
  const std::int64_t reductions = reduces_each ? micro_batches : 1;
  EXPECT_EQ(static_cast<std::int64_t>(metric(r, "communication_bytes")),
            bytes * (micro_batches * gathered + reductions * kept) + 4 * shards.norms);
  EXPECT_EQ(static_cast<std::int64_t>(metric(r, "messages")),
            micro_batches * (ends + (reshard ? 2 : 1) * layers) + 1 + reductions * (layers + (tied ? 2 : 3)));
}

// The embedding is the head, the loss is made in chunks, and gradients are reduced with each micro-batch, or kept
// whole.
TEST_F(Fsdp, MicroBatchesTiedEmbeddingsAndChunksOfTheLossAreVerified) {
  const auto records = run_cases("tied_embeddings = true\nloss_chunks = 3\naccumulation_steps = 3\n",
                                 "\"run.ranks\" = [2]\nsync_every_micro_batch = [true, false]\n" + both);
  ASSERT_EQ(records.size(), 4u);
  for (const json& r : records) {
    SCOPED_TRACE(r["axes"].dump());
    ASSERT_EQ(r["status"], "ok") << r["reason"];
    expect_verified(r);
    const bool each = r["axes"]["sync_every_micro_batch"], reshard = r["axes"]["reshard"];
    expect_exchanged(r, true, reshard, 3, each);
    EXPECT_EQ(whole(r, "parameters"), parameters - matrices);
    EXPECT_EQ(peak_bytes(r, "communication"), whole(r, "gathered_bytes"));
    EXPECT_EQ(peak_bytes(r, "gradients"), whole(r, "gradient_bytes"));
    EXPECT_EQ(r["work"]["items"], 3 * 2 * 24) << r["work"].dump();
  }
  const std::int64_t all = 4 * (Shards(2).elements() - Shards(2).matrix);  // whole gradients
  for (std::size_t i = 2; i < 4; ++i) EXPECT_GT(whole(records[i], "gathered_bytes"), all);
}

TEST_F(Fsdp, FourRanksAddUpGradientsOf16Bits) {
  const auto records = run_cases("precision = \"bf16\"\naccumulation_steps = 2\nactivation_checkpointing = true\n",
                                 "\"run.ranks\" = [4]\nsync_every_micro_batch = [true, false]\n");
  ASSERT_EQ(records.size(), 2u);
  for (const json& r : records) {
    SCOPED_TRACE(r["axes"].dump());
    expect_verified(r);
    expect_exchanged(r, false, true, 2, r["axes"]["sync_every_micro_batch"]);
  }
}

TEST_F(Fsdp, OneMicroBatchHasNothingToAddUp) {
  const RunResult result = run_experiment({.plugin = "fsdp", .params = "sync_every_micro_batch = false\n"});
  EXPECT_EQ(result.exit.code, 2);
  EXPECT_PRED2(contains, result.output, "expected accumulation_steps of at least 2");
}

TEST_F(Fsdp, GlooGathersFromAnyMemoryAndByNoCopyEngine) {
  for (const char* plugin : {"fsdp", "sharded_optimizer"}) {
    SCOPED_TRACE(plugin);
    const auto records = records_of({.plugin = plugin,
                                     .params = "size = \"tiny\"\nbatch_size = 1\ncontext_length = 8\n",
                                     .measure = "warmup = 1\nsteps = 1",
                                     .run = "threads = 1\nranks = 2\nallow = [\"unsupported\"]",
                                     .sweep = "gathers = [\"registered\", \"windows\", \"copy_engines\"]"});
    ASSERT_EQ(records.size(), 3u);
    for (const json& r : records) EXPECT_EQ(r["status"], "unsupported");
    EXPECT_PRED2(contains, records[0]["reason"], "gloo has no memory to register");
    EXPECT_PRED2(contains, records[1]["reason"], "gloo has no memory to register");
    EXPECT_PRED2(contains, records[2]["reason"], "gloo has no copy engines");
  }
}

TEST_F(Fsdp, EachOptimizerAttentionAndRecomputationIsVerified) {
  const auto records = run_cases("precision = \"bf16_pure\"\nattention = \"naive\"\nexecution = \"graph\"\n",
                                 "\"run.ranks\" = [3]\noptimizer = [\"adamw\", \"sgd\"]\n"
                                 "activation_checkpointing = [false, true]");
  ASSERT_EQ(records.size(), 4u);
  for (const json& r : records) expect_verified(r);
}

// Each rank holds two blocks and two blocks' gradients at a time, and without resharding all blocks at once.
TEST_F(Fsdp, ReshardingHoldsFewBlocksAtATime) {
  const auto records = run_cases("", "\"run.ranks\" = [2]\n" + both, "8");
  ASSERT_EQ(records.size(), 2u);
  const std::int64_t block = 4 * Shards(2).of_layer;
  EXPECT_GT(whole(records[0], "gathered_bytes"), 8 * block);
  EXPECT_LE(whole(records[1], "gathered_bytes"), 5 * block);
}

}  // namespace
}  // namespace assay::test
