#include "scaling/wire.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace assay::host::scaling {
namespace {

const Wire true_wire{.algorithm = Algorithm::ring, .latency_s = 8e-6, .seconds_per_byte = 1 / 150e9};

std::vector<WirePoint> points_of(const Wire& wire, std::vector<int> ranks, double factor = 1) {
  std::vector<WirePoint> points;
  for (const int n : ranks)
    for (double bytes = 8; bytes < 1e9; bytes *= 8)
      for (const Collective c : {Collective::all_reduce, Collective::all_gather})
        points.push_back(
            {"a link", c, n, bytes, seconds_of(wire, c, bytes, n) * (points.size() % 2 == 0 ? factor : 1 / factor)});
  return points;
}

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
  const std::vector<WirePoint> one{{"a link", Collective::all_reduce, 2, 1e6, 1e-3}};
  const auto wire = fitted(Algorithm::ring, one);
  ASSERT_TRUE(wire);
  EXPECT_FALSE(wire->tells_latency);
  EXPECT_EQ(wire->sizes, 1u);
  EXPECT_EQ(wire->latency_s, 0);
  EXPECT_DOUBLE_EQ(seconds_of(*wire, Collective::all_reduce, 1e6, 2), 1e-3);
}

TEST(Wire, NeitherIsBelowZero) {
  // Small messages that are faster in relation than large ones: no latency explains them.
  const std::vector<WirePoint> points{{"a link", Collective::all_reduce, 2, 1e3, 1e-7},
                                      {"a link", Collective::all_reduce, 2, 1e6, 1e-3}};
  const auto wire = fitted(Algorithm::ring, points);
  ASSERT_TRUE(wire);
  EXPECT_EQ(wire->latency_s, 0);
  EXPECT_GT(wire->seconds_per_byte, 0);
  const std::vector<WirePoint> falling{{"a link", Collective::all_reduce, 2, 1e3, 1e-3},
                                       {"a link", Collective::all_reduce, 2, 1e6, 1e-4}};
  EXPECT_EQ(fitted(Algorithm::ring, falling)->seconds_per_byte, 0);
  EXPECT_GT(fitted(Algorithm::ring, falling)->latency_s, 0);
}

TEST(Wire, OneRankHasNoLink) {
  const std::vector<WirePoint> alone{{"a link", Collective::all_reduce, 1, 1e6, 1e-5}};
  EXPECT_FALSE(fitted(Algorithm::ring, alone));
  EXPECT_FALSE(fitted(Algorithm::ring, {}));
  EXPECT_EQ(seconds_of(true_wire, Collective::all_reduce, 1e6, 1), 0);
}

}  // namespace
}  // namespace assay::host::scaling
