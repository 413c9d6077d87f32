#include "telemetry/step_utilisation.hpp"

#include <gtest/gtest.h>

#include "samples.hpp"
#include "telemetry/telemetry_figures.hpp"

namespace assay::host::telemetry {
namespace {

using Readings = std::vector<UtilisationReading>;
using Percents = std::vector<double>;

constexpr double period = 0.125;  // seconds

TEST(StepUtilisation, IsTheMeanOfTheReadingsInEachStep) {
  const Readings readings{{10.25, 0.25, 40}, {10.5, 0.25, 60}, {10.75, 0.25, 90}, {11.0, 0.25, 100}};
  EXPECT_EQ(step_utilisation_percent(readings, {10, 10.5, 11}, period), (Percents{50, 95}));
}

// A quarter of the reading's time lies in the first step, three quarters in the second.
TEST(StepUtilisation, AReadingOverTheEndOfAStepCountsInBothByItsTime) {
  const Readings readings{{0.875, 0.875, 20}, {1.375, 0.5, 100}, {2, 0.625, 0}};
  const auto percents = step_utilisation_percent(readings, {0, 1, 2}, period);
  ASSERT_TRUE(percents);
  EXPECT_DOUBLE_EQ((*percents)[0], 0.875 * 20 + 0.125 * 100);
  EXPECT_DOUBLE_EQ((*percents)[1], 0.375 * 100);
}

TEST(StepUtilisation, IsNotToldOfShortSteps) {
  const Readings readings{{0.5, 0.5, 50}, {0.875, 0.375, 50}};
  EXPECT_TRUE(step_utilisation_percent(readings, {0, 0.5}, period)) << "four periods";
  EXPECT_EQ(step_utilisation_percent(readings, {0, 0.5, 0.875}, period), std::nullopt) << "the second has three";
  EXPECT_EQ(step_utilisation_percent(readings, {}, period), std::nullopt);
  EXPECT_EQ(step_utilisation_percent(readings, {0}, period), std::nullopt);
}

TEST(StepUtilisation, IsNotToldWhereReadingsCoverLessThanHalf) {
  EXPECT_EQ(step_utilisation_percent({}, {0, 1}, period), std::nullopt);
  EXPECT_EQ(step_utilisation_percent({{1, 0.25, 50}}, {0, 1}, period), std::nullopt);
  EXPECT_EQ(step_utilisation_percent({{1, 0.5, 50}}, {0, 1}, period), Percents{50});
}

// The driver's average over two seconds is not that of a step of one.
TEST(StepUtilisation, AReadingLongerThanTheStepDoesNotCount) {
  const Readings readings{{0.5, 2, 100}, {1, 0.75, 30}, {1.25, 2, 100}};
  EXPECT_EQ(step_utilisation_percent(readings, {0, 1}, period), Percents{30});
  EXPECT_EQ(step_utilisation_percent({{1, 2, 100}}, {0, 1}, period), std::nullopt);
}

// Spans differ: one that ends late may reach back into a step that an earlier one has passed.
TEST(StepUtilisation, ALateReadingReachesBack) {
  const Readings readings{{2.25, 0.25, 0}, {2.5, 1, 80}};
  EXPECT_EQ(step_utilisation_percent(readings, {1, 2}, period), Percents{80});
}

TEST(TelemetryFigures, HaveTheUtilisationOfStepsWhoseBoundsAreKnown) {
  TelemetryFigures figures(period);
  figures.begin(test::gpu_sample(0, 0));
  figures.within(test::gpu_sample(40, 0.5), 7.5);
  figures.end(test::gpu_sample(90, 0.5), 8);
  EXPECT_EQ(figures.telemetry({7, 7.5, 8}).step_utilisation_percent, (Percents{40, 90}));
  EXPECT_TRUE(figures.telemetry().step_utilisation_percent.empty());
}

}  // namespace
}  // namespace assay::host::telemetry
