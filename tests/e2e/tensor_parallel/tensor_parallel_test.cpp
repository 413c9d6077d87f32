#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

// plugins/tensor_parallel/README.md has the formulas.
struct Split {
  static constexpr std::int64_t d = 48, ff = 80, layers = 3, vocabulary = 152, rows = 48;
  static constexpr std::int64_t parameters = 2 * vocabulary * d + layers * (3 * d * ff + 4 * d * d + 2 * d) + d;

  std::int64_t ranks, width;  // bytes of an activation, and of a gradient
  bool by_rows;
  std::int64_t chunks = 1;

  static std::int64_t lines(std::int64_t elements) { return (elements + 63) / 64 * 64; }
  static std::int64_t norms() { return (2 * layers + 1) * lines(d); }
  std::int64_t kept() const {
    return 2 * lines(vocabulary * d / ranks) + norms() +
           layers *
               (lines(d * ff / ranks) + lines(2 * d * ff / ranks) + lines(d * d / ranks) + lines(3 * d * d / ranks));
  }
  std::int64_t messages() const {
    if (ranks == 1) return 0;
    return 2 + chunks * (by_rows ? 10 * layers + 4 : 4 * layers + 1);
  }
  std::int64_t bytes() const {
    if (ranks == 1) return 0;
    const std::int64_t stream = width * rows * d, of_loss = 8 * ranks * rows;
    if (!by_rows) return (4 * layers + 2) * stream + of_loss;
    return (10 * layers + 2) * stream + 2 * stream / ranks + of_loss + width * norms();
  }
};

class TensorParallel : public Sandbox {
 protected:
  std::vector<json> run_cases(const std::string& params, const std::string& sweep) {
    return records_of({.plugin = "tensor_parallel",
                       .params = "d_model = 48\nd_ff = 80\nheads = 4\nlayers = 3\nvocab_size = 152\nbatch_size = 2\n"
                                 "context_length = 24\n" +
                                 params,
                       .measure = "warmup = 1\nsteps = 2",
                       .run = "threads = 1\nallow = [\"unsupported\"]",
                       .sweep = sweep});
  }
  static std::int64_t whole(const json& record, const char* name) {
    return static_cast<std::int64_t>(metric(record, name));
  }
};

void expect_verified_parts(const json& r) {
  EXPECT_EQ(r["verify"]["status"], "ok") << r["reason"];
  for (const char* checked : {"at the start, each rank's part against the whole model: loss differs by",
                              "after 3 steps, each rank's part against the whole model: loss differs by",
                              "of all elements", "gradients of norms identical to the bit",
                              "with what their owners have after 3 steps; weights of norms identical to the bit",
                              "each rank's part: optimizer: 3 updates"})
    EXPECT_PRED2(contains, r["verify"]["text"], checked);
}

TEST_F(TensorParallel, EveryNumberOfRanksIsVerifiedAndKeepsAndSendsItsPartToTheByte) {
  std::vector<json> records =
      run_cases("precision = \"fp32\"\n", "\"run.ranks\" = [1, 2, 4]\nsequence_parallel = [true, false]");
  for (json& r : run_cases("precision = \"bf16\"\n", "\"run.ranks\" = [4]\nsequence_parallel = [true]"))
    records.push_back(std::move(r));
  ASSERT_EQ(records.size(), 7u);
  for (const json& r : records) {
    SCOPED_TRACE(r["axes"].dump());
    ASSERT_EQ(r["status"], "ok") << r["reason"];
    expect_verified_parts(r);
    const bool is_bf16 = r["params"]["precision"] == "bf16";
    const Split split{.ranks = r["ranks"], .width = is_bf16 ? 2 : 4, .by_rows = r["axes"]["sequence_parallel"]};
    EXPECT_EQ(whole(r, "parameters"), Split::parameters);
    EXPECT_EQ(whole(r, "parameter_bytes"), (is_bf16 ? 6 : 4) * split.kept());
    EXPECT_EQ(whole(r, "gradient_bytes"), split.width * split.kept());
    EXPECT_EQ(whole(r, "optimizer_state_bytes"), 8 * split.kept());
    EXPECT_EQ(whole(r, "messages"), split.messages());
    EXPECT_EQ(whole(r, "communication_bytes"), split.bytes());
    EXPECT_EQ(r.contains("silent") && r["silent"].contains("communication_tax"), split.ranks > 1);
    // One batch, however many ranks work on it.
    EXPECT_NEAR(r["rates"]["items_per_s"].get<double>() * r["phases"]["step"]["mean_ms"].get<double>() / 1000,
                Split::rows, 0.02 * Split::rows);
  }
}

// Ranks 0 and 1 share one replica of two, ranks 2 and 3 the other one.
TEST_F(TensorParallel, ReplicasAverageTheGradientsOfTheirBatches) {
  std::vector<json> records =
      run_cases("precision = \"fp32\"\n", "\"run.ranks\" = [4]\nreplicas = [2, 4]\nsequence_parallel = [true, false]");
  for (json& r : run_cases("precision = \"bf16\"\naccumulation_steps = 2\nqk_norm = true\nexecution = \"graph\"\n",
                           "\"run.ranks\" = [4]\nreplicas = [2]\noptimizer = [\"adamw\", \"sgd\"]"))
    records.push_back(std::move(r));
  ASSERT_EQ(records.size(), 6u);
  for (const json& r : records) {
    SCOPED_TRACE(r["axes"].dump());
    ASSERT_EQ(r["status"], "ok") << r["reason"];
    expect_verified_parts(r);
    const std::int64_t replicas = r["axes"]["replicas"];
    EXPECT_PRED2(contains, r["verify"]["text"],
                 "weights of " + std::to_string(replicas) + " replicas identical to the bit after 3 steps");
    if (r["params"]["precision"] == "bf16") continue;
    const Split split{.ranks = 4 / replicas, .width = 4, .by_rows = r["axes"]["sequence_parallel"]};
    EXPECT_EQ(whole(r, "parameters"), Split::parameters);
    EXPECT_EQ(whole(r, "parameter_bytes"), 4 * split.kept());
    // Of norms that a replica's ranks have summed there is a second average.
    EXPECT_EQ(whole(r, "replica_messages"), split.ranks > 1 && split.by_rows ? 2 : 1);
    EXPECT_EQ(whole(r, "replica_communication_bytes"), 4 * split.kept());
    EXPECT_EQ(whole(r, "messages"), split.messages() + whole(r, "replica_messages"));
    EXPECT_EQ(whole(r, "communication_bytes"), split.bytes() + whole(r, "replica_communication_bytes"));
    EXPECT_NEAR(r["rates"]["items_per_s"].get<double>() * r["phases"]["step"]["mean_ms"].get<double>() / 1000,
                static_cast<double>(replicas * Split::rows), 0.02 * static_cast<double>(replicas * Split::rows));
  }
}

// A first bucket of 1 MiB, which the head's words on a rank fill: it is averaged beside the backward of the layers.
TEST_F(TensorParallel, ReplicasAverageInBucketsBesideTheBackward) {
  const auto records =
      records_of({.plugin = "tensor_parallel",
                  .params = "d_model = 64\nd_ff = 80\nheads = 4\nlayers = 1\nvocab_size = 8192\nbatch_size = 1\n"
                            "context_length = 16\nprecision = \"fp32\"\n",
                  .measure = "warmup = 1\nsteps = 2",
                  .run = "threads = 1\nranks = 4",
                  .sweep = "replicas = [2]\nsequence_parallel = [true, false]"});
  ASSERT_EQ(records.size(), 2u);
  for (const json& r : records) {
    SCOPED_TRACE(r["axes"].dump());
    ASSERT_EQ(r["status"], "ok") << r["reason"];
    expect_verified_parts(r);
    EXPECT_EQ(whole(r, "replica_messages"), r["axes"]["sequence_parallel"] ? 3 : 2);
  }
}

TEST_F(TensorParallel, GroupedQueriesBiasesRecomputationAndEachOptimizerAreVerified) {
  const auto records = run_cases(
      "kv_heads = 2\nqkv_bias = true\nqk_norm = true\nattention_sinks = true\nsliding_window = 5\nprecision = "
      "\"bf16_pure\"\n"
      "attention = \"naive\"\nexecution = \"graph\"\n",
      "\"run.ranks\" = [2]\noptimizer = [\"adamw\", \"sgd\"]\n"
      "activation_checkpointing = [false, true]");
  ASSERT_EQ(records.size(), 4u);
  for (const json& r : records) {
    expect_verified_parts(r);
    EXPECT_EQ(whole(r, "messages"), (r["axes"]["activation_checkpointing"] ? 11 : 10) * Split::layers + 6);
  }
}

// Each micro-batch exchanges what a step of one does, and of each chunk of the loss its parts; norms are summed once.
TEST_F(TensorParallel, MicroBatchesAndChunksOfTheLossAreVerified) {
  const auto records = run_cases("accumulation_steps = 2\nloss_chunks = 3\n",
                                 "\"run.ranks\" = [2, 4]\nsequence_parallel = [true, false]");
  ASSERT_EQ(records.size(), 4u);
  for (const json& r : records) {
    SCOPED_TRACE(r["axes"].dump());
    expect_verified_parts(r);
    const Split split{.ranks = r["ranks"], .width = 4, .by_rows = r["axes"]["sequence_parallel"]};
    const std::int64_t once = split.by_rows ? 1 : 0, norms = once * split.width * Split::norms();
    EXPECT_EQ(whole(r, "messages"), 2 * (split.messages() - once + 2) + once);
    EXPECT_EQ(whole(r, "communication_bytes"), 2 * (split.bytes() - norms) + norms);
  }
}

// Two chunks of 48 rows are sequences, three are as many rows each, five are not.
TEST_F(TensorParallel, ChunksOfRowsAreVerifiedAndSendAsMuchInMoreMessages) {
  std::vector<json> records =
      run_cases("precision = \"fp32\"\n",
                "\"run.ranks\" = [2]\nsequence_parallel = [true, false]\ncommunication_chunks = [1, 2, 3, 5]");
  for (json& r : run_cases("precision = \"bf16\"\nexecution = \"graph\"\n",
                           "\"run.ranks\" = [4]\nsequence_parallel = [true, false]\ncommunication_chunks = [2, 4]"))
    records.push_back(std::move(r));
  ASSERT_EQ(records.size(), 12u);
  for (const json& r : records) {
    SCOPED_TRACE(r["axes"].dump());
    ASSERT_EQ(r["status"], "ok") << r["reason"];
    expect_verified_parts(r);
    const Split split{.ranks = r["ranks"],
                      .width = r["params"]["precision"] == "bf16" ? 2 : 4,
                      .by_rows = r["axes"]["sequence_parallel"],
                      .chunks = r["axes"]["communication_chunks"]};
    EXPECT_EQ(whole(r, "messages"), split.messages());
    EXPECT_EQ(whole(r, "communication_bytes"), split.bytes());
  }
}

// Attention in chunks of sequences behind norms of heads, and of all rows; both made again in backward.
TEST_F(TensorParallel, ChunksOfRowsGoWithEachFormOfAStep) {
  const auto records = run_cases(
      "kv_heads = 2\nqkv_bias = true\nqk_norm = true\nsliding_window = 5\nprecision = \"bf16_pure\"\n"
      "accumulation_steps = 2\nloss_chunks = 3\nattention_sinks = true\ncommunication_chunks = 2\n",
      "\"run.ranks\" = [2]\nsequence_parallel = [true, false]\nactivation_checkpointing = [false, true]\n"
      "attention = [\"flash\", \"naive\"]");
  ASSERT_EQ(records.size(), 8u);
  for (const json& r : records) {
    SCOPED_TRACE(r["axes"].dump());
    expect_verified_parts(r);
  }
}

TEST_F(TensorParallel, RefusesMoreChunksThanThereAreRowsForEachRank) {
  const auto records = run_cases("communication_chunks = 25\n", "\"run.ranks\" = [2]");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["status"], "unsupported");
  EXPECT_PRED2(contains, records[0]["reason"],
               "communication_chunks 25 of 48 rows, of which a rank has 24; expected 1 to 24");
}

// A batch that three steps learn by heart, and two tokens, whose roundings nothing evens out.
TEST_F(TensorParallel, FewTokensOfASmallVocabularyAreVerified) {
  for (const char* batch : {"batch_size = 2\ncontext_length = 16\n", "batch_size = 1\ncontext_length = 2\n"}) {
    SCOPED_TRACE(batch);
    const auto records =
        records_of({.plugin = "tensor_parallel",
                    .params = std::string("size = \"tiny\"\nvocab_size = 96\nprecision = \"fp32\"\n") + batch,
                    .measure = "warmup = 1\nsteps = 2",
                    .run = "threads = 1\nranks = 2\nseed = 1"});
    ASSERT_EQ(records.size(), 1u);
    expect_verified_parts(records[0]);
  }
}

// 83 MiB of a rank's own, and 103 MiB of the whole model, all but for embeddings.
TEST_F(TensorParallel, WithoutRoomForTheWholeModelBelowTheMemoryLimitVerificationIsPartial) {
  const auto records = records_of({.plugin = "tensor_parallel",
                                   .params = "size = \"tiny\"\nvocab_size = 40000\nprecision = \"fp32\"\n"
                                             "batch_size = 2\ncontext_length = 16\n",
                                   .measure = "warmup = 1\nsteps = 1",
                                   .run = "threads = 1\nranks = 2\nmemory_limit = \"260MiB\""});
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["verify"]["status"], "partial") << records[0]["reason"];
  EXPECT_PRED2(contains, records[0]["verify"]["text"], "there is no memory for the whole model");
}

TEST_F(TensorParallel, RefusesHeadsThatRanksCannotShare) {
  const auto records = run_cases("", "\"run.ranks\" = [3]");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["status"], "unsupported");
  EXPECT_PRED2(
      contains, records[0]["reason"],
      "split over 3 ranks: heads 4 is not a multiple of 3; expected 3 or 6, or run.ranks / replicas of 1, 2 or 4");
}

}  // namespace
}  // namespace assay::test
