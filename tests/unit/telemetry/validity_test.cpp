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
TelemetryFigures gpu_figures(std::uint64_t reasons, int held_down, std::optional<std::uint64_t> foreign) {
  const auto told = [&foreign](assay_telemetry_sample sample) {
    return foreign ? with_foreign(sample, *foreign) : sample;
  };
  TelemetryFigures figures(0.05, {.average_s = 0});
  figures.begin(told(gpu_sample(0, 0)));
  for (int i = 0; i < 20; ++i) {
    auto sample = gpu_sample(90, 0.05);
    sample.throttle = i < held_down ? reasons : 0;
    figures.within(sample);
  }
  figures.end(told(gpu_sample(90, 0.05)));
  return figures;
}

// One sample a period with these clocks, all of them held down by `reasons`.
TelemetryFigures clocks(const std::vector<double>& mhz, std::uint64_t reasons) {
  TelemetryFigures figures(0.05, {.average_s = 0});
  figures.begin(gpu_sample(0, 0));
  for (const double clock : mhz) {
    auto sample = gpu_sample(90, 0.05);
    sample.sm_clock_mhz = clock;
    sample.throttle = reasons;
    figures.within(sample);
  }
  return figures;
}

std::vector<double> rising(double from_mhz, double by_mhz) {
  std::vector<double> mhz;
  for (int i = 0; i < 20; ++i) mhz.push_back(from_mhz + i * by_mhz);
  return mhz;
}

record::Validity of_gpu(const TelemetryFigures& figures, record::Number power_limit_w = {}) {
  return validity_of(false, &figures, {}, power_limit_w);
}

record::Validity of_cpu(std::optional<double> others_share, std::optional<double> steal_share = 0.0) {
  Contention contention;
  contention.window_s = 0.1;
  contention.others_share = others_share;
  if (others_share) contention.steal_share = steal_share;
  return validity_of(true, nullptr, contention);
}

TEST(Validity, AWindowTooShortToJudgeSaysWhatIsNeeded) {
  const record::Validity validity = of_cpu(std::nullopt);
  EXPECT_EQ(validity.verdict, ValidityVerdict::unknown);
  EXPECT_EQ(validity.text,
            "measured for 0.1 s, and 0.2 s are needed to see contention; use more steps ([measure] steps)");
}

TEST(Validity, OfAGpuToItselfAtFullClocks) {
  const record::Validity validity = of_gpu(gpu_figures(ASSAY_THROTTLE_IDLE, 20, 0));
  EXPECT_EQ(validity.verdict, ValidityVerdict::valid) << validity.text;
}

// Power that is averaged over a second reaches back before a window of less: the words leave it out.
TEST(Validity, WordsLeaveOutPowerOfBeforeTheWindow) {
  const auto of = [](double average_s) {
    TelemetryFigures figures(0.05, {.average_s = average_s});
    figures.begin(gpu_sample(0, 0), 10);
    for (int i = 1; i <= 12; ++i) {
      auto sample = gpu_sample(90, 0.05);
      sample.throttle = ASSAY_THROTTLE_POWER_CAP;
      figures.within(sample, 10 + i * 0.05);
    }
    return of_gpu(figures, 700.0).text;
  };
  EXPECT_NE(of(0).find("SM clock 1700 MHz on average, 600 W on average"), std::string::npos) << of(0);
  EXPECT_EQ(of(1).find("W on average"), std::string::npos) << of(1);
  EXPECT_NE(of(1).find("SM clock 1700 MHz on average"), std::string::npos) << of(1);
}

TEST(Validity, AGpuAtItsPowerCapWithASteadyClockIsPowerLimited) {
  const record::Validity validity = of_gpu(gpu_figures(ASSAY_THROTTLE_POWER_CAP, 8, std::nullopt), 700.0);
  EXPECT_EQ(validity.verdict, ValidityVerdict::power_limited);
  EXPECT_EQ(
      validity.text,
      "at the power cap of 700 W in 40% of the time; SM clock 1700 MHz on average, 600 W on average; the clock is "
      "steady; who else uses it is unknown");
  EXPECT_EQ(of_gpu(clocks(rising(1950, -15), ASSAY_THROTTLE_POWER_CAP)).verdict, ValidityVerdict::throttled)
      << "its clock has not settled";
}

TEST(Validity, HeatAndTheHardwaresBrakeAreThrottling) {
  for (const std::uint64_t reason :
       {ASSAY_THROTTLE_THERMAL, ASSAY_THROTTLE_HW_THERMAL, ASSAY_THROTTLE_HW_SLOWDOWN, ASSAY_THROTTLE_POWER_BRAKE})
    EXPECT_EQ(of_gpu(gpu_figures(reason, 2, 0)).verdict, ValidityVerdict::throttled) << reason;
  EXPECT_EQ(of_gpu(gpu_figures(ASSAY_THROTTLE_THERMAL, 2, 0)).text,
            "thermal held the clocks down in 10% of the time (20 samples)");
  EXPECT_EQ(of_gpu(gpu_figures(ASSAY_THROTTLE_THERMAL, 1, 0)).verdict, ValidityVerdict::valid) << "seen once";
  TelemetryFigures rare(0.05);
  for (int i = 0; i < 100; ++i) {
    auto sample = gpu_sample(90, 0.05);
    sample.throttle = i < 4 ? ASSAY_THROTTLE_THERMAL : 0;
    rare.within(sample);
  }
  EXPECT_EQ(of_gpu(rare).verdict, ValidityVerdict::valid);
}

TEST(Validity, AClockThatGoesElsewhereIsThrottling) {
  const record::Validity validity = of_gpu(clocks(rising(1950, -15), 0));
  EXPECT_EQ(validity.verdict, ValidityVerdict::throttled);
  EXPECT_NE(validity.text.find("the SM clock went from 1905 to 1710 MHz (-10%)"), std::string::npos) << validity.text;
  EXPECT_EQ(of_gpu(clocks(rising(1950, -1), 0)).verdict, ValidityVerdict::valid);
}

// As 60 published cases had it: the window is over before a sample comes, and the one at its end finds the GPU without
// work, at the cap of a moment before.
TEST(Validity, OneLateSampleDecidesNothing) {
  for (const std::uint64_t reason : {ASSAY_THROTTLE_POWER_CAP, ASSAY_THROTTLE_THERMAL, ASSAY_THROTTLE_HW_SLOWDOWN}) {
    TelemetryFigures figures(0.05, {.average_s = 0});
    figures.begin(gpu_sample(0, 0));
    auto sample = gpu_sample(90, 0.01);
    sample.throttle = reason;
    figures.end(sample);
    const record::Validity validity = of_gpu(figures);
    EXPECT_EQ(validity.verdict, ValidityVerdict::unknown) << reason;
    EXPECT_EQ(validity.text,
              "only 0 readings of the clocks within the window, of the 6 that are needed; measure longer ([measure] "
              "steps); who else uses it is unknown");
  }
}

TEST(Validity, AFewSamplesSayNothingOfTheClocks) {
  EXPECT_EQ(of_gpu(clocks(std::vector<double>(5, 1980), 0)).verdict, ValidityVerdict::unknown);
  EXPECT_EQ(of_gpu(clocks(std::vector<double>(5, 1700), ASSAY_THROTTLE_POWER_CAP)).verdict, ValidityVerdict::unknown);
  EXPECT_EQ(of_gpu(clocks(std::vector<double>(6, 1700), ASSAY_THROTTLE_POWER_CAP)).verdict,
            ValidityVerdict::power_limited);
  EXPECT_EQ(of_gpu(clocks(std::vector<double>(2, 1700), ASSAY_THROTTLE_HW_SLOWDOWN)).verdict,
            ValidityVerdict::throttled)
      << "the hardware's own brake, twice";
}

// Six samples, and yet nobody knows how the clock was when the window began, or ended.
TEST(Validity, ReadingsThatLeaveAThirdOutSayNothingOfSteadiness) {
  for (const std::uint64_t reasons : {std::uint64_t{ASSAY_THROTTLE_POWER_CAP}, std::uint64_t{0}}) {
    TelemetryFigures figures(0.05, {.average_s = 0});
    figures.begin(gpu_sample(0, 0));
    for (const double now_s : {0.5, 8.0, 8.5, 9.0, 9.5, 10.0}) {
      auto sample = gpu_sample(90, 0.05);
      sample.throttle = reasons;
      figures.within(sample, now_s);
    }
    ASSERT_FALSE(figures.sm_clock_drift());
    const record::Validity validity = of_gpu(figures, 700.0);
    EXPECT_EQ(validity.verdict, ValidityVerdict::unknown) << validity.text;
    EXPECT_NE(validity.text.find("too few readings of the SM clock within the first or the last third"),
              std::string::npos)
        << validity.text;
    EXPECT_EQ(validity.text.find("at the power cap of 700 W") != std::string::npos, reasons != 0) << validity.text;
    EXPECT_EQ(validity.text.find("the clock is steady"), std::string::npos) << validity.text;
  }
}

TEST(Validity, OfADeviceThatDoesNotTellItsClocksNothingIsKnown) {
  for (const std::uint64_t reasons : {std::uint64_t{ASSAY_THROTTLE_POWER_CAP}, std::uint64_t{0}}) {
    TelemetryFigures figures(0.05, {.average_s = 0});
    for (int i = 0; i < 20; ++i) {
      auto sample = with_foreign(gpu_sample(90, 0.05), 0);
      sample.known &= ~std::uint64_t{ASSAY_TELEMETRY_SM_CLOCK};
      sample.throttle = reasons;
      figures.within(sample);
    }
    const record::Validity validity = of_gpu(figures);
    EXPECT_EQ(validity.verdict, ValidityVerdict::unknown) << validity.text;
    EXPECT_NE(validity.text.find("the device does not report its SM clock"), std::string::npos) << validity.text;
  }
}

TEST(Validity, ClocksThatSomebodyHasSetAreNoAccident) {
  EXPECT_EQ(of_gpu(gpu_figures(ASSAY_THROTTLE_APPLICATION_CLOCKS, 20, 0)).verdict, ValidityVerdict::valid);
}

TEST(Validity, AnotherProcessOnTheGpuIsWorseThanAPowerCap) {
  const record::Validity validity = of_gpu(gpu_figures(ASSAY_THROTTLE_POWER_CAP, 20, 1));
  EXPECT_EQ(validity.verdict, ValidityVerdict::contended);
  EXPECT_EQ(validity.text,
            "at the power cap in 100% of the time; SM clock 1700 MHz on average, 600 W on average; 1 other process "
            "computes on the device");
}

TEST(Validity, WhatADeviceDoesNotTellIsNamed) {
  TelemetryFigures figures(0.05, {.average_s = 0});
  for (int i = 0; i < 6; ++i) figures.within(gpu_sample(90, 0.05));
  const record::Validity validity = of_gpu(figures);
  EXPECT_EQ(validity.verdict, ValidityVerdict::valid);
  EXPECT_NE(validity.text.find("who else uses it is unknown"), std::string::npos) << validity.text;

  EXPECT_EQ(validity_of(false, nullptr, {}).verdict, ValidityVerdict::unknown);
  TelemetryFigures silent(0.05);
  auto sample = gpu_sample(90, 0.05);
  sample.known = ASSAY_TELEMETRY_SM_CLOCK;
  silent.within(sample);
  EXPECT_EQ(of_gpu(silent).verdict, ValidityVerdict::unknown);
}

TEST(Validity, OfProcessorsIsWhoElseTookTheirTime) {
  EXPECT_EQ(of_cpu(0.02).verdict, ValidityVerdict::valid);
  EXPECT_EQ(of_cpu(std::nullopt).verdict, ValidityVerdict::unknown);
  const record::Validity contended = of_cpu(0.2, 0.1);
  EXPECT_EQ(contended.verdict, ValidityVerdict::contended);
  EXPECT_EQ(contended.text,
            "other processes took 20% of the processors; the hypervisor gave 10% of the processors to other guests");
}

TEST(Validity, ThreadsThatWaitForAProcessorAreContention) {
  Contention contention;
  contention.window_s = 1;
  contention.others_share = 0.03;
  contention.steal_share = 0;
  contention.stall_share = 0.5;
  const record::Validity contended = validity_of(true, nullptr, contention);
  EXPECT_EQ(contended.verdict, ValidityVerdict::contended);
  EXPECT_EQ(contended.text, "its threads waited for other processes in 50% of the time");
  contention.stall_share = 0.04;
  EXPECT_EQ(validity_of(true, nullptr, contention).verdict, ValidityVerdict::valid);
  contention.worst_steal_share = 0.4;
  EXPECT_EQ(validity_of(true, nullptr, contention).text, "the hypervisor gave 40% of a processor to other guests");
}

TEST(Validity, StandsInTheRecordByName) {
  record::CaseResult result;
  result.validity = {ValidityVerdict::throttled, "hot"};
  EXPECT_EQ(record::to_json(result)["validity"].dump(), R"({"verdict":"throttled","text":"hot"})");
}

}  // namespace
}  // namespace assay::host::telemetry
