#include <map>
#include <nlohmann/json.hpp>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class Ddp : public Sandbox {
 protected:
  // Runs a model of two layers on two ranks.
  std::vector<json> run_cases(const std::string& params, const std::string& sweep) {
    return records_of(
        {.plugin = "ddp",
         .params = "size = \"tiny\"\nvocab_size = 500\nbatch_size = 2\ncontext_length = 32\n" + params,
         .measure = "warmup = 0\nsteps = 2",  // as many steps in all, however long they are: losses are compared
         .run = "ranks = 2",
         .sweep = sweep});
  }
};

TEST_F(Ddp, EveryStrategyTrainsTheSameModel) {
  const auto records =
      run_cases("bucket_mb = 1", "strategy = [\"naive\", \"flat\", \"overlap_individual\", \"overlap_bucketed\"]");
  ASSERT_EQ(records.size(), 4u);
  std::map<std::string, double> collectives;
  for (const json& record : records) {
    const std::string strategy = record["axes"]["strategy"];
    ASSERT_EQ(record["status"], "ok") << record["reason"];
    EXPECT_EQ(record["verify"]["status"], "ok");
    EXPECT_NE(record["verify"]["text"].get<std::string>().find("weights of 2 ranks identical to the bit"),
              std::string::npos);
    for (const char* checked : {"averaged gradients of 2 rank(s), 1305856 elements",
                                "differ from the mean of the ranks' own", "fused path against the unfused one"})
      EXPECT_NE(record["verify"]["text"].get<std::string>().find(checked), std::string::npos) << record["verify"];
    const json& metrics = record["metrics"];
    EXPECT_EQ(metrics["communication_bytes"]["value"], 4 * metrics["parameters"]["value"].get<std::int64_t>());
    EXPECT_GT(metrics["communication_ms"]["value"], 0);
    // Averages of two numbers do not depend on the piece in which they travel.
    EXPECT_EQ(metrics["loss"]["value"], records[0]["metrics"]["loss"]["value"]) << strategy;
    for (const char* phase : {"forward", "backward", "communication_wait", "optimizer"})
      EXPECT_TRUE(record["phases"].contains(phase)) << phase;
    collectives[strategy] = metrics["collectives"]["value"];
    // The weights of five norms go alone or with others.
    const bool alone = strategy == "naive" || strategy == "overlap_individual";
    EXPECT_EQ(metrics["small_collectives"]["value"], alone ? 5 : 0) << strategy;
    EXPECT_EQ(metrics["small_communication_bytes"]["value"], alone ? 5 * 128 * 4 : 0) << strategy;
    EXPECT_TRUE(record["silent"].contains("communication_tax"));
  }
  EXPECT_EQ(collectives["naive"], 21);
  EXPECT_EQ(collectives["flat"], 1);
  EXPECT_EQ(collectives["overlap_individual"], 21);
  EXPECT_GT(collectives["overlap_bucketed"], 1);
  EXPECT_LT(collectives["overlap_bucketed"], 21);
}

// A bucket ends with the group of parameters that fills it: 30 KB fill with each group but norms, 0.25 MiB of 2.4 MB
// leave at most ten, and a bucket of them all is one.
TEST_F(Ddp, BucketsMayBeLessThanOneMebibyte) {
  const auto records = run_cases("strategy = \"overlap_bucketed\"", "bucket_mb = [0.03, 0.25, 1, 100.0]");
  ASSERT_EQ(records.size(), 4u);
  std::vector<double> buckets;
  for (const json& record : records) {
    ASSERT_EQ(record["status"], "ok") << record["reason"];
    EXPECT_EQ(record["verify"]["status"], "ok");
    EXPECT_EQ(record["metrics"]["loss"]["value"], records[0]["metrics"]["loss"]["value"]);
    const json& metrics = record["metrics"];
    buckets.push_back(metrics["collectives"]["value"]);
    const double mib = metrics["communication_bytes"]["value"].get<double>() / 0x1p20;
    EXPECT_LE(buckets.back(), 2 + mib / record["axes"]["bucket_mb"].get<double>());
  }
  EXPECT_GT(buckets[0], buckets[1]);
  EXPECT_GT(buckets[1], buckets[2]);
  EXPECT_EQ(buckets[3], 2) << "the first has 1 MiB";
}

TEST_F(Ddp, ABucketOfLessThanNothingIsRefused) {
  const RunResult result = run_alone({.plugin = "ddp", .params = "bucket_mb = -1.0"});
  EXPECT_EQ(result.exit.code, 2);
  EXPECT_TRUE(contains(result.output, "bucket_mb is -1.0; expected a number >= 0")) << result.output;
  for (const char* const setting : {"bucket_mb", "last_bucket_mb"}) {  // 0, once it is rounded to bytes
    const RunResult tiny = run_alone({.plugin = "ddp", .params = std::string(setting) + " = 4e-7"});
    EXPECT_EQ(tiny.exit.code, 2);
    EXPECT_TRUE(contains(tiny.output, std::string(setting) + " is a bucket of less than 1 KiB")) << tiny.output;
  }
  const RunResult larger = run_alone({.plugin = "ddp", .params = "bucket_mb = 25\nlast_bucket_mb = 50"});
  EXPECT_EQ(larger.exit.code, 2);
  EXPECT_TRUE(contains(larger.output, "last_bucket_mb is larger than bucket_mb")) << larger.output;
  for (const char* const setting : {"leave_multiprocessors = 8", "last_bucket_mb = 1"}) {
    const RunResult alone = run_alone({.plugin = "ddp", .params = std::string("strategy = \"flat\"\n") + setting});
    EXPECT_EQ(alone.exit.code, 2);
    EXPECT_TRUE(contains(alone.output, "and strategy is another")) << alone.output;
  }
}

// Of 36 MB of gradients two sizes are tried, and all ranks take the same. Without a GPU a step is no graph.
TEST_F(Ddp, TheSizeOfBucketsIsMeasured) {
  const auto records = records_of({.plugin = "ddp",
                                   .params = "size = \"tiny\"\nd_model = 256\nvocab_size = 16000\nbatch_size = 1\n"
                                             "context_length = 8\nbucket_mb = 0\nexecution = \"graph\"",
                                   .measure = "warmup = 0\nsteps = 1",
                                   .run = "ranks = 2"});
  ASSERT_EQ(records.size(), 1u);
  ASSERT_EQ(records[0]["status"], "ok") << records[0]["reason"];
  const double mib = records[0]["metrics"]["bucket_mib"]["value"];
  EXPECT_TRUE(mib == 25 || mib == 50) << mib;
  const std::string log = text_of(run_folder() / "logs" / "case-0001.rank0.log");
  EXPECT_TRUE(contains(log, "buckets of " + std::to_string(int(mib)) + " MiB, the fastest step of those tried: 25 MiB"))
      << log;
}

TEST_F(Ddp, EveryPrecisionAndOptimizerIsVerified) {
  const auto records = run_cases("last_bucket_mb = 0.2\naccumulation_steps = 2\n",
                                 "precision = [\"fp32\", \"bf16\", \"bf16_pure\"]\noptimizer = [\"adamw\", \"sgd\"]");
  ASSERT_EQ(records.size(), 6u);
  for (const json& record : records) {
    EXPECT_EQ(record["verify"]["status"], "ok") << record["reason"] << record["verify"];
    const std::int64_t width = record["axes"]["precision"] == "fp32" ? 4 : 2;
    const json& metrics = record["metrics"];
    EXPECT_EQ(metrics["communication_bytes"]["value"], width * metrics["parameters"]["value"].get<std::int64_t>());
  }
}

// Of four tokens of five words gradients by queries and keys are made of few numbers, and logits are large: some of
// these were refused on one of the ranks.
TEST_F(Ddp, FewTokensIn16BitsAreVerified) {
  const auto records = records_of({.plugin = "ddp",
                                   .params = "d_model = 32\nd_ff = 64\nlayers = 1\nheads = 2\nvocab_size = 5\n"
                                             "batch_size = 1\ncontext_length = 4\nprecision = \"bf16\"\n",
                                   .measure = "warmup = 0\nsteps = 1",
                                   .run = "ranks = 3",
                                   .sweep = "\"run.seed\" = [10, 12, 48, 128]"});
  ASSERT_EQ(records.size(), 4u);
  for (const json& record : records) EXPECT_EQ(record["verify"]["status"], "ok") << record["reason"];
}

// Two tokens of a vocabulary of two: with the first of these seeds both ranks have the same, and a broadcast of rank
// 0's gradients would be the average.
TEST_F(Ddp, RanksThatCannotBeToldApartAreVerifiedInPart) {
  const auto records = records_of({.plugin = "ddp",
                                   .params = "size = \"tiny\"\nvocab_size = 2\nbatch_size = 1\ncontext_length = 2\n",
                                   .measure = "warmup = 1\nsteps = 1",
                                   .run = "ranks = 2",
                                   .sweep = "\"run.seed\" = [9, 14]"});
  ASSERT_EQ(records.size(), 2u);
  const auto text = [&](std::size_t i) { return records[i]["verify"]["text"].get<std::string>(); };
  EXPECT_EQ(records[0]["verify"]["status"], "partial") << text(0);
  EXPECT_PRED2(contains, text(0), "would pass for the average");
  EXPECT_EQ(records[1]["verify"]["status"], "ok") << text(1);
}

}  // namespace
}  // namespace assay::test
