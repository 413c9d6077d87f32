#include "history/change_points.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "compare/location.hpp"
#include "unit/compare/noisy_records.hpp"
#include "worlds.hpp"

namespace assay::host::history {
namespace {

using compare::Noise;
using compare::NoisyRuns;

// As measured on a machine of two cores that others use, too (docs/compare.md): runs scatter by 0.3%, steps by 1%, each
// like the one before it, and one in fifty takes half as long again. Of these the 5th percentile.
constexpr Noise measured_noise{.of_run = 0.003, .of_step = 0.01, .resemblance = 0.3, .stall_share = 0.02};

struct Step {
  std::size_t at;
  double factor;
};

std::vector<double> history_of(unsigned seed, std::size_t runs, const std::vector<Step>& steps,
                               const Noise& noise = measured_noise) {
  NoisyRuns random(seed);
  std::vector<double> levels;
  double time_ms = 100;
  for (std::size_t i = 0; i < runs; ++i) {
    for (const Step& step : steps)
      if (step.at == i) time_ms *= step.factor;
    levels.push_back(compare::log_location(random.steps(time_ms, 20, noise), compare::Statistic::p05, 0));
  }
  return levels;
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
      is_true |= distance <= off && change.outcome == outcome;
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
  EXPECT_NEAR(changes[0].ratio, 1.1, 0.02);
  runs.pop_back();
  EXPECT_TRUE(find_changes(runs, {}).empty()) << "one run that is otherwise is an accident";
}

TEST(ChangePoints, AnAccidentInTheMiddleIsNone) {
  auto runs = history_of(7, 60, {});
  runs[30] += std::log(1.2);
  EXPECT_TRUE(find_changes(runs, {}).empty());
}

TEST(ChangePoints, FewRunsHaveNone) {
  EXPECT_TRUE(find_changes(std::vector<double>(), {}).empty());
  EXPECT_TRUE(find_changes(history_of(1, 3, {{2, 2.0}}), {}).empty());
}

TEST(ChangePoints, WhatIsExactChanges) {
  std::vector<double> levels;
  for (int i = 0; i < 12; ++i) levels.push_back(std::log(i < 6 ? 1000 : 1050));
  const auto changes = find_changes(levels, {});
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].at, 6u);
  EXPECT_NEAR(changes[0].low, 1.05, 1e-6);
  EXPECT_NEAR(changes[0].high, 1.05, 1e-6);
  EXPECT_TRUE(find_changes(std::vector<double>(40, 7.0), {}).empty());
}

TEST(ChangePoints, TheSameLevelsHaveTheSameChanges) {
  const auto levels = with_step(levels_of({.name = "", .deviation = 0.03}, 60, 5), 40, 0.1);
  const auto once = find_changes(levels, {}), again = find_changes(levels, {});
  ASSERT_EQ(once.size(), 1u);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(once[0].at, again[0].at);
  EXPECT_EQ(once[0].low, again[0].low);
}

// The confidence is 95%: of 60 series three may have a change. The seeds are fixed; docs/history.md has the rates of
// many.
TEST(ChangePoints, WorldsWithoutAChangeHaveOneInFewSeries) {
  constexpr unsigned series = 60;
  for (const World& world : worlds_without_change()) {
    unsigned with_change = 0;
    for (unsigned seed = 1; seed <= series; ++seed)
      with_change += find_changes(levels_of(world, 40, seed), {}).empty() ? 0 : 1;
    EXPECT_LE(with_change, 3u) << world.name;
  }
}

unsigned found_of(unsigned series, const World& world, std::size_t before, std::size_t after, double step) {
  unsigned found = 0;
  for (unsigned seed = 1; seed <= series; ++seed) {
    const auto changes = find_changes(with_step(levels_of(world, before + after, seed), before, step), {});
    bool is_found = false;
    for (const ChangePoint& change : changes)
      is_found |= change.at + 3 >= before && change.at <= before + 3 && change.outcome == compare::Outcome::higher;
    found += is_found ? 1 : 0;
  }
  return found;
}

TEST(ChangePoints, FivePercentAreFoundWithThreeRuns) {
  EXPECT_EQ(found_of(40, {.name = "", .deviation = 0.003}, 20, 3, 0.05), 40u);
  EXPECT_GE(found_of(40, {.name = "", .deviation = 0.01}, 20, 3, 0.05), 36u);
  EXPECT_GE(found_of(40, {.name = "", .deviation = 0.01}, 40, 3, 0.05), 38u);
}

TEST(ChangePoints, TwoPercentAreFoundWithEightRuns) {
  EXPECT_GE(found_of(40, {.name = "", .deviation = 0.003}, 20, 8, 0.02), 39u);
  EXPECT_GE(found_of(40, {.name = "", .deviation = 0.003}, 40, 8, 0.02), 39u);
}

TEST(ChangePoints, IntervalsHoldTheTrueRatio) {
  unsigned found = 0, held = 0;
  const World alike{.name = "", .deviation = 0.01, .resemblance = 0.8};
  for (unsigned seed = 1; seed <= 60; ++seed)
    for (const ChangePoint& change : find_changes(with_step(levels_of(alike, 80, seed), 40, 0.08), {})) {
      if (change.at < 38 || change.at > 42) continue;
      ++found;
      held += change.low <= 1.08 && 1.08 <= change.high ? 1 : 0;
    }
  EXPECT_GE(found, 60u);
  EXPECT_GE(held, 52u);
}

// Ten series of which none changes have a change in one of twenty such histories; where all change at once, three runs
// show it although each is one of many.
TEST(ChangePoints, SeriesShareTheError) {
  const World quiet{.name = "", .deviation = 0.003}, slow{.name = "", .slow_share = 0.15, .slow_by = 0.1};
  unsigned histories_with_change = 0;
  for (unsigned history = 0; history < 20; ++history) {
    std::vector<std::vector<double>> series;
    for (unsigned i = 0; i < 10; ++i) series.push_back(levels_of(slow, 40, 1000 + 10 * history + i));
    bool has_change = false;
    for (const auto& changes : find_changes(series, {})) has_change |= !changes.empty();
    histories_with_change += has_change ? 1 : 0;
  }
  EXPECT_LE(histories_with_change, 2u);
  std::vector<std::vector<double>> series;
  for (unsigned i = 0; i < 50; ++i) series.push_back(with_step(levels_of(quiet, 23, i), 20, 0.05));
  unsigned changed = 0;
  for (const auto& changes : find_changes(series, {})) changed += changes.size() == 1 ? 1 : 0;
  EXPECT_GE(changed, 48u);
}

}  // namespace
}  // namespace assay::host::history
