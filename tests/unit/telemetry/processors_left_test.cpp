#include "telemetry/processors_left.hpp"

#include <gtest/gtest.h>

#include "telemetry/wake_up_cost.hpp"

namespace assay::host::telemetry {
namespace {

using Ticks = std::map<int, CpuTicks>;

TEST(TakenProcessors, ANeighbourTakesAProcessor) {
  const Ticks begin{{0, {100, 100, 0}}, {1, {100, 100, 0}}};
  EXPECT_NEAR(taken_processors(begin, {{0, {120, 100, 0}}, {1, {100, 120, 0}}}), 0.9, 1e-12);
  EXPECT_NEAR(taken_processors(begin, {{0, {110, 110, 0}}, {1, {110, 110, 0}}}), 0.8, 1e-12) << "one that moves";
  EXPECT_NEAR(taken_processors(begin, {{0, {100, 100, 20}}, {1, {100, 120, 0}}}), 0.9, 1e-12) << "another guest";
}

TEST(TakenProcessors, WhatAStillMachineDoesTakesNone) {
  Ticks begin, end;
  for (int i = 0; i < 128; ++i) {
    begin[i] = {0, 0, 0};
    end[i] = {i % 10 == 0 ? 1u : 0u, 19, 0};
  }
  EXPECT_EQ(taken_processors(begin, end), 0);
}

TEST(AllowedProcessors, NobodyIsLeftWithoutOne) {
  EXPECT_EQ(allowed_processors(8, 0.5), 1u);
  EXPECT_EQ(allowed_processors(0, {}), 1u) << "the kernel does not say which";
}

TEST(AllowedProcessors, TheQuotaOfTheControlGroupCounts) {
  EXPECT_EQ(allowed_processors(64, {}), 64u);
  EXPECT_EQ(allowed_processors(64, 4.0), 4u);
  EXPECT_EQ(allowed_processors(64, 3.5), 3u);
  EXPECT_EQ(allowed_processors(64, 3.95), 4u);
  EXPECT_EQ(allowed_processors(2, 16.0), 2u);
}

TEST(SpinBound, IsWhatASleepCosts) {
  const SpinBound bound = spin_bound({24.0, 24.6});
  EXPECT_EQ(bound.count, 1024);
  EXPECT_NEAR(bound.us, 25.2, 0.1);
  EXPECT_EQ(spin_bound({48.0, 24.6}).count, 2048);
}

TEST(SpinBound, BelievesNoWonders) {
  EXPECT_EQ(spin_bound({5000, 25}).count, 2048) << "a busy machine, on which a wake-up takes a slice of time";
  EXPECT_GE(spin_bound({0.01, 25}).count, 64);
  EXPECT_EQ(spin_bound({0, 20}).count, 1024) << "not measured";
  EXPECT_GT(spin_bound({0, 0}).count, 0);
}

TEST(SpinBound, ThisMachineHasOne) {
  const WaitCosts costs = measure_wait_costs();
  EXPECT_GT(costs.iteration_ns, 0);
  EXPECT_GE(costs.sleep_us, 0);
  EXPECT_GE(spin_bound(costs).count, 1);
}

}  // namespace
}  // namespace assay::host::telemetry
