#include "history/change_points.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "unit/compare/noisy_records.hpp"

namespace assay::host::history {
namespace {

using compare::Noise;
using compare::NoisyRuns;
using compare::RunFigure;

// As measured on a machine of two cores that others use, too (docs/compare.md): runs scatter by 0.3%, steps by 1%, each
// like the one before it, and one in fifty takes half as long again.
constexpr Noise measured_noise{.of_run = 0.003, .of_step = 0.01, .resemblance = 0.3, .stall_share = 0.02};

struct Step {
  std::size_t at;
  double factor;
};

std::vector<RunFigure> history_of(unsigned seed, std::size_t runs, const std::vector<Step>& steps,
                                  const Noise& noise = measured_noise) {
  NoisyRuns random(seed);
  std::vector<RunFigure> figures;
  double time_ms = 100;
  for (std::size_t i = 0; i < runs; ++i) {
    for (const Step& step : steps)
      if (step.at == i) time_ms *= step.factor;
    RunFigure figure;
    figure.samples = random.steps(time_ms, 20, noise);
    figure.timed = true;
    figures.push_back(std::move(figure));
  }
  return figures;
}

struct Tally {
  std::size_t found = 0, false_ones = 0;
};
Tally tally(const std::vector<ChangePoint>& changes, const std::vector<Step>& steps, std::size_t off = 3) {
  Tally result;
  for (const ChangePoint& change : changes) {
    bool is_true = false;
    for (const Step& step : steps) {
      const std::size_t distance = change.at > step.at ? change.at - step.at : step.at - change.at;
      const auto outcome = step.factor > 1 ? compare::Outcome::higher : compare::Outcome::lower;
      is_true |= distance <= off && change.verdict.outcome == outcome;
    }
    ++(is_true ? result.found : result.false_ones);
  }
  return result;
}

TEST(ChangePoints, ThreeStepsOfTwoToFivePercentInTwoHundredRuns) {
  const std::vector<Step> steps{{60, 1.03}, {115, 0.98}, {150, 1.05}};
  Tally all;
  constexpr unsigned histories = 20;
  for (unsigned seed = 1; seed <= histories; ++seed) {
    const Tally one = tally(find_changes(history_of(seed, 200, steps), {}), steps);
    all.found += one.found, all.false_ones += one.false_ones;
  }
  RecordProperty("found", static_cast<int>(all.found));
  RecordProperty("false", static_cast<int>(all.false_ones));
  EXPECT_EQ(all.found, 3 * histories);
  EXPECT_EQ(all.false_ones, 0u);
}

TEST(ChangePoints, WhereNothingChangesThereIsNone) {
  std::size_t false_ones = 0;
  for (unsigned seed = 101; seed <= 120; ++seed) false_ones += find_changes(history_of(seed, 200, {}), {}).size();
  EXPECT_EQ(false_ones, 0u);
}

TEST(ChangePoints, OneThatIsTakenBackIsTwo) {
  const std::vector<Step> steps{{90, 1.03}, {105, 1 / 1.03}};
  const auto changes = find_changes(history_of(3, 200, steps), {});
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(tally(changes, steps).found, 2u);
}

TEST(ChangePoints, TheNewestRunsCountAsSoonAsTheyAreTwo) {
  auto runs = history_of(5, 22, {{20, 1.1}});
  const auto changes = find_changes(runs, {});
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].at, 20u);
  EXPECT_NEAR(changes[0].verdict.ratio, 1.1, 0.02);
  runs.pop_back();
  EXPECT_TRUE(find_changes(runs, {}).empty()) << "one run that is otherwise is an accident";
}

TEST(ChangePoints, AnAccidentInTheMiddleIsNone) {
  auto runs = history_of(7, 60, {});
  for (double& ms : runs[30].samples) ms *= 1.2;
  EXPECT_TRUE(find_changes(runs, {}).empty());
}

TEST(ChangePoints, FewRunsHaveNone) {
  EXPECT_TRUE(find_changes({}, {}).empty());
  EXPECT_TRUE(find_changes(history_of(1, 3, {{2, 2.0}}), {}).empty());
}

TEST(ChangePoints, WhatIsExactChangesByItsOwnThreshold) {
  std::vector<RunFigure> runs(12);
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].mean = i < 6 ? 1000 : 1050, runs[i].exact = true;
  const auto changes = find_changes(runs, {});
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].at, 6u);
}

}  // namespace
}  // namespace assay::host::history
