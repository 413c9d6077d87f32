// What a run of the encoder_decoder plugin measures and reports, on one rank.
#include <algorithm>
#include <cmath>

#include "encoder_decoder_sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class EncoderDecoderTraining : public EncoderDecoderSandbox {
 protected:
  static void expect_a_whole_record(const json& record, double items) {
    const double step_ms = record["phases"]["step"]["mean_ms"];
    double parts_ms = 0;
    for (const char* phase : {"data_wait", "forward", "backward", "optimizer"}) {
      ASSERT_TRUE(record["phases"].contains(phase)) << phase;
      parts_ms += record["phases"][phase]["mean_ms"].get<double>();
    }
    EXPECT_LE(parts_ms, step_ms * 1.001);
    EXPECT_FALSE(record["phases"].contains("train")) << "of a captured step alone";
    EXPECT_FALSE(record["phases"].contains("communication_wait")) << "of several ranks alone";
    EXPECT_EQ(record["work"]["items"], items);
    EXPECT_EQ(record["work"]["item_unit"], "samples");
    EXPECT_NEAR(record["rates"]["items_per_s"].get<double>() * step_ms / 1e3, items, 1e-6);
    EXPECT_NEAR(metric(record, "loss"), std::log(64.0), 0.7);
    EXPECT_EQ(metric(record, "batches"), items / 4);
    // The loader's own account of a step's waits fits into the phase of waiting, step by step.
    const json& waits = record["step_metrics"]["data_wait_ms"];
    const json& phase = record["phases"]["data_wait"]["samples_ms"];
    ASSERT_EQ(waits["samples"].size(), 3u);
    ASSERT_EQ(phase.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_LE(waits["samples"][i].get<double>(), 1.01 * phase[i].get<double>() + 0.01) << i;
    EXPECT_EQ(waits["min"], *std::min_element(waits["samples"].begin(), waits["samples"].end()));
  }
};

TEST_F(EncoderDecoderTraining, AStepIsAnEpochOrABatch) {
  // 22 samples: five batches, and two samples that are left out.
  const auto records =
      run_well(small("num_samples = 22", "unit = [\"epoch\", \"step\"]\nexecution = [\"eager\", \"graph\"]"));
  ASSERT_EQ(records.size(), 4u);
  for (const json& record : records) {
    SCOPED_TRACE(record["axes"].dump());
    const bool epoch = record["axes"]["unit"] == "epoch";
    expect_a_whole_record(record, epoch ? 20 : 4);
    EXPECT_EQ(record["metrics"]["measured_unit"]["word"], record["axes"]["unit"]);
    EXPECT_EQ(record["step_metrics"].contains("epoch_loss"), epoch);
    if (epoch) {
      EXPECT_EQ(record["step_metrics"]["epoch_loss"]["samples"].back(), metric(record, "loss"));
    }
  }
  // Both draw the same masks.
  EXPECT_NEAR(metric(records[0], "loss"), metric(records[1], "loss"), 1e-4);
  EXPECT_NEAR(metric(records[2], "loss"), metric(records[3], "loss"), 1e-4);
  EXPECT_NE(metric(records[0], "loss"), metric(records[2], "loss")) << "15 steps and 3";
  EXPECT_EQ(records[0]["work"]["flops"], 5 * records[2]["work"]["flops"].get<std::int64_t>());
}

TEST_F(EncoderDecoderTraining, TheSummaryHasTheEpochs) {
  const auto records = run_well(small("num_samples = 16", "unit = [\"step\", \"epoch\"]"));
  ASSERT_EQ(records.size(), 2u);
  const json whole = summary();
  EXPECT_EQ(whole["metadata"]["experiment"], "x");
  EXPECT_EQ(whole["config"]["workload"]["params"]["num_samples"], 16);
  EXPECT_EQ(whole["cases"].size(), 2u);
  ASSERT_EQ(whole["epochs"].size(), 3u);
  const json& record = records[1];
  for (std::size_t i = 0; i < 3; ++i) {
    const json& epoch = whole["epochs"][i];
    EXPECT_EQ(epoch["case"], 1);
    EXPECT_EQ(epoch["epoch"], i + 1);
    const double wall_time_s = record["phases"]["step"]["samples_ms"][i].get<double>() / 1e3;
    EXPECT_DOUBLE_EQ(epoch["wall_time_s"], wall_time_s);
    EXPECT_NEAR(epoch["samples_per_s"].get<double>() * wall_time_s, 16, 1e-6);
    EXPECT_EQ(epoch["epoch_loss"], record["step_metrics"]["epoch_loss"]["samples"][i]);
    EXPECT_EQ(epoch["data_wait_ms"], record["step_metrics"]["data_wait_ms"]["samples"][i]);
  }
  ASSERT_EQ(whole["summary"]["epochs"].size(), 1u);
  const json& total = whole["summary"]["epochs"][0];
  EXPECT_EQ(total["case"], 1);
  EXPECT_EQ(total["epochs"], 3);
  EXPECT_DOUBLE_EQ(total["mean_epoch_time_s"], record["phases"]["step"]["mean_ms"].get<double>() / 1e3);
  EXPECT_EQ(total["samples_per_s"], record["rates"]["items_per_s"]);
  EXPECT_EQ(total["peak_memory_mib"], record["memory"]["peak_total_mib"]);
}

TEST_F(EncoderDecoderTraining, ARunOfStepsHasNoEpochs) {
  run_well(small("num_samples = 16\nunit = \"step\""));
  const json whole = summary();
  EXPECT_FALSE(whole.contains("epochs"));
  EXPECT_FALSE(whole["summary"].contains("epochs"));
}

TEST_F(EncoderDecoderTraining, EveryPathIsVerified) {
  auto text =
      small("num_samples = 16\nunit = \"step\"",
            "execution = [\"eager\", \"graph\"]\nattention = [\"naive\", \"flash\"]\namp = [\"off\", \"bf16\"]");
  text.measure = "warmup = 0\nsteps = 1";
  const auto records = run_well(text);
  ASSERT_EQ(records.size(), 8u);
  for (const json& record : records) {
    EXPECT_PRED2(contains, record["verify"]["text"].get<std::string>(), "starting loss");
    EXPECT_PRED2(contains, record["verify"]["text"].get<std::string>(), "without dropout");
  }
}

// A loss that is the mean of one or two tokens' is off by more than one of many.
TEST_F(EncoderDecoderTraining, FewTokensIn16BitsAreVerified) {
  auto text = small("unit = \"step\"\namp = \"bf16\"", "sequence_length = [2, 3]\n\"run.seed\" = [1, 4]\n");
  for (const std::string fixed : {"sequence_length = 8\n", "batch_size = 4\n"})
    text.params.erase(text.params.find(fixed), fixed.size());
  text.params += "\nbatch_size = 1";
  run_well(text);
}

// Random tokens teach nothing but their frequency, yet a model that is trained at all leaves its random start.
TEST_F(EncoderDecoderTraining, Trains) {
  auto text = small("num_samples = 64\nlr = 0.003\ndropout = 0.0");
  text.measure = "warmup = 0\nsteps = 12";
  const auto records = run_well(text);
  ASSERT_EQ(records.size(), 1u);
  const json& losses = records[0]["step_metrics"]["epoch_loss"]["samples"];
  EXPECT_LT(losses.back().get<double>(), losses.front().get<double>() - 0.3) << losses;
}

TEST_F(EncoderDecoderTraining, TheDefaultModelHas3527168Parameters) {
  ExperimentText text{.plugin = "encoder_decoder",
                      .params = "batch_size = 1\nnum_samples = 1\nunit = \"step\"",
                      .measure = "warmup = 0\nsteps = 1"};
  const auto records = run_well(text);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(metric(records[0], "parameters"), 3'527'168);
}

// What "auto" means is known when the device is, and the records have it; the experiment's cases are found by it.
TEST_F(EncoderDecoderTraining, AResumedSweepGrowsInFrontWithAnAmpThatTheDeviceDecides) {
  const auto text = [](const std::string& rates) {
    return small("num_samples = 16\namp = \"auto\"\n", "lr = " + rates);
  };
  ASSERT_EQ(run_experiment(text("[0.01, 0.02]")).exit.code, 0) << output();
  const RunResult resumed = run_experiment(text("[0.005, 0.01, 0.02]"), {"--resume"});
  EXPECT_EQ(resumed.exit.code, 0) << resumed.output;
  const nlohmann::json reported = summary();
  EXPECT_EQ(reported["summary"]["planned"], 3);
  ASSERT_EQ(reported["cases"].size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(reported["cases"][static_cast<std::size_t>(i)]["index"], i);
}

}  // namespace
}  // namespace assay::test
