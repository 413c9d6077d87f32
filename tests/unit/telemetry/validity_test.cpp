#include "telemetry/validity.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include "record/json.hpp"

#include "samples.hpp"

namespace assay::host::telemetry {
namespace {

using record::ValidityVerdict;

using test::gpu_sample;
using test::with_foreign;

// `held_down` of 20 samples have these reasons.
TelemetryFigures gpu_figures(std::uint64_t reasons, int held_down, std::uint64_t foreign) {
  TelemetryFigures figures(0.05);
  figures.begin(with_foreign(gpu_sample(0, 0), foreign));
  for (int i = 0; i < 20; ++i) {
    auto sample = gpu_sample(90, 0.05);
    sample.throttle = i < held_down ? reasons : 0;
    figures.within(sample);
  }
  figures.end(with_foreign(gpu_sample(90, 0.05), foreign));
  return figures;
}

record::Validity of_gpu(const TelemetryFigures& figures) { return validity_of(false, &figures, {}); }

record::Validity of_cpu(std::optional<double> others_share, std::optional<double> steal_share = 0.0) {
  Contention contention;
  contention.window_s = 0.1;
  contention.others_share = others_share;
  if (others_share) contention.steal_share = steal_share;
  return validity_of(true, nullptr, contention);
}

TEST(Validity, OfAGpuToItselfAtFullClocks) {
  const record::Validity validity = of_gpu(gpu_figures(ASSAY_THROTTLE_IDLE, 20, 0));
  EXPECT_EQ(validity.verdict, record::ValidityVerdict::valid) << validity.text;
}

TEST(Validity, ClocksHeldDownInATwentiethOfTheSamplesCount) {
  const record::Validity validity = of_gpu(gpu_figures(ASSAY_THROTTLE_POWER_CAP, 8, 0));
  EXPECT_EQ(validity.verdict, record::ValidityVerdict::throttled);
  EXPECT_EQ(validity.text, "power_cap held the clocks down in 40% of 20 samples");
  EXPECT_EQ(of_gpu(gpu_figures(ASSAY_THROTTLE_THERMAL, 1, 0)).verdict, record::ValidityVerdict::throttled);
  TelemetryFigures rare(0.05);
  for (int i = 0; i < 100; ++i) {
    auto sample = gpu_sample(90, 0.05);
    sample.throttle = i < 4 ? ASSAY_THROTTLE_POWER_CAP : 0;
    rare.within(sample);
  }
  EXPECT_EQ(of_gpu(rare).verdict, record::ValidityVerdict::valid);
}

TEST(Validity, ClocksThatSomebodyHasSetAreNoAccident) {
  EXPECT_EQ(of_gpu(gpu_figures(ASSAY_THROTTLE_APPLICATION_CLOCKS, 20, 0)).verdict, record::ValidityVerdict::valid);
}

TEST(Validity, AnotherProcessOnTheGpuIsWorseThanThrottling) {
  const record::Validity validity = of_gpu(gpu_figures(ASSAY_THROTTLE_POWER_CAP, 20, 1));
  EXPECT_EQ(validity.verdict, record::ValidityVerdict::contended);
  EXPECT_EQ(validity.text,
            "power_cap held the clocks down in 100% of 20 samples; 1 other process computes on the device");
}

TEST(Validity, AShortWindowSaysOnlyWhatIsWrong) {
  TelemetryFigures fine(0.05), throttled(0.05);
  fine.end(gpu_sample(90, 0.01));
  EXPECT_EQ(of_gpu(fine).verdict, record::ValidityVerdict::unknown);
  auto sample = gpu_sample(90, 0.01);
  sample.throttle = ASSAY_THROTTLE_HW_SLOWDOWN;
  throttled.end(sample);
  EXPECT_EQ(of_gpu(throttled).verdict, record::ValidityVerdict::throttled);
}

TEST(Validity, WhatADeviceDoesNotTellIsNamed) {
  TelemetryFigures figures(0.05);
  figures.within(gpu_sample(90, 0.05));
  const record::Validity validity = of_gpu(figures);
  EXPECT_EQ(validity.verdict, record::ValidityVerdict::valid);
  EXPECT_NE(validity.text.find("who else uses it is not told"), std::string::npos) << validity.text;

  EXPECT_EQ(validity_of(false, nullptr, {}).verdict, record::ValidityVerdict::unknown);
  TelemetryFigures silent(0.05);
  auto sample = gpu_sample(90, 0.05);
  sample.known = ASSAY_TELEMETRY_SM_CLOCK;
  silent.within(sample);
  EXPECT_EQ(of_gpu(silent).verdict, record::ValidityVerdict::unknown);
}

TEST(Validity, OfProcessorsIsWhoElseTookTheirTime) {
  EXPECT_EQ(of_cpu(0.02).verdict, record::ValidityVerdict::valid);
  EXPECT_EQ(of_cpu(std::nullopt).verdict, record::ValidityVerdict::unknown);
  const record::Validity contended = of_cpu(0.2, 0.1);
  EXPECT_EQ(contended.verdict, record::ValidityVerdict::contended);
  EXPECT_EQ(contended.text,
            "other processes took 20% of the processors; the hypervisor gave 10% of the processors to other guests");
}

TEST(Validity, StandsInTheRecordByName) {
  record::CaseResult result;
  result.validity = {record::ValidityVerdict::throttled, "hot"};
  EXPECT_EQ(record::to_json(result)["validity"].dump(), R"({"verdict":"throttled","text":"hot"})");
}

}  // namespace
}  // namespace assay::host::telemetry
