#include "scaling/outlook.hpp"

#include <gtest/gtest.h>

namespace assay::host::scaling {
namespace {

const Wire ring{.algorithm = Algorithm::ring, .latency_s = 10e-6, .seconds_per_byte = 1 / 100e9};
const Wire tree{.algorithm = Algorithm::tree, .latency_s = 10e-6, .seconds_per_byte = 1 / 100e9};

// 50 ms of computing; `collectives` messages of 4e9 bytes in all.
MeasuredStep step_on(int ranks, double collectives, const Wire& wire) {
  MeasuredStep s{.ranks = ranks, .collectives = collectives, .bytes = 4e9};
  s.communication_s = collectives * seconds_of(wire, Collective::all_reduce, s.bytes / collectives, ranks);
  s.exposed_s = s.communication_s;
  s.silent_s = 0.05;
  s.step_s = 0.05 + s.exposed_s;
  s.items = 1000.0 * ranks;
  return s;
}
StepFamily family_of(std::vector<MeasuredStep> steps) {
  return {.label = "ddp", .item_unit = "tokens", .steps = steps};
}

TEST(Outlook, AStepThatWaitsForItsCollectivesIsThatOfTheModel) {
  const StepFamily family = family_of({step_on(1, 100, ring), step_on(2, 100, ring), step_on(64, 100, ring)});
  const auto all = outlooks(family, {1, 2}, {1, 2, 64}, {.wires = {ring}});
  ASSERT_EQ(all.size(), 3u);
  for (const Outlook& o : all) {
    ASSERT_TRUE(o.measured_s);
    EXPECT_NEAR(o.step_s / *o.measured_s, 1, 1e-12) << o.ranks;
    EXPECT_NEAR(o.efficiency, 0.05 / o.step_s, 1e-12);
    EXPECT_NEAR(o.items_per_s, 1000.0 * o.ranks / o.step_s, 1e-6);
  }
  EXPECT_EQ(all[0].communication_s, 0);
  EXPECT_FALSE(outlooks(family, {1, 2}, {8}, {.wires = {ring}})[0].measured_s);
}

TEST(Outlook, OneRankAloneIsEnoughWhereTheWireIsKnown) {
  MeasuredStep alone = step_on(1, 100, ring);
  alone.silent_s.reset();
  const Outlook o = outlooks(family_of({alone}), {1}, {8}, {.wires = {ring}})[0];
  EXPECT_NEAR(o.step_s, step_on(8, 100, ring).step_s, 1e-12);
}

TEST(Outlook, TheFasterAlgorithmIsTaken) {
  const StepFamily small = family_of({step_on(2, 100000, ring)});
  EXPECT_EQ(outlooks(small, {2}, {64}, {.wires = {ring, tree}})[0].algorithm, Algorithm::tree);
  Wire slow_tree = tree;
  slow_tree.seconds_per_byte *= 2;
  const StepFamily large = family_of({step_on(2, 1, ring)});
  EXPECT_EQ(outlooks(large, {2}, {64}, {.wires = {ring, slow_tree}})[0].algorithm, Algorithm::ring);
}

// Ten buckets, of which the last one is ready when the backward ends.
TEST(Outlook, WhatTheBackwardHidesIsNotWaitedFor) {
  MeasuredStep s = step_on(2, 10, ring);
  s.overlaps = true;
  s.backward_s = 0.03;
  s.communication_s *= 1.25;  // beside the backward
  s.exposed_s = 0;
  s.step_s = 0.05 + 0.006;  // slowed down by 6 ms
  const StepFamily family = family_of({s});
  const double modelled_s =
      10 * seconds_of(ring, Collective::all_reduce, 4e8, 8) + 2.5 * seconds_of(ring, Collective::all_reduce, 4e8, 2);
  const Outlook o = outlooks(family, {2}, {8}, {.wires = {ring}})[0];
  EXPECT_NEAR(o.communication_s, modelled_s, 1e-12);
  EXPECT_NEAR(o.exposed_s, modelled_s - 0.03 * 0.9, 1e-12);
  EXPECT_NEAR(o.slowed_s, 0.006 / s.communication_s * (modelled_s - o.exposed_s), 1e-12);
  EXPECT_NEAR(o.step_s, 0.05 + o.exposed_s + o.slowed_s, 1e-12);
  // Where the backward has room for all of them, the last one is left.
  MeasuredStep roomy = s;
  roomy.backward_s = 1;
  EXPECT_NEAR(outlooks(family_of({roomy}), {2}, {8}, {.wires = {ring}})[0].exposed_s, modelled_s / 10, 1e-12);
}

TEST(Outlook, TheNetworkCostsWhatItCostsBeyondAMachine) {
  const StepFamily family = family_of({step_on(2, 10, ring)});
  const Network network{.ranks_per_machine = 8, .latency_s = 50e-6, .seconds_per_byte = 1 / 25e9};
  const auto all = outlooks(family, {2}, {8, 16}, {.wires = {ring}, .network = network});
  EXPECT_NEAR(all[0].step_s, step_on(8, 10, ring).step_s, 1e-12);
  const Wire slow{.algorithm = Algorithm::ring, .latency_s = 50e-6, .seconds_per_byte = 1 / 25e9};
  EXPECT_NEAR(all[1].step_s, step_on(16, 10, slow).step_s, 1e-12);
}

TEST(Outlook, RanksThatShareProcessorsTakeTurns) {
  StepFamily family = family_of({step_on(1, 10, ring), step_on(2, 10, ring)});
  family.steps[0].ranks_at_full_speed = 1;  // all threads are its own
  family.steps[1].ranks_at_full_speed = 2;
  const auto all = outlooks(family, {1, 2}, {2, 4}, {.wires = {ring}});
  EXPECT_NEAR(all[0].step_s, step_on(2, 10, ring).step_s, 1e-12);
  EXPECT_NEAR(all[1].compute_s, 0.1, 1e-12);
  EXPECT_NEAR(all[1].communication_s, 2 * step_on(4, 10, ring).communication_s, 1e-12);
}

}  // namespace
}  // namespace assay::host::scaling
