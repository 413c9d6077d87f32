#include <gtest/gtest.h>
#include <assay/mesh/strategy.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace assay::mesh {
namespace {

std::string refusal(const Strategy& strategy) {
  try {
    validate(strategy);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

const GradientMeeting averages{};
const GradientMeeting sums{.reduction = comm::Reduction::sum};
const parallel::ShardedUpdate::Options parts{};

TEST(Strategy, EachKindOfSharingWithItsExchangeIsValid) {
  EXPECT_EQ(refusal({.gradients = averages}), "");
  EXPECT_EQ(refusal({.update = parts, .gathers = parallel::Gathers::windows}), "");
  EXPECT_EQ(refusal({.shares = Shares::blocks, .gathers = parallel::Gathers::copy_engines}), "");
  EXPECT_EQ(refusal({.shares = Shares::columns}), "");
  EXPECT_EQ(refusal({.shares = Shares::tokens, .gradients = sums}), "");
  EXPECT_EQ(refusal({.shares = Shares::stages}), "");
  EXPECT_EQ(refusal({.shares = Shares::columns, .axes = {.ranks = 2, .replicas = 2}}), "");
  EXPECT_EQ(refusal({.shares = Shares::blocks, .axes = {.ranks = 2, .replicas = 2}}), "");
  EXPECT_EQ(refusal({.shares = Shares::stages, .axes = {.ranks = 2, .replicas = 2}}), "");
  EXPECT_EQ(refusal({.trainer = {.is_term = true},
                     .shares = Shares::tokens,
                     .axes = {.ranks = 1, .replicas = 2},
                     .gradients = sums}),
            "");
}

using Ranks = std::vector<std::int32_t>;

TEST(Axes, RanksThatFollowOneAnotherShareAReplica) {
  const Axes fourth = axes_of(4, 6, 3);
  EXPECT_EQ(fourth.place, 0);
  EXPECT_EQ(fourth.ranks, 2);
  EXPECT_EQ(fourth.replica, 2);
  EXPECT_EQ(fourth.replicas, 3);
  EXPECT_EQ(fourth.of_replica(), (Ranks{4, 5}));
  EXPECT_EQ(fourth.of_place(), (Ranks{0, 2, 4}));
  EXPECT_EQ(axes_of(5, 6, 3).of_place(), (Ranks{1, 3, 5}));
  EXPECT_EQ(axes_of(5, 6, 6).of_replica(), (Ranks{5}));
}

TEST(Axes, OfOneReplicaStandForAllRanks) {
  const Axes axes = axes_of(2, 4, 1);
  EXPECT_EQ(axes.place, 2);
  EXPECT_EQ(axes.ranks, 4);
  EXPECT_TRUE(axes.of_replica().empty());
  EXPECT_TRUE(axes.of_place().empty());
}

TEST(Axes, ReplicasThatDoNotDivideTheRanksAreRefused) {
  const auto refusal_of = [](std::int32_t ranks, std::int64_t replicas) {
    try {
      axes_of(0, ranks, replicas);
      return std::string("nothing thrown");
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), ASSAY_INVALID_ARGUMENT);
      return std::string(e.what());
    }
  };
  EXPECT_EQ(refusal_of(6, 4),
            "replicas 4 of 6 ranks; expected a divisor of the number of ranks, 1, 2, 3 or 6, or run.ranks a multiple "
            "of 4");
  EXPECT_EQ(refusal_of(1, 2),
            "replicas 2 of 1 rank; expected a divisor of the number of ranks, 1, or run.ranks a multiple of 2");
}

TEST(Strategy, OneWithoutAnExchangeOrWithTwoIsRefused) {
  EXPECT_EQ(refusal({}), "the strategy shares nothing and exchanges nothing; expected gradients or update");
  EXPECT_EQ(refusal({.gradients = averages, .update = parts}),
            "the strategy has both gradients and update; expected one of them");
  EXPECT_NE(refusal({.shares = Shares::blocks, .update = parts}), "");
  EXPECT_NE(refusal({.shares = Shares::columns, .gradients = sums}), "");
  EXPECT_NE(refusal({.shares = Shares::stages, .gradients = averages}), "");
  EXPECT_NE(refusal({.shares = Shares::tokens}), "");
  EXPECT_NE(refusal({.shares = Shares::tokens, .gradients = averages}), "");
  EXPECT_NE(refusal({.axes = {.replicas = 2}, .gradients = averages}), "");
  EXPECT_EQ(
      refusal({.shares = Shares::tokens, .axes = {.replicas = 2}, .gradients = sums}),
      "the strategy shares tokens in replicas, whose gradients are summed over all; expected losses that are terms "
      "of one mean; set trainer.is_term");
  EXPECT_NE(refusal({.gradients = averages, .gathers = parallel::Gathers::registered}), "");
}

}  // namespace
}  // namespace assay::mesh
