// The encoder_decoder plugin on two ranks.
#include <cmath>

#include "encoder_decoder_sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class EncoderDecoderRanks : public EncoderDecoderSandbox {};

TEST_F(EncoderDecoderRanks, ShareTheSamplesAndEndWithTheSameWeights) {
  // 23 samples: two batches for each rank, and seven samples that are left out.
  const auto records = run_well(small("num_samples = 23", "execution = [\"eager\", \"graph\"]", "ranks = 2"));
  ASSERT_EQ(records.size(), 2u);
  for (const json& record : records) {
    EXPECT_PRED2(contains, record["verify"]["text"].get<std::string>(),
                 "weights of 2 ranks identical to the bit after 3 steps");
    EXPECT_PRED2(contains, record["verify"]["text"].get<std::string>(), "averaged gradients of 2 rank(s), ");
    EXPECT_EQ(metric(record, "batches"), 2);
    EXPECT_EQ(record["work"]["items"], 8) << "of each rank";
    const double mean_s = record["phases"]["step"]["mean_ms"].get<double>() / 1e3;
    EXPECT_NEAR(record["rates"]["items_per_s"].get<double>() * mean_s, 16, 1e-6) << "of all ranks";
    for (const char* phase : {"data_wait", "forward", "backward", "communication_wait", "optimizer"})
      EXPECT_TRUE(record["phases"].contains(phase)) << phase;
    // What the communicator's waits hold up lies in the phase of waiting; a wait for another rank takes some time.
    EXPECT_GT(metric(record, "exposed_ms"), 0);
    EXPECT_LE(metric(record, "exposed_ms"),
              1.01 * record["phases"]["communication_wait"]["mean_ms"].get<double>() + 0.01);
    EXPECT_NEAR(metric(record, "loss"), std::log(64.0), 0.7);
    EXPECT_TRUE(record["silent"].contains("communication_tax"));
    ASSERT_EQ(record["by_rank"].size(), 2u);
    EXPECT_NE(record["by_rank"][0]["metrics"]["loss"], record["by_rank"][1]["metrics"]["loss"])
        << "each rank has samples of its own";
  }
  const json whole = summary();
  ASSERT_EQ(whole["epochs"].size(), 6u);
  for (const json& epoch : whole["epochs"])
    EXPECT_NEAR(epoch["samples_per_s"].get<double>() * epoch["wall_time_s"].get<double>(), 16, 1e-6);
}

// Whether workers read something in a step differs from rank to rank: their rate is one of the case.
TEST_F(EncoderDecoderRanks, ManyShortSteps) {
  auto text = small("num_samples = 23\nunit = \"step\"", "", "ranks = 2");
  text.measure = "warmup = 1\nsteps = 300";
  const auto records = run_well(text);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["phases"]["step"]["n"], 300);
  EXPECT_GT(metric(records[0], "data_mb_per_s"), 0);
  EXPECT_EQ(records[0]["step_metrics"]["data_wait_ms"]["samples"].size(), 300u);
}

TEST_F(EncoderDecoderRanks, NeedABatchEach) {
  const json record = run_badly(small("num_samples = 7", "", "ranks = 2\nallow = [\"failed\"]"), 0);
  EXPECT_PRED2(contains, record["reason"].get<std::string>(), "num_samples 7 is less than one step takes, 8");
  EXPECT_PRED2(contains, record["reason"].get<std::string>(), "batch_size 4 on 2 ranks");
}

TEST_F(EncoderDecoderRanks, GenerateTheirDataOnce) {
  const std::string samples = "num_samples = 40\n";
  const auto from_memory = run_well(small(samples, "", "ranks = 2"));
  const auto from_disk = run_well(small(samples + "data_dir = \"data\"\nnum_shards = 3", "", "ranks = 2"));
  int written = 0, found = 0;
  for (const char* log : {"case-0001.rank0.log", "case-0001.rank1.log"}) {
    written += contains(case_log(log), "data: data set written") ? 1 : 0;
    found += contains(case_log(log), "data: data set found") ? 1 : 0;
  }
  EXPECT_EQ(written, 1);
  EXPECT_EQ(found, 1);
  ASSERT_EQ(from_memory.size() + from_disk.size(), 2u);
  EXPECT_EQ(from_disk[0]["step_metrics"]["epoch_loss"]["samples"],
            from_memory[0]["step_metrics"]["epoch_loss"]["samples"]);
}

}  // namespace
}  // namespace assay::test
