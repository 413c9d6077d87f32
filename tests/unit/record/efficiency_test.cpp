// The step against the device's peak and its energy, and the tax of communication.
#include "record/efficiency.hpp"

#include <gtest/gtest.h>

#include "rank_samples.hpp"
#include "record/device_peaks.hpp"
#include "sample_record.hpp"

namespace assay::host {
namespace {

using record::CaseResult;
using record::Peak;

// 10 steps of 10 ms, of 4.947 GFLOP and 24 MB each: half of what an H200 does in bf16, and half of its bandwidth.
CaseResult on(const char* device, const char* arithmetic) {
  CaseResult result;
  result.device.emplace();
  result.device->kind = "cuda", result.device->name = device;
  result.work = {4'947'000'000'000, 24'000'000'000, 1000, "tokens", arithmetic};
  result.phases = {{"step", record::phase_figures(std::vector<double>(10, 10.0), 10, 10, 0.95)}};
  result.rates = record::rate_figures(4.947e12, 24e9, 1000, 10);
  return result;
}

TEST(Efficiency, IsTheRateOverThePeakThatTheMakerStates) {
  CaseResult result = on("NVIDIA H200", "bf16");
  record::set_efficiency(result);
  ASSERT_TRUE(result.efficiency && result.efficiency->stated);
  EXPECT_NEAR(*result.efficiency->mfu, 0.5, 1e-12);
  EXPECT_NEAR(*result.efficiency->bound_percent, 50, 1e-9);
  EXPECT_EQ(result.efficiency->stated->text,
            "NVIDIA H200 Tensor Core GPU datasheet: 4800 GB/s, 989.4 TFLOP/s in bf16, dense");
  EXPECT_FALSE(result.efficiency->mfu_measured);
}

TEST(Efficiency, TheBoundIsThatOfTheSlowerPartOfTheRoofline) {
  CaseResult result = on("NVIDIA H200", "bf16");
  result.rates->gbytes_per_s = 4320;
  record::set_efficiency(result);
  EXPECT_NEAR(*result.efficiency->mfu, 0.5, 1e-12);
  EXPECT_NEAR(*result.efficiency->bound_percent, 90, 1e-9);
}

TEST(Efficiency, NothingIsGuessed) {
  for (const char* name : {"NVIDIA H900", "NVIDIA H200 MIG 1g.18gb", "AMD EPYC", ""}) {
    CaseResult unknown = on(name, "bf16");
    record::set_efficiency(unknown);
    EXPECT_FALSE(unknown.efficiency.has_value()) << name;
  }
  CaseResult unstated = on("NVIDIA H200", "");
  record::set_efficiency(unstated);
  EXPECT_FALSE(unstated.efficiency->mfu);
  EXPECT_FALSE(unstated.efficiency->bound_percent) << "the operations may be what takes longest";
  CaseResult no_such = on("NVIDIA A100-SXM4-80GB", "fp8");
  record::set_efficiency(no_such);
  EXPECT_FALSE(no_such.efficiency->mfu);
}

TEST(Efficiency, AMeasuredPeakHasFiguresOfItsOwn) {
  CaseResult result = on("AMD EPYC", "bf16");
  result.efficiency = record::Efficiency{.measured = Peak{4.947e5 * 1.25, 9600.0, "by trial"}};
  record::set_efficiency(result);
  EXPECT_FALSE(result.efficiency->mfu);
  EXPECT_FALSE(result.efficiency->bound_percent);
  EXPECT_NEAR(*result.efficiency->mfu_measured, 0.8, 1e-12);
  EXPECT_NEAR(*result.efficiency->bound_percent_measured, 80, 1e-9);
}

TEST(Efficiency, APeakBelowTheStepsOwnRateIsNone) {
  CaseResult result = on("AMD EPYC", "bf16");
  result.efficiency = record::Efficiency{.measured = Peak{4.947e5 / 1.5, 9600.0, "by trial"}};
  result.validity = {record::ValidityVerdict::valid, "nobody else"};
  record::set_efficiency(result);
  EXPECT_EQ(result.validity->verdict, record::ValidityVerdict::valid);
  EXPECT_FALSE(result.efficiency.has_value());
  ASSERT_EQ(result.notes->size(), 1u);
  EXPECT_EQ(result.notes->front().find("the peak measured after the steps, 3.298e+05 GFLOP/s, is below"), 0u)
      << result.notes->front();
}

TEST(Efficiency, RatesThatNoDisturbanceExplainsAreSuspicious) {
  using enum record::ValidityVerdict;
  for (const auto& [seen, becomes] : {std::pair(valid, unknown), {contended, contended}}) {
    CaseResult result = on("AMD EPYC", "bf16");
    result.efficiency = record::Efficiency{.measured = Peak{4.947e5 / 137, 9600.0, "by trial"}};
    result.validity = {seen, "as seen"};
    record::set_efficiency(result);
    EXPECT_FALSE(result.efficiency.has_value());
    ASSERT_EQ(result.notes->size(), 1u);
    EXPECT_EQ(result.notes->front().find("suspicious: the steps' 4.947e+05 GFLOP/s are 137 times the peak of 3611 "),
              0u)
        << result.notes->front();
    EXPECT_EQ(result.validity->verdict, becomes);
    EXPECT_EQ(result.validity->text, result.notes->front() + "; as seen");
  }
}

TEST(Efficiency, EnergyIsOfAllItemsOfTheWindow) {
  CaseResult result = on("NVIDIA H200", "bf16");
  result.telemetry.emplace().energy_j = 50;
  record::set_efficiency(result);
  EXPECT_DOUBLE_EQ(*result.efficiency->j_per_item, 50.0 / 10'000);
  EXPECT_DOUBLE_EQ(*result.efficiency->items_per_j, 200);
  record::CaseRecord whole;
  whole.result = result;
  EXPECT_EQ(cell_of(whole, "j_per_token").number(), 50.0 / 10'000);
  EXPECT_EQ(cell_of(whole, "tokens_per_j").number(), 200);
  EXPECT_EQ(record::value_of(whole, "j_per_token").direction, Direction::lower_is_better);
  EXPECT_EQ(record::value_of(whole, "tokens_per_j").direction, Direction::higher_is_better);
  EXPECT_EQ(record::value_of(whole, "mfu").direction, Direction::higher_is_better);
  // A sample of four steps has four times the items.
  result.sampling.emplace().inner = 4;
  record::set_efficiency(result);
  EXPECT_DOUBLE_EQ(*result.efficiency->j_per_item, 50.0 / 40'000);
  // Steps after a look at the samples have taken their part of the window's energy.
  result.sampling->unrecorded_steps = 10;
  record::set_efficiency(result);
  EXPECT_DOUBLE_EQ(*result.efficiency->j_per_item, 50.0 / 50'000);
  EXPECT_DOUBLE_EQ(*result.efficiency->items_per_j, 50'000 / 50.0);
}

// Two ranks on a device each: their work over both devices' peaks.
class EfficiencyOfRanks : public ::testing::Test {
 protected:
  EfficiencyOfRanks() {
    for (std::int32_t rank : {0, 1}) {
      record::RankPart part{rank, "n0", on("NVIDIA H200", "bf16"), "gpu" + std::to_string(rank)};
      part.result.efficiency = record::Efficiency{.measured = Peak{5e5, 4000.0, "by trial"}};
      part.result.telemetry.emplace().energy_j = 50;
      parts_.push_back(part);
    }
  }
  CaseResult merged() const { return record::merge_ranks(parts_, 0.95); }
  std::vector<record::RankPart> parts_;
};

TEST_F(EfficiencyOfRanks, DevicesAddUp) {
  const CaseResult all = merged();
  EXPECT_NEAR(*all.efficiency->mfu, 0.5, 1e-12);
  EXPECT_NEAR(*all.efficiency->stated->gflop_per_s, 2 * 989.4e3, 1e-6);
  EXPECT_NEAR(*all.efficiency->measured->gflop_per_s, 1e6, 1e-6);
  EXPECT_DOUBLE_EQ(*all.efficiency->j_per_item, 100.0 / 20'000);
}

TEST_F(EfficiencyOfRanks, ADeviceThatRanksShareCountsOnce) {
  parts_[1].device_id = parts_[0].device_id;
  const CaseResult all = merged();
  EXPECT_NEAR(*all.efficiency->mfu, 1.0, 1e-12);
  EXPECT_NEAR(*all.efficiency->measured->gflop_per_s, 1e6, 1e-6) << "each rank has measured its part";
  EXPECT_DOUBLE_EQ(*all.efficiency->j_per_item, 50.0 / 20'000);
}

// Not twice the work over one device's peak, nor one copy's work over both.
TEST_F(EfficiencyOfRanks, ACopyIsSetAgainstItsOwnPart) {
  for (record::RankPart& part : parts_) part.result.copies = 2;
  const CaseResult all = merged();
  EXPECT_NEAR(*all.efficiency->mfu, 0.5, 1e-12);
  EXPECT_NEAR(*all.efficiency->mfu_measured, 4.947e5 / 5e5, 1e-9);
  EXPECT_DOUBLE_EQ(*all.efficiency->j_per_item, 100.0 / 20'000);
}

TEST_F(EfficiencyOfRanks, ADeviceWithoutAPeakLeavesNone) {
  parts_[1].result.device->name = "NVIDIA H900";
  parts_[1].result.efficiency.reset();
  const CaseResult all = merged();
  EXPECT_FALSE(all.efficiency->mfu);
  EXPECT_FALSE(all.efficiency->mfu_measured);
  EXPECT_TRUE(all.efficiency->j_per_item);
}

TEST_F(EfficiencyOfRanks, TheTaxIsOverTheSlowestRanksSilentSteps) {
  EXPECT_FALSE(merged().silent.has_value());
  parts_[0].result.silent = record::SilentPass{10, 7.0, std::nullopt};
  EXPECT_FALSE(merged().silent.has_value()) << "nobody knows whether the other rank is slower";
  parts_[1].result.silent = record::SilentPass{10, 8.0, std::nullopt};
  const CaseResult all = merged();
  EXPECT_EQ(all.silent->step_mean_ms, 8.0);
  EXPECT_DOUBLE_EQ(*all.silent->communication_tax, 0.25);
  record::CaseRecord whole;
  whole.result = all;
  EXPECT_EQ(cell_of(whole, "communication_tax").number(), 0.25);
  EXPECT_EQ(cell_of(whole, "silent_step_ms").number(), 8.0);
}

TEST(EnergyNote, SaysWhenCounterAndPowerAreApart) {
  record::Telemetry telemetry;
  telemetry.energy_j = 100;
  EXPECT_EQ(record::energy_note(telemetry), "");
  telemetry.power_integral_j = 104.9;
  EXPECT_EQ(record::energy_note(telemetry), "");
  telemetry.power_integral_j = 80;
  EXPECT_EQ(record::energy_note(telemetry),
            "energy: the device's counter says 100 J, its samples of power 80 J (-20%): do not rely on figures per "
            "joule");
}

TEST(DevicePeaks, BytesAreKnownWithoutTheArithmetic) {
  EXPECT_EQ(record::stated_peak("NVIDIA B200", "")->gbytes_per_s, 8000);
  EXPECT_FALSE(record::stated_peak("NVIDIA B200", "")->gflop_per_s);
  EXPECT_EQ(record::stated_peak("NVIDIA H100 80GB HBM3", "tf32")->gflop_per_s, 494.7e3);
  EXPECT_EQ(record::stated_peak("NVIDIA A100-SXM4-40GB", "bf16")->gflop_per_s,
            record::stated_peak("NVIDIA A100-SXM4-40GB", "fp16")->gflop_per_s);
}

}  // namespace
}  // namespace assay::host
