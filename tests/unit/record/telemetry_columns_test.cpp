#include "record/columns.hpp"
#include "record/merge.hpp"

#include "rank_samples.hpp"
#include "sample_record.hpp"

#include <gtest/gtest.h>

namespace assay::host {
namespace {

Json figure(double mean, double min, double max) { return {{"mean", mean}, {"min", min}, {"max", max}}; }

Json gpu_telemetry(double utilisation_percent, double energy_j) {
  return {{"samples", 20},
          {"period_ms", 50.0},
          {"gpu_utilisation_percent", figure(utilisation_percent, utilisation_percent - 10, utilisation_percent + 5)},
          {"power_w", figure(600, 500, 690)},
          {"energy_j", energy_j},
          {"throttle", {{"power_cap", 0.4}}},
          {"foreign_processes", 0}};
}

std::string csv(const Json& record, const char* column) { return csv_text(cell_of(record, column)); }

TEST(TelemetryColumns, EachNameHasItsCell) {
  Json record = ok_record();
  record["telemetry"] = gpu_telemetry(87.5, 1234);
  record["validity"] = {{"verdict", "throttled"}, {"text", "power_cap held the clocks down in 40% of 20 samples"}};
  EXPECT_EQ(csv(record, "telemetry.gpu_utilisation_percent.mean"), "87.5");
  EXPECT_EQ(csv(record, "telemetry.gpu_utilisation_percent.min"), "77.5");
  EXPECT_EQ(csv(record, "telemetry.power_w.max"), "690.0");
  EXPECT_EQ(csv(record, "telemetry.energy_j"), "1234.0");
  EXPECT_EQ(csv(record, "telemetry.samples"), "20");
  EXPECT_EQ(csv(record, "telemetry.foreign_processes"), "0");
  EXPECT_EQ(csv(record, "telemetry.throttle"), "power_cap 40%");
  EXPECT_EQ(csv(record, "utilisation_percent"), "87.5");
  EXPECT_EQ(csv(record, "validity"), "throttled");
  EXPECT_EQ(csv(record, "validity.text"), "power_cap held the clocks down in 40% of 20 samples");
  EXPECT_EQ(csv(record, "telemetry.cpu_utilisation_percent.mean"), "");
}

TEST(TelemetryColumns, UtilisationIsThatOfTheDeviceThatThereIs) {
  Json record = ok_record();
  EXPECT_EQ(csv(record, "utilisation_percent"), "");
  EXPECT_EQ(csv(record, "validity"), "");
  EXPECT_EQ(csv(record, "telemetry.throttle"), "");
  record["telemetry"] = {{"cpu_utilisation_percent", figure(99.5, 99, 100)}, {"throttle", Json::object()}};
  EXPECT_EQ(csv(record, "utilisation_percent"), "99.5");
  EXPECT_EQ(csv(record, "telemetry.throttle"), "none");
}

std::vector<RankPart> measured_ranks() {
  std::vector<RankPart> ranks = three_ranks();
  const double utilisation_percent[] = {90, 60, 75};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].part["telemetry"] = gpu_telemetry(utilisation_percent[i], 100);
    ranks[i].part["validity"] = {{"verdict", "valid"}, {"text", "alone"}};
  }
  return ranks;
}

TEST(TelemetryOfRanks, FiguresAreMeansWithTheExtremesOfAll) {
  auto ranks = measured_ranks();
  ranks[1].part["telemetry"]["throttle"] = {{"power_cap", 0.5}, {"thermal", 0.1}};
  ranks[2].part["telemetry"]["foreign_processes"] = 1;
  const Json merged = merge_ranks(ranks, 0.95);
  const Json& telemetry = merged["telemetry"];
  EXPECT_EQ(telemetry["gpu_utilisation_percent"], figure(75, 50, 95));
  EXPECT_EQ(telemetry["energy_j"], 300.0) << "of three GPUs";
  EXPECT_EQ(telemetry["throttle"], Json({{"power_cap", 0.5}, {"thermal", 0.1}}));
  EXPECT_EQ(telemetry["foreign_processes"], 1);
  EXPECT_EQ(telemetry["samples"], 20);
  EXPECT_EQ(merged["by_rank"][1]["telemetry"],
            Json({{"gpu_utilisation_percent", 60.0}, {"power_w", 600.0}, {"energy_j", 100.0}}));
  EXPECT_EQ(merged["by_rank"][1]["validity"], "valid");
}

TEST(TelemetryOfRanks, EnergyOfASharedDeviceCountsOnce) {
  auto ranks = measured_ranks();
  for (RankPart& rank : ranks) rank.host = "n0";
  EXPECT_EQ(merge_ranks(ranks, 0.95)["telemetry"]["energy_j"], 100.0);
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i].device_id = i < 2 ? "0000:18:00.0" : "0000:2a:00.0";
  EXPECT_EQ(merge_ranks(ranks, 0.95)["telemetry"]["energy_j"], 200.0);
}

TEST(TelemetryOfRanks, TheVerdictIsTheWorstRanks) {
  auto ranks = measured_ranks();
  EXPECT_EQ(merge_ranks(ranks, 0.95)["validity"], Json({{"verdict", "valid"}, {"text", "alone"}}));
  ranks[1].part["validity"] = {{"verdict", "throttled"}, {"text", "hot"}};
  ranks[2].part["validity"] = {{"verdict", "unknown"}, {"text", "short"}};
  EXPECT_EQ(merge_ranks(ranks, 0.95)["validity"], Json({{"verdict", "throttled"}, {"text", "rank 1 on n1: hot"}}));
  ranks[0].part["validity"] = {{"verdict", "contended"}, {"text", "shared"}};
  EXPECT_EQ(merge_ranks(ranks, 0.95)["validity"], Json({{"verdict", "contended"}, {"text", "rank 0 on n0: shared"}}));
}

TEST(TelemetryOfRanks, RanksThatToldNothingLeaveNothing) {
  auto ranks = measured_ranks();
  ranks[0].part.erase("telemetry");
  const Json merged = merge_ranks(ranks, 0.95);
  EXPECT_EQ(merged["telemetry"]["gpu_utilisation_percent"], figure(67.5, 50, 80));
  EXPECT_FALSE(merged["by_rank"][0].contains("telemetry"));
  const Json bare = merge_ranks(three_ranks(), 0.95);
  EXPECT_FALSE(bare.contains("telemetry"));
  EXPECT_FALSE(bare.contains("validity"));
}

}  // namespace
}  // namespace assay::host
