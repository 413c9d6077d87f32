#include "results/epochs.hpp"

#include "unit/record/sample_record.hpp"

#include <gtest/gtest.h>

namespace assay::host::results {
namespace {

// Two epochs of 1,000 samples, two seconds and four.
Json training() {
  Json record = ok_record();
  record["index"] = 3;
  record["metrics"]["measured_unit"] = {{"value", 0}, {"unit", ""}, {"direction", 0}, {"word", "epoch"}};
  record["phases"]["step"]["samples_ms"] = {2000.0, 4000.0};
  record["phases"]["step"]["mean_ms"] = 3000.0;
  record["work"]["item_unit"] = "samples";
  record["rates"]["items_per_s"] = 1000.0 / 3;
  record["step_metrics"] = {{"epoch_loss", {{"unit", ""}, {"mean", 9.25}, {"samples", {9.5, 9.0}}}},
                            {"data_wait_ms", {{"unit", "ms"}, {"mean", 1.5}, {"samples", {1.0, 2.0}}}}};
  return record;
}

Json with(Json record, const char* pointer, const Json& value) {
  record[Json::json_pointer(pointer)] = value;
  return record;
}

TEST(Epochs, OneEntryForEachMeasuredStep) {
  const Json epochs = epochs_json({ok_record(), training()});
  ASSERT_EQ(epochs.size(), 2u);
  const double waits[] = {1.0, 2.0}, losses[] = {9.5, 9.0}, times[] = {2.0, 4.0}, rates[] = {500.0, 250.0};
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(epochs[i]["case"], 3);
    EXPECT_EQ(epochs[i]["epoch"], i + 1);
    EXPECT_EQ(epochs[i]["wall_time_s"], times[i]);
    EXPECT_NEAR(epochs[i]["samples_per_s"].get<double>(), rates[i], 1e-9);
    EXPECT_EQ(epochs[i]["epoch_loss"], losses[i]);
    EXPECT_EQ(epochs[i]["data_wait_ms"], waits[i]);
    EXPECT_EQ(epochs[i].size(), 6u) << epochs[i];
  }
}

TEST(Epochs, EachHasTheUtilisationThatWasSampledOverIt) {
  const Json told = with(training(), "/telemetry/step_utilisation_percent", Json({60.5, 70.25}));
  const Json epochs = epochs_json({told});
  ASSERT_EQ(epochs.size(), 2u);
  EXPECT_EQ(epochs[0]["utilisation_percent"], 60.5);
  EXPECT_EQ(epochs[1]["utilisation_percent"], 70.25);
  const Json of_others = with(training(), "/telemetry/step_utilisation_percent", Json({60.5}));
  EXPECT_FALSE(epochs_json({of_others})[0].contains("utilisation_percent"));
}

TEST(Epochs, EachHasThePeakOfItsOwnMemory) {
  const Json told = with(training(), "/memory/step_peak_mib/samples", Json({780.5, 790.75}));
  const Json epochs = epochs_json({told});
  ASSERT_EQ(epochs.size(), 2u);
  EXPECT_EQ(epochs[0]["peak_memory_mib"], 780.5);
  EXPECT_EQ(epochs[1]["peak_memory_mib"], 790.75);
  EXPECT_FALSE(epochs_json({training()})[0].contains("peak_memory_mib"));
}

TEST(Epochs, NothingOfOtherRecords) {
  EXPECT_TRUE(epochs_json({ok_record(), oom_record()}).empty());
  EXPECT_TRUE(epochs_summary_json({ok_record(), oom_record()}).is_null());
  const Json steps = with(training(), "/metrics/measured_unit/word", "step");
  EXPECT_TRUE(epochs_json({steps}).empty());
  EXPECT_TRUE(epochs_summary_json({steps}).is_null());
  Json wrong = training();  // one that failed its verification has no times
  wrong.erase("phases");
  EXPECT_TRUE(epochs_json({wrong}).empty());
  EXPECT_TRUE(epochs_summary_json({wrong}).is_null());
}

// A metric that not every step reported cannot be split by epoch.
TEST(Epochs, AMetricOfSomeStepsAloneIsLeftOut) {
  const Json some = with(training(), "/step_metrics/data_wait_ms/samples", Json({1.0}));
  const Json epochs = epochs_json({some});
  ASSERT_EQ(epochs.size(), 2u);
  for (const Json& epoch : epochs) {
    EXPECT_FALSE(epoch.contains("data_wait_ms")) << epoch;
    EXPECT_TRUE(epoch.contains("epoch_loss")) << epoch;
  }
}

TEST(Epochs, AMetricDoesNotReplaceWhatAnEpochIs) {
  const Json twin =
      with(training(), "/step_metrics/epoch", Json({{"unit", ""}, {"mean", 0.0}, {"samples", {70.0, 71.0}}}));
  EXPECT_EQ(epochs_json({twin})[1]["epoch"], 2);
}

TEST(Epochs, WorkThatIsNotStatedHasNoRate) {
  Json record = training();
  record.erase("work");
  record["rates"].erase("items_per_s");
  for (const Json& epoch : epochs_json({record}))
    for (const auto& [name, value] : epoch.items()) EXPECT_FALSE(name.ends_with("_per_s")) << name;
  const Json summary = epochs_summary_json({record});  // items() keeps no record alive
  for (const auto& [name, value] : summary[0].items()) EXPECT_FALSE(name.ends_with("_per_s")) << name;
}

TEST(Epochs, TheirSummary) {
  Json gpu = with(training(), "/telemetry/gpu_utilisation_percent/mean", 97.5);
  gpu["index"] = 4;
  const Json cpu = with(training(), "/telemetry/cpu_utilisation_percent/mean", 55.0);
  const Json summary = epochs_summary_json({ok_record(), cpu, gpu});
  const Json expected{{"case", 3},
                      {"epochs", 2},
                      {"mean_epoch_time_s", 3.0},
                      {"samples_per_s", 1000.0 / 3},
                      {"peak_memory_mib", 790.75},
                      {"utilisation_percent", 55.0}};
  ASSERT_EQ(summary.size(), 2u);
  EXPECT_EQ(summary[0], expected);
  EXPECT_EQ(summary[1]["case"], 4);
  EXPECT_EQ(summary[1]["utilisation_percent"], 97.5);
  EXPECT_FALSE(epochs_summary_json({training()})[0].contains("utilisation_percent"));
}

}  // namespace
}  // namespace assay::host::results
