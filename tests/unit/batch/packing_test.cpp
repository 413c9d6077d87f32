#include "batch/packing.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "batch/submit.hpp"

namespace assay::host::batch {
namespace {

PackingInput input(std::int64_t index, double budget_s, const Shape& shape = {}) {
  return {shape, {index, budget_s, 0}};
}

std::vector<PackingInput> inputs(std::int64_t count, double budget_s, const Shape& shape = {}) {
  std::vector<PackingInput> cases;
  for (std::int64_t i = 0; i < count; ++i) cases.push_back(input(i, budget_s, shape));
  return cases;
}

std::vector<std::int64_t> indices_of(const std::vector<PackedArray>& arrays) {
  std::vector<std::int64_t> indices;
  for (const PackedArray& array : arrays)
    for (const PackedShard& shard : array.shards)
      for (const PackedCase& c : shard.cases) indices.push_back(c.index);
  return indices;
}

TEST(Packing, NodesDoNotIdleWhileOneWorks) {
  // 16 x 150 s: 8 jobs of 300 s, and no more jobs than that.
  const auto arrays = pack(inputs(16, 150), {3300, 100, false, 16});
  ASSERT_EQ(arrays.size(), 1U);
  EXPECT_EQ(arrays[0].shards.size(), 8U);
  EXPECT_EQ(pack(inputs(160, 150), {3300, 100, false, 16})[0].shards.size(), 16U);
  EXPECT_EQ(pack(inputs(16, 10), {3300, 100, false, 16})[0].shards.size(), 1U) << "a job has its costs, too";
  EXPECT_EQ(pack(inputs(16, 150), {3300, 100, false, 1})[0].shards.size(), 1U);
}

TEST(Packing, NothingNeedsNoJob) { EXPECT_TRUE(pack({}, {100, 10, true}).empty()); }

TEST(Packing, ASingleCaseIsItsOwnCanary) {
  const auto arrays = pack(inputs(1, 10), {100, 10, true});
  ASSERT_EQ(arrays.size(), 1U);
  EXPECT_FALSE(arrays[0].is_canary);
}

TEST(Packing, ShardsAreFullToTheBrimAndNoFuller) {
  const auto exact = pack(inputs(10, 25), {100, 100, false});
  ASSERT_EQ(exact.size(), 1U);
  ASSERT_EQ(exact[0].shards.size(), 3U);
  EXPECT_EQ(exact[0].shards[0].cases.size(), 4U);
  EXPECT_EQ(exact[0].shards[2].cases.size(), 2U);
  EXPECT_DOUBLE_EQ(exact[0].longest_s(), 100);
  EXPECT_EQ(pack(inputs(10, 25.01), {100, 100, false})[0].shards.size(), 4U);
}

TEST(Packing, ACaseAboveTheCapacityIsAlone) {
  const auto arrays = pack({input(0, 10), input(1, 200), input(2, 10)}, {100, 100, false});
  ASSERT_EQ(arrays[0].shards.size(), 3U);
  EXPECT_EQ(arrays[0].shards[1].cases[0].index, 1);
}

TEST(Packing, ShapesNeverShareAJobAndKeepTheirOrder) {
  const Shape one{1, 8, ""}, two{2, 8, ""}, named{1, 8, "n3"};
  const auto arrays = pack({input(0, 1, two), input(1, 1, one), input(2, 1, two), input(3, 1, named), input(4, 1, one)},
                           {100, 9, false});
  ASSERT_EQ(arrays.size(), 3U);
  EXPECT_EQ(arrays[0].shape, two);
  EXPECT_EQ(arrays[1].shape, one);
  EXPECT_EQ(arrays[2].shape, named);
  EXPECT_EQ(indices_of(arrays), (std::vector<std::int64_t>{0, 2, 1, 4, 3}));
}

TEST(Packing, TheCanaryIsTheCheapestByNodesAndTime) {
  const auto arrays =
      pack({input(0, 30, {1, 1, ""}), input(1, 20, {2, 1, ""}), input(2, 25, {1, 1, ""}), input(3, 25, {1, 1, ""})},
           {1000, 100, true});
  ASSERT_EQ(arrays.size(), 3U);
  EXPECT_TRUE(arrays[0].is_canary);
  ASSERT_EQ(arrays[0].shards.size(), 1U);
  EXPECT_EQ(arrays[0].shards[0].cases.size(), 1U);
  EXPECT_EQ(arrays[0].shards[0].cases[0].index, 2);
  EXPECT_FALSE(arrays[1].is_canary);
}

TEST(Packing, ArraysAreNoLongerThanTheSchedulerTakes) {
  for (const std::int64_t most : {1, 2, 7, 99, 100, 101}) {
    const auto arrays = pack(inputs(100, 60), {100, most, false});
    std::size_t shards = 0;
    for (const PackedArray& array : arrays) {
      EXPECT_LE(array.shards.size(), static_cast<std::size_t>(most));
      EXPECT_FALSE(array.shards.empty());
      shards += array.shards.size();
    }
    EXPECT_EQ(shards, 100U);
  }
  EXPECT_EQ(pack(inputs(3, 60), {100, 0, false}).size(), 3U);
}

TEST(Packing, EveryCaseExactlyOnce) {
  for (const bool canary : {false, true}) {
    const auto found = indices_of(pack(inputs(1000, 7.5), {100, 10, canary}));
    EXPECT_EQ(found.size(), 1000U);
    EXPECT_EQ(std::set<std::int64_t>(found.begin(), found.end()).size(), 1000U);
  }
}

TEST(Shapes, RanksOfANodeFollowTheRun) {
  experiment::Case c;
  EXPECT_EQ(shape_of(c, 8), (Shape{1, 1, ""})) << "nothing is said";
  c.run.ranks = experiment::ranks_all;
  EXPECT_EQ(shape_of(c, 8).ranks_per_node, 8);
  EXPECT_EQ(shape_of(c, 0).ranks_per_node, 1);
  c.run.ranks = 6;
  EXPECT_EQ(shape_of(c, 8).ranks_per_node, 6);
  c.cluster.nodes = 4;
  EXPECT_EQ(shape_of(c, 8).ranks_per_node, 2) << "rounded up";
  c.cluster.ranks_per_node = 3;
  c.cluster.node = "n1+n2";
  EXPECT_EQ(shape_of(c, 8), (Shape{4, 3, "n1+n2", c.run.seed}));
}

TEST(Shapes, InWords) {
  EXPECT_EQ((Shape{1, 1, ""}.text()), "1 node x 1 rank");
  EXPECT_EQ((Shape{2, 8, "a+b"}.text()), "2 nodes (a+b) x 8 ranks");
}

class Plans : public ::testing::Test {
 protected:
  Plans() {
    for (std::int64_t i = 0; i < 4; ++i) {
      experiment_.cases.emplace_back().index = 10 + i;
      budgets_.push_back({600, i == 0 ? Budget::Source::site : Budget::Source::given});
    }
    site_.limits.margin = std::chrono::minutes(5);
  }
  experiment::Experiment experiment_;
  std::vector<Budget> budgets_;
  Site site_;
};

TEST_F(Plans, NodeHoursAndWhatNobodyKnew) {
  const BatchPlan plan = plan_batch(experiment_, site_, budgets_, 100);
  EXPECT_NEAR(plan.node_hours, 4 * 600 / 3600.0, 1e-9);
  EXPECT_EQ(plan.cases_without_budget, 1);
  EXPECT_TRUE(plan.arrays.at(0).is_canary);
}

TEST_F(Plans, SomeCasesAlone) {
  const std::vector<std::int64_t> only{13, 11};
  const BatchPlan plan = plan_batch(experiment_, site_, budgets_, 100, &only, {{11, 1}}, false);
  EXPECT_EQ(indices_of(plan.arrays), (std::vector<std::int64_t>{11, 13}));
  EXPECT_EQ(plan.arrays[0].shards[0].cases[0].unfinished_before, 1);
  const std::vector<std::int64_t> none;
  EXPECT_TRUE(plan_batch(experiment_, site_, budgets_, 100, &none).arrays.empty());
}

TEST_F(Plans, ABudgetThatNoJobHoldsIsRefusedWithItsCase) {
  budgets_[2].seconds = 55 * 60;
  EXPECT_NO_THROW(plan_batch(experiment_, site_, budgets_, 100));
  budgets_[2].seconds = 55 * 60 + 1;
  try {
    plan_batch(experiment_, site_, budgets_, 100);
    FAIL();
  } catch (const SubmitError& e) {
    EXPECT_NE(std::string(e.what()).find("case 13 has a budget of 3301 s"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace assay::host::batch
