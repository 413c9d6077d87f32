#include "forecast/wire.hpp"

#include "forecast/wires.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace assay::host::forecast {
namespace {

const Link a_link{"a device", "a library"};
const Wire true_wire{.algorithm = Algorithm::ring, .latency_s = 8e-6, .seconds_per_byte = 1 / 150e9};

std::vector<WirePoint> points_of(const Wire& wire, std::vector<int> ranks, double factor = 1) {
  std::vector<WirePoint> points;
  for (const int n : ranks)
    for (double bytes = 8; bytes < 1e9; bytes *= 8)
      for (const Collective c : {Collective::all_reduce, Collective::all_gather})
        points.push_back(
            {a_link, c, n, bytes, seconds_of(wire, c, bytes, n) * (points.size() % 2 == 0 ? factor : 1 / factor)});
  return points;
}

double steps_of(Algorithm algorithm, Collective collective, int ranks) {
  return demand_of(algorithm, collective, 1, ranks).steps;
}
double volume_of(Collective collective, int ranks) { return demand_of(Algorithm::ring, collective, 1, ranks).bytes; }

TEST(Wire, StepsAndVolumesAreTheAlgorithms) {
  EXPECT_EQ(steps_of(Algorithm::ring, Collective::all_reduce, 8), 14);
  EXPECT_EQ(steps_of(Algorithm::tree, Collective::all_reduce, 8), 6);
  EXPECT_EQ(steps_of(Algorithm::tree, Collective::all_reduce, 9), 8);
  EXPECT_EQ(steps_of(Algorithm::ring, Collective::all_gather, 8), 7);
  EXPECT_EQ(steps_of(Algorithm::tree, Collective::broadcast, 2), 1);
  EXPECT_EQ(steps_of(Algorithm::tree, Collective::all_to_all, 8), 7);
  EXPECT_EQ(steps_of(Algorithm::ring, Collective::send_receive, 64), 1);
  EXPECT_DOUBLE_EQ(volume_of(Collective::all_reduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(volume_of(Collective::reduce_scatter, 8), 0.875);
  EXPECT_DOUBLE_EQ(volume_of(Collective::broadcast, 8), 1);
  EXPECT_EQ(collective_named("all_to_all"), Collective::all_to_all);
  EXPECT_FALSE(collective_named("gossip"));
}

// What sdk/comm/gloo/collectives.cpp sends; heads and acknowledgement are 152 bytes.
TEST(Wire, DirectCollectivesTakeAStepOrTwoAndAMessageToEach) {
  const auto expect = [](Collective collective, double bytes, int ranks, double steps, double messages, double sent) {
    const Demand d = demand_of(Algorithm::direct, collective, bytes, ranks);
    EXPECT_EQ(d.steps, steps);
    EXPECT_EQ(d.messages, messages);
    EXPECT_DOUBLE_EQ(d.bytes, sent + 152 * messages);
  };
  expect(Collective::all_reduce, 16384, 64, 1, 63, 63 * 16384);
  expect(Collective::all_reduce, 16388, 64, 2, 189, 2 * 63 * 16388.0 / 64);
  expect(Collective::all_reduce, 1e6, 2, 2, 3, 1e6);
  expect(Collective::reduce_scatter, 1e6, 4, 2, 6, 0.75e6);
  expect(Collective::all_gather, 1e6, 4, 2, 6, 0.75e6);
  expect(Collective::all_to_all, 1e6, 4, 2, 6, 0.75e6);
  expect(Collective::broadcast, 1e6, 2, 2, 2, 1e6);
  expect(Collective::broadcast, 3e6, 4, 3, 4, 3e6 + 2e6);
  expect(Collective::send_receive, 1e6, 64, 2, 2, 1e6);
  EXPECT_EQ(demand_of(Algorithm::direct, Collective::all_reduce, 1e6, 1).messages, 0);
}

const Link gloo{"AMD EPYC", "gloo"}, gloo_between{"AMD EPYC", "gloo", true};

std::vector<WirePoint> direct_points(const Link& link, const Wire& wire, const std::vector<int>& ranks,
                                     double scatter = 0) {
  std::vector<WirePoint> points;
  for (const int n : ranks)
    for (double bytes = 1024; bytes < 1e8; bytes *= 8)
      points.push_back({link, Collective::all_reduce, n, bytes,
                        seconds_of(wire, Collective::all_reduce, bytes, n) *
                            (1 + scatter * (static_cast<int>(points.size()) % 3 - 1))});
  return points;
}

TEST(Wire, OnOneMachineADirectMessageCostsWork) {
  const Wire wire{.algorithm = Algorithm::direct, .message_s = 20e-6, .seconds_per_byte = 1 / 5e9};
  const auto found = fitted(Algorithm::direct, direct_points(gloo, wire, {2}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->latency_s, 0);
  EXPECT_NEAR(found->message_s / 20e-6, 1, 1e-9);
  EXPECT_NEAR(seconds_of(*found, Collective::all_reduce, 8, 64), 63 * (20e-6 + 160 / 5e9), 1e-12);
}

TEST(Wire, BetweenMachinesTheTimeOfAMessageIsTakenWhereRanksShowIt) {
  const Wire far{.algorithm = Algorithm::direct, .latency_s = 20e-3, .seconds_per_byte = 1 / 1e6};
  const auto of_two = fitted(Algorithm::direct, direct_points(gloo_between, far, {2}));
  ASSERT_TRUE(of_two);
  EXPECT_NEAR(of_two->latency_s / 20e-3, 1, 1e-9);
  EXPECT_EQ(of_two->message_s, 0);
  EXPECT_EQ(of_two->rank_counts, 1u);
  // Times that differ by a few percent do not show a time for each message.
  EXPECT_EQ(fitted(Algorithm::direct, direct_points(gloo_between, far, {2, 4}, 0.03))->message_s, 0);
  const Wire busy{.algorithm = Algorithm::direct, .latency_s = 50e-6, .message_s = 10e-6, .seconds_per_byte = 1 / 1e9};
  const auto both = fitted(Algorithm::direct, direct_points(gloo_between, busy, {2, 4, 8}));
  ASSERT_TRUE(both);
  EXPECT_NEAR(both->latency_s / 50e-6, 1, 1e-6);
  EXPECT_NEAR(both->message_s / 10e-6, 1, 1e-6);
  EXPECT_NEAR(both->seconds_per_byte * 1e9, 1, 1e-6);
}

TEST(Wire, LinksHaveNamesAndAlgorithms) {
  EXPECT_EQ(gloo_between.text(), "AMD EPYC, gloo, between machines");
  EXPECT_EQ(gloo.algorithms(), std::vector{Algorithm::direct});
  EXPECT_EQ((Link{"NVIDIA H200", "nccl"}.algorithms()), (std::vector{Algorithm::ring, Algorithm::tree}));
}

TEST(Wire, LatencyAndBandwidthAreFoundAgain) {
  const auto wire = fitted(Algorithm::ring, points_of(true_wire, {2, 4}));
  ASSERT_TRUE(wire);
  EXPECT_NEAR(wire->latency_s / true_wire.latency_s, 1, 1e-9);
  EXPECT_NEAR(wire->seconds_per_byte / true_wire.seconds_per_byte, 1, 1e-9);
  EXPECT_LT(wire->worst, 1e-9);
  // The tree's steps are others with four ranks, and so no tree has these times.
  EXPECT_GT(fitted(Algorithm::tree, points_of(true_wire, {2, 4}))->worst, 0.05);
}

TEST(Wire, AnAlgorithmThatTheTimesRefuteIsKnown) {
  const auto points = points_of(true_wire, {2, 4, 8, 16});
  const auto ring = fitted(Algorithm::ring, points), tree = fitted(Algorithm::tree, points);
  EXPECT_TRUE(is_refuted(*tree, *ring));
  EXPECT_FALSE(is_refuted(*ring, *tree));
  const auto of_two = points_of(true_wire, {2});
  EXPECT_FALSE(is_refuted(*fitted(Algorithm::tree, of_two), *fitted(Algorithm::ring, of_two))) << "they are the same";
}

TEST(Wire, SmallAndLargeMessagesCountAlike) {
  const auto wire = fitted(Algorithm::ring, points_of(true_wire, {2}, 1.1));
  ASSERT_TRUE(wire);
  EXPECT_NEAR(wire->latency_s / true_wire.latency_s, 1, 0.1);
  EXPECT_NEAR(wire->seconds_per_byte / true_wire.seconds_per_byte, 1, 0.1);
  EXPECT_NEAR(wire->worst, 0.1, 0.1);
}

TEST(Wire, OneSizeIsTakenForBytesAlone) {
  const std::vector<WirePoint> one{{a_link, Collective::all_reduce, 2, 1e6, 1e-3}};
  const auto wire = fitted(Algorithm::ring, one);
  ASSERT_TRUE(wire);
  EXPECT_FALSE(wire->has_latency);
  EXPECT_EQ(wire->sizes, 1u);
  EXPECT_EQ(wire->latency_s, 0);
  EXPECT_DOUBLE_EQ(seconds_of(*wire, Collective::all_reduce, 1e6, 2), 1e-3);
}

TEST(Wire, NeitherIsBelowZero) {
  // Small messages that are faster in relation than large ones: no latency explains them.
  const std::vector<WirePoint> points{{a_link, Collective::all_reduce, 2, 1e3, 1e-7},
                                      {a_link, Collective::all_reduce, 2, 1e6, 1e-3}};
  const auto wire = fitted(Algorithm::ring, points);
  ASSERT_TRUE(wire);
  EXPECT_EQ(wire->latency_s, 0);
  EXPECT_GT(wire->seconds_per_byte, 0);
  const std::vector<WirePoint> falling{{a_link, Collective::all_reduce, 2, 1e3, 1e-3},
                                       {a_link, Collective::all_reduce, 2, 1e6, 1e-4}};
  EXPECT_EQ(fitted(Algorithm::ring, falling)->seconds_per_byte, 0);
  EXPECT_GT(fitted(Algorithm::ring, falling)->latency_s, 0);
}

// A collective must be started, whatever the ranks.
TEST(Wire, NcclStartsACollectiveAndPassesParts) {
  const Link nccl{"NVIDIA H200", "nccl"};
  const Wire nvlink{.algorithm = Algorithm::ring, .latency_s = 3e-6, .message_s = 9e-6, .seconds_per_byte = 1 / 300e9};
  const auto of = [&](std::vector<int> ranks, Link link) {
    std::vector<WirePoint> points = points_of(nvlink, std::move(ranks));
    for (WirePoint& p : points) p.link = link;
    return fitted(Algorithm::ring, points);
  };
  const auto several = of({2, 4}, nccl);
  ASSERT_TRUE(several);
  EXPECT_NEAR(several->latency_s / 3e-6, 1, 1e-6);
  EXPECT_NEAR(several->message_s / 9e-6, 1, 1e-6);
  const std::vector<WirePoint> two{{nccl, Collective::all_reduce, 2, 8, 15e-6},
                                   {nccl, Collective::all_reduce, 2, 3e9, 10e-3 + 15e-6}};
  const auto one = fitted(Algorithm::ring, two);
  ASSERT_TRUE(one);
  EXPECT_NEAR(seconds_of(*one, Collective::all_reduce, 8, 2), 15e-6, 1e-12);
  EXPECT_NEAR(one->message_s / one->latency_s, 8.4 / 3.4, 1e-9) << "as NCCL's model of its costs has it";
  EXPECT_NEAR(seconds_of(*one, Collective::all_reduce, 8, 4) / 15e-6, (8.4 + 6 * 3.4) / (8.4 + 2 * 3.4), 1e-6);
  EXPECT_EQ(of({2}, {"NVIDIA H200", "nccl", true})->message_s, 0) << "between machines each step waits for the network";
}

// No straight line has the times of all sizes.
TEST(Wire, AMeasuredSizeTakesWhatItTook) {
  std::vector<WirePoint> points;
  for (const auto& [bytes, seconds] : {std::pair(1e6, 20e-6), {1e7, 50e-6}, {1e8, 500e-6}})
    points.push_back({a_link, Collective::all_reduce, 2, bytes, seconds});
  const auto wire = fitted(Algorithm::ring, points);
  ASSERT_TRUE(wire);
  EXPECT_GT(wire->worst, 0.05);
  for (const WirePoint& p : points)
    EXPECT_NEAR(seconds_of(*wire, Collective::all_reduce, p.bytes, 2) / p.seconds, 1, 1e-9) << p.bytes;
  const double between_s = seconds_of(*wire, Collective::all_reduce, 3e7, 2);
  EXPECT_GT(between_s, 50e-6);
  EXPECT_LT(between_s, 500e-6);
  // On more ranks, and of other kinds, sizes are as far from the model as these.
  Wire model = *wire;
  model.curves.clear();
  EXPECT_NEAR(
      seconds_of(*wire, Collective::all_reduce, 1e7 / 1.5, 4) / seconds_of(model, Collective::all_reduce, 1e7 / 1.5, 4),
      50e-6 / seconds_of(model, Collective::all_reduce, 1e7, 2), 1e-9);
  EXPECT_NEAR(seconds_of(*wire, Collective::all_gather, 2e7, 2) / seconds_of(model, Collective::all_gather, 2e7, 2),
              50e-6 / seconds_of(model, Collective::all_reduce, 1e7, 2), 1e-9);
}

TEST(Wire, TheNearestLinkIsTaken) {
  const Link plain{"NVIDIA H200", "nccl"};
  Link graph = plain, windows = plain;
  graph.in_graph = true;
  windows.in_graph = true, windows.memory = MessageMemory::windows;
  EXPECT_EQ(windows.text(), "NVIDIA H200, nccl, in graphs, windows");
  const Wires wires{{plain, {true_wire}}, {windows, {true_wire}}, {Link{"AMD EPYC", "gloo"}, {true_wire}}};
  ASSERT_TRUE(nearest(wires, graph));
  EXPECT_EQ(nearest(wires, graph)->first, plain) << "memory counts for more";
  EXPECT_EQ(nearest(wires, windows)->first, windows);
  EXPECT_FALSE(nearest(wires, {"NVIDIA H200", "nccl", true}));
}

TEST(Wire, OneRankHasNoLink) {
  const std::vector<WirePoint> alone{{a_link, Collective::all_reduce, 1, 1e6, 1e-5}};
  EXPECT_FALSE(fitted(Algorithm::ring, alone));
  EXPECT_FALSE(fitted(Algorithm::ring, {}));
  EXPECT_EQ(seconds_of(true_wire, Collective::all_reduce, 1e6, 1), 0);
}

}  // namespace
}  // namespace assay::host::forecast
