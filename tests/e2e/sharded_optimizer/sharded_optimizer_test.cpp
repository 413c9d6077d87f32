#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

constexpr std::int64_t tiny_parameters = 3'084'928;  // plugins/decoder/README.md

class ShardedOptimizer : public Sandbox {
 protected:
  // A tiny model with `params` and the axes `sweep`.
  std::vector<json> run_cases(const std::string& params, const std::string& sweep) {
    return records_of({.plugin = "sharded_optimizer",
                       .params = "size = \"tiny\"\nbatch_size = 1\ncontext_length = 16\nbucket_mb = 2\n" + params,
                       .measure = "warmup = 1\nsteps = 2",
                       .run = "threads = 1",
                       .sweep = sweep});
  }
  static std::int64_t whole(const json& record, const char* name) {
    return static_cast<std::int64_t>(metric(record, name));
  }
  static std::int64_t bytes_at(const json& record, const std::string& moment, const char* kind) {
    for (const json& m : record["memory"]["moments"])
      if (m["name"] == moment) return static_cast<std::int64_t>(m["current_mib"].value(kind, 0.0) * 1024 * 1024 + 0.5);
    ADD_FAILURE() << "no moment " << moment << " in " << record["memory"];
    return -1;
  }
};

const std::string all_variants = "variant = [\"baseline\", \"broadcast\", \"zero1\"]\n";

TEST_F(ShardedOptimizer, StatePerRankIsTheBaselinesDividedToTheByteAndThePadding) {
  const auto records = run_cases("optimizer = \"adamw\"", "\"run.ranks\" = [2, 4]\n" + all_variants);
  ASSERT_EQ(records.size(), 6u);
  const std::map<int, std::int64_t> padding{{2, 0}, {4, 1024}};
  for (const json& r : records) {
    SCOPED_TRACE(r["axes"].dump());
    ASSERT_EQ(r["status"], "ok") << r["reason"];
    const int ranks = r["ranks"];
    const bool baseline = r["axes"]["variant"] == "baseline";
    EXPECT_TRUE(r["silent"].contains("communication_tax"));
    const std::int64_t state = whole(r, "optimizer_state_bytes");
    EXPECT_EQ(whole(r, "shard_padding_bytes"), baseline ? 0 : padding.at(ranks));
    EXPECT_EQ(baseline ? state : state * ranks, 8 * tiny_parameters + whole(r, "shard_padding_bytes"));
    EXPECT_EQ(bytes_at(r, "after_step", "optimizer_state"), state + 512);  // and what README.md says of it
  }
}

TEST_F(ShardedOptimizer, MomentsShowWhatIsTakenWhen) {
  const auto records = run_cases("", "\"run.ranks\" = [2]\n" + all_variants);
  ASSERT_EQ(records.size(), 3u);
  for (const json& r : records) {
    SCOPED_TRACE(r["axes"].dump());
    EXPECT_EQ(bytes_at(r, "after_init", "parameters"), 4 * tiny_parameters);
    EXPECT_EQ(bytes_at(r, "after_init", "gradients"), 0);
    EXPECT_EQ(bytes_at(r, "before_state", "gradients"), 4 * tiny_parameters);
    EXPECT_EQ(bytes_at(r, "before_state", "optimizer_state"), 0);
    for (const char* kind : {"parameters", "gradients", "optimizer_state", "activations", "workspace"})
      EXPECT_EQ(bytes_at(r, "before_step", kind), bytes_at(r, "after_step", kind)) << kind;
    EXPECT_GT(bytes_at(r, "before_step", "optimizer_state"), 0);
  }
}

TEST_F(ShardedOptimizer, CommunicationIsTheFormula) {
  const auto records = run_cases("precision = \"bf16\"", "\"run.ranks\" = [2]\n" + all_variants);
  ASSERT_EQ(records.size(), 3u);
  for (const json& r : records) {
    // bf16 gradients, the bf16 copy of the weights, and both ranks' parts of the fp32 weights of norms, as large as the
    // larger one. Of five norms of 128 zero1's second rank has three, by where buckets of 2 MiB are cut; the middle of
    // the arena, which is broadcast's, cuts one of them.
    const std::string variant = r["axes"]["variant"];
    const std::int64_t most = variant == "zero1" ? 3 * 128 : variant == "broadcast" ? 2 * 128 + 64 : 0;
    const std::int64_t exact = 2 * 4 * most, weights = variant == "baseline" ? 0 : 2 * tiny_parameters;
    EXPECT_EQ(whole(r, "communication_bytes"), 2 * tiny_parameters + weights + exact) << variant;
    EXPECT_EQ(bytes_at(r, "before_step", "communication"), exact) << variant;
  }
}

TEST_F(ShardedOptimizer, EveryPrecisionAndOptimizerIsVerified) {
  // Each precision with each optimizer, each of these with each variant.
  const auto records = run_cases(
      "vocab_size = 300",
      "\"run.ranks\" = [3]\n[[sweep.zip]]\n"
      "precision = [\"fp32\", \"fp32\", \"bf16\", \"bf16\", \"bf16_pure\", \"bf16_pure\", \"fp32\", \"bf16\", "
      "\"bf16_pure\"]\n"
      "optimizer = [\"adamw\", \"sgd\", \"adamw\", \"sgd\", \"adamw\", \"sgd\", \"sgd\", \"adamw\", \"adamw\"]\n"
      "variant = [\"zero1\", \"broadcast\", \"broadcast\", \"zero1\", \"zero1\", \"broadcast\", \"baseline\", "
      "\"baseline\", "
      "\"baseline\"]");
  ASSERT_EQ(records.size(), 9u);
  for (const json& r : records) {
    EXPECT_EQ(r["verify"]["status"], "ok") << r["axes"] << r["reason"];
    for (const char* checked :
         {"identical to the bit", "differ from the mean of the ranks' own", "each rank's part: optimizer: 3 updates"})
      EXPECT_NE(r["verify"]["text"].get<std::string>().find(checked), std::string::npos) << r["verify"];
  }
}

TEST_F(ShardedOptimizer, MicroBatchesTiedEmbeddingsAndChunksOfTheLossAreVerified) {
  const auto records = run_cases("vocab_size = 300\ntied_embeddings = true\nloss_chunks = 3\naccumulation_steps = 2\n",
                                 "\"run.ranks\" = [2]\n" + all_variants);
  ASSERT_EQ(records.size(), 3u);
  const std::int64_t parameters = tiny_parameters - (2 * 10'000 - 300) * 128;
  for (const json& r : records) {
    EXPECT_EQ(r["verify"]["status"], "ok") << r["axes"] << r["reason"];
    EXPECT_EQ(whole(r, "parameters"), parameters);
    // Gradients travel once in a step.
    EXPECT_EQ(whole(r, "communication_bytes"), (r["axes"]["variant"] == "baseline" ? 4 : 8) * parameters);
  }
}

// Three layers of 48 by 80 and 48 by 48 matrices, which are whole lines; a norm is one line, the embedding and the head
// are 114 each. Whole matrices have one owner, and no padding: the ranks' state is the baseline's together, gradients
// and weights travel once.
TEST_F(ShardedOptimizer, MuonSharesWholeMatricesToTheByteAndIsVerified) {
  const auto records = records_of({.plugin = "sharded_optimizer",
                                   .params = "d_model = 48\nd_ff = 80\nlayers = 3\nheads = 2\nvocab_size = 151\n"
                                             "batch_size = 1\ncontext_length = 16\nbucket_mb = 0.03125\n"
                                             "optimizer = \"muon\"",
                                   .measure = "warmup = 1\nsteps = 2",
                                   .run = "threads = 1",
                                   .sweep = "[[sweep.zip]]\n\"run.ranks\" = [2, 4, 4, 2]\n"
                                            "variant = [\"zero1\", \"zero1\", \"broadcast\", \"broadcast\"]\n"
                                            "precision = [\"fp32\", \"bf16\", \"fp32\", \"bf16\"]"});
  ASSERT_EQ(records.size(), 4u);
  constexpr std::int64_t matrices = 3 * (3 * 80 * 48 + 4 * 48 * 48), rest = 64 * (2 * 114 + 7);
  // Norms that one rank has in bf16 at most, in lines of 64.
  const std::map<int, std::int64_t> norms{{2, 256}, {4, 192}};
  for (const json& r : records) {
    SCOPED_TRACE(r["axes"].dump());
    EXPECT_EQ(r["verify"]["status"], "ok") << r["reason"];
    for (const char* checked : {"identical to the bit", "updates of whole matrices"})
      EXPECT_PRED2(contains, r["verify"]["text"], checked);
    const int ranks = r["ranks"];
    double state = 0;
    for (const json& rank : r["by_rank"]) state += rank["metrics"].value("optimizer_state_bytes", 0.0);
    EXPECT_EQ(state, 4 * (matrices + 2 * rest));
    EXPECT_EQ(whole(r, "shard_padding_bytes"), 0);
    EXPECT_GE(metric(r, "matrix_imbalance"), 1);
    EXPECT_LT(metric(r, "matrix_imbalance"), 1.2);
    const bool is_bf16 = r["axes"]["precision"] == "bf16";
    EXPECT_EQ(whole(r, "communication_bytes"),
              2 * (is_bf16 ? 2 : 4) * (matrices + rest) + (is_bf16 ? 4 * ranks * norms.at(ranks) : 0));
  }
}

// Seven matrices on eight ranks; matrices that are no whole lines, and go together.
TEST_F(ShardedOptimizer, MuonServesFewerMatricesThanRanksAndUnevenShapes) {
  const std::string params =
      "heads = 2\nbatch_size = 1\ncontext_length = 8\nbucket_mb = 0.03125\noptimizer = \"muon\"\n"
      "precision = \"bf16\"\n";
  const auto few = records_of({.plugin = "sharded_optimizer",
                               .params = params + "d_model = 16\nd_ff = 64\nlayers = 1\nvocab_size = 23",
                               .measure = "warmup = 1\nsteps = 1",
                               .run = "threads = 1\nranks = 8"});
  const auto uneven =
      records_of({.plugin = "sharded_optimizer",
                  .params = params + "d_model = 20\nd_ff = 36\nlayers = 2\nvocab_size = 77\nkv_heads = 1\n"
                                     "qk_norm = true\nqkv_bias = true\ntied_embeddings = true\n"
                                     "accumulation_steps = 2",
                  .measure = "warmup = 1\nsteps = 1",
                  .run = "threads = 1\nranks = 3"});
  for (const auto& records : {few, uneven}) {
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0]["verify"]["status"], "ok") << records[0]["reason"];
  }
}

TEST_F(ShardedOptimizer, CopyEnginesAreRefusedToMuonsMatrices) {
  const auto records = records_of({.plugin = "sharded_optimizer",
                                   .params = "size = \"tiny\"\noptimizer = \"muon\"\ngathers = \"copy_engines\"",
                                   .run = "ranks = 2"},
                                  1);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["status"], "unsupported");
  EXPECT_PRED2(contains, records[0]["reason"],
               "muon's matrices are broadcast by their owners; expected another value of gathers");
}

// The arena is cut to the size that is asked for, the first bucket too.
TEST_F(ShardedOptimizer, BucketsMayBeLessThanOneMebibyte) {
  const auto records =
      records_of({.plugin = "sharded_optimizer",
                  .params = "size = \"tiny\"\nbatch_size = 1\ncontext_length = 16\n",
                  .measure = "warmup = 1\nsteps = 1",
                  .run = "threads = 1\nranks = 2",
                  .sweep = "[[sweep.zip]]\nvariant = [\"zero1\", \"baseline\", \"zero1\", \"baseline\"]\n"
                           "bucket_mb = [0.25, 1.0, 4.0, 4.0]\nlast_bucket_mb = [0.0, 0.0, 0.25, 0.25]"});
  ASSERT_EQ(records.size(), 4u);
  for (const json& r : records) {
    EXPECT_EQ(r["verify"]["status"], "ok") << r["axes"] << r["reason"];
    const double bytes = r["axes"]["bucket_mb"].get<double>() * 0x1p20;
    if (r["axes"]["last_bucket_mb"] == 0.25) {  // of 11.8 MiB 1, 4, then halves of what is left, 0.25 and 0.2
      EXPECT_EQ(metric(r, "buckets"), 8) << r["axes"];
      continue;
    }
    EXPECT_EQ(metric(r, "buckets"), std::ceil(4.0 * tiny_parameters / bytes)) << r["axes"];
  }
}

TEST_F(ShardedOptimizer, OneRankKeepsEverything) {
  const auto records = run_cases("", "\"run.ranks\" = [1]\n" + all_variants);
  ASSERT_EQ(records.size(), 3u);
  for (const json& r : records) EXPECT_EQ(whole(r, "optimizer_state_bytes"), 8 * tiny_parameters) << r["axes"];
}

}  // namespace
}  // namespace assay::test
