#include "telemetry/telemetry_figures.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "record/json.hpp"
#include "samples.hpp"

namespace assay::host::telemetry {
namespace {

using Json = nlohmann::ordered_json;
using test::gpu_sample;
using test::with_foreign;

constexpr double period_s = 0.05;

// As a record has it.
Json reported(const TelemetryFigures& figures) {
  record::CaseResult result;
  result.telemetry = figures.telemetry();
  return record::to_json(result)["telemetry"];
}

TEST(TelemetryFigures, UtilisationIsWeightedByTheTimeThatEachSampleCovers) {
  TelemetryFigures figures(period_s);
  figures.begin(gpu_sample(100, 0));
  figures.within(gpu_sample(40, 0.1));
  figures.within(gpu_sample(80, 0.3));
  const Json record = reported(figures);
  EXPECT_DOUBLE_EQ(record["gpu_utilisation_percent"]["mean"].get<double>(), 70);
  EXPECT_EQ(record["gpu_utilisation_percent"]["min"], 40);
  EXPECT_EQ(record["gpu_utilisation_percent"]["max"], 80);
  EXPECT_DOUBLE_EQ(record["utilisation_span_s"].get<double>(), 0.3);
  EXPECT_EQ(record["samples"], 2);
  EXPECT_EQ(record["period_ms"], 50);
}

// The last one covers what is left of the window, a millisecond as likely as a period.
TEST(TelemetryFigures, ASampleOfLessThanHalfAPeriodIsNoExtreme) {
  TelemetryFigures figures(period_s);
  figures.begin(gpu_sample(0, 0));
  figures.within(gpu_sample(90, 0.05));
  figures.end(gpu_sample(0, 0.001));
  const record::Figure utilisation = *figures.utilisation();
  EXPECT_NEAR(utilisation.mean, 90 * 0.05 / 0.051, 1e-9);
  EXPECT_EQ(utilisation.max, 90);
  EXPECT_EQ(utilisation.min, utilisation.mean);
}

TEST(TelemetryFigures, OfAShortWindowTheSampleAtTheEndIsAllThereIs) {
  TelemetryFigures figures(period_s);
  figures.begin(gpu_sample(0, 0));
  auto end = gpu_sample(30, 0.012);
  end.throttle = ASSAY_THROTTLE_POWER_CAP;
  figures.end(end);
  EXPECT_EQ(figures.samples_within(), 0u);
  const Json record = reported(figures);
  EXPECT_EQ(record["samples"], 1);
  EXPECT_EQ(record["gpu_utilisation_percent"], Json({{"mean", 30.0}, {"min", 30.0}, {"max", 30.0}}));
  EXPECT_EQ(record["sm_clock_mhz"]["mean"], 1700);
  EXPECT_EQ(record["throttle"], Json({{"power_cap", 1.0}}));
}

// An H100's counter changes each 100 ms: of a shorter window its difference is 0, or the work of before.
TEST(TelemetryFigures, EnergyOfLessThanACountersPeriodIsNotKnown) {
  for (const auto& [window_s, is_known] : {std::pair(0.09, false), std::pair(0.1, true)}) {
    TelemetryFigures figures(period_s, {.energy_period_s = 0.1});
    auto begin = gpu_sample(0, 0), end = gpu_sample(90, 0.05);
    begin.energy_j = end.energy_j = 1000;
    figures.begin(begin, 0);
    figures.end(end, window_s);
    EXPECT_EQ(figures.telemetry().energy_j.has_value(), is_known) << window_s;
  }
}

// When a window ends the device has nothing to do: its clocks and power there are not those of the work.
TEST(TelemetryFigures, AfterOthersTheEndTellsOfTotalsAlone) {
  TelemetryFigures figures(period_s);
  auto begin = gpu_sample(0, 0), within = gpu_sample(90, 0.05), end = gpu_sample(90, 0.05);
  begin.energy_j = 1000;
  within.energy_j = 1030;
  end.energy_j = 1062.5;
  end.sm_clock_mhz = 300;
  end.throttle = ASSAY_THROTTLE_IDLE | ASSAY_THROTTLE_THERMAL;
  figures.begin(begin);
  figures.within(within);
  figures.end(end);
  const Json record = reported(figures);
  EXPECT_EQ(record["energy_j"], 62.5);
  EXPECT_EQ(record["sm_clock_mhz"]["min"], 1700);
  EXPECT_EQ(record["throttle"], Json::object());
  EXPECT_EQ(record["samples"], 1);
}

// The first second's samples average over what was before the window.
TEST(TelemetryFigures, TheIntegralOfPowerIsOfSettledSamplesOverTheWholeWindow) {
  const auto told_of = [](double window_s) {
    TelemetryFigures figures(period_s);
    auto sample = gpu_sample(90, 0.05);
    sample.energy_j = 1000;
    figures.begin(sample, 100);
    for (double at_s = 0.25; at_s < window_s; at_s += 0.25) {
      sample.power_w = at_s < 1 ? 100 : 600;
      figures.within(sample, 100 + at_s);
    }
    sample.power_w = 50;
    figures.end(sample, 100 + window_s);
    return reported(figures);
  };
  EXPECT_DOUBLE_EQ(told_of(4)["power_integral_j"].get<double>(), 2400);
  EXPECT_FALSE(told_of(1.75).contains("power_integral_j"));
}

TEST(TelemetryFigures, WhatHoldsTheClocksDownIsAShareOfTheSamples) {
  TelemetryFigures figures(period_s);
  figures.begin(gpu_sample(0, 0));
  for (const std::uint64_t reasons : {ASSAY_THROTTLE_POWER_CAP, ASSAY_THROTTLE_POWER_CAP | ASSAY_THROTTLE_THERMAL,
                                      ASSAY_THROTTLE_IDLE, ASSAY_THROTTLE_APPLICATION_CLOCKS}) {
    auto sample = gpu_sample(90, 0.05);
    sample.throttle = reasons;
    figures.within(sample);
  }
  EXPECT_EQ(reported(figures)["throttle"], Json({{"application_clocks", 0.25}, {"power_cap", 0.5}, {"thermal", 0.25}}));
  EXPECT_EQ(figures.power_capped(), 0.5);
  EXPECT_TRUE(figures.slowdowns().empty()) << "heat was seen once, and clocks that somebody has set are no accident";
  auto hot = gpu_sample(90, 0.05);
  hot.throttle = ASSAY_THROTTLE_THERMAL;
  figures.within(hot);
  EXPECT_EQ(figures.slowdowns(), (std::map<std::string, double>{{"thermal", 0.4}}));
}

// They come faster in the first milliseconds of a window.
TEST(TelemetryFigures, ASampleCountsForTheTimeSinceTheOneBefore) {
  TelemetryFigures figures(period_s);
  figures.begin(gpu_sample(0, 0), 100.0);
  for (const auto& [now_s, mhz] : {std::pair(100.25, 1000.0), std::pair(100.5, 1000.0), std::pair(101.0, 2000.0)}) {
    auto sample = gpu_sample(90, 0);
    sample.sm_clock_mhz = mhz;
    sample.throttle = mhz < 1500 ? ASSAY_THROTTLE_POWER_CAP : 0;
    figures.within(sample, now_s);
  }
  EXPECT_EQ(reported(figures)["sm_clock_mhz"]["mean"], 1500);
  EXPECT_EQ(reported(figures)["throttle"], Json({{"power_cap", 0.5}}));
  EXPECT_EQ(reported(figures)["samples"], 3);
}

TEST(TelemetryFigures, OthersCountWhenTheyWereThereAtOneEnd) {
  TelemetryFigures figures(period_s);
  figures.begin(with_foreign(gpu_sample(0, 0), 2));
  figures.within(gpu_sample(90, 0.05));
  figures.end(with_foreign(gpu_sample(90, 0.05), 0));
  EXPECT_EQ(reported(figures)["foreign_processes"], 2);
}

TEST(TelemetryFigures, WhatIsNotToldIsAbsent) {
  TelemetryFigures figures(period_s);
  assay_telemetry_sample cpu{};
  figures.begin(cpu);
  cpu.known = ASSAY_TELEMETRY_CPU_UTILISATION;
  cpu.utilisation_percent = 98;
  cpu.utilisation_span_s = 0.05;
  figures.within(cpu);
  figures.end(cpu);
  EXPECT_EQ(reported(figures), Json({{"samples", 1},
                                     {"period_ms", 50.0},
                                     {"cpu_utilisation_percent", {{"mean", 98.0}, {"min", 98.0}, {"max", 98.0}}}}));
}

}  // namespace
}  // namespace assay::host::telemetry
