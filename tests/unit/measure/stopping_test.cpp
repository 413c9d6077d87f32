#include "measure/stopping.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace assay::host::measure {
namespace {

TEST(Stopping, FixedSteps) {
  const MeasurePlan plan{.steps = 3};
  const std::vector<double> x = {1, 1, 1};
  EXPECT_EQ(judge(plan, std::span(x).first(2)), Verdict::go_on);
  EXPECT_EQ(judge(plan, x), Verdict::enough);
}

TEST(Stopping, UntilTheMeanIsKnown) {
  MeasurePlan plan;
  plan.until = StoppingRule{0.05, 0.95, 4, 50};
  std::vector<double> steady;
  for (int i = 0; i < 30; ++i) steady.push_back(i % 3 == 0 ? 101 : i % 3 == 1 ? 99 : 100);
  EXPECT_EQ(judge(plan, std::span(steady).first(3)), Verdict::go_on);   // below min_steps, however steady
  EXPECT_EQ(judge(plan, std::span(steady).first(10)), Verdict::go_on);  // too few to know how they hang together
  EXPECT_EQ(judge(plan, steady), Verdict::enough);
}

// A slow wave: the fifty steps lie close to each other and say little of the mean.
TEST(Stopping, StepsThatResembleEachOtherAreNotEnough) {
  MeasurePlan plan;
  plan.until = StoppingRule{0.05, 0.95, 4, 500};
  std::vector<double> wave;
  for (int i = 0; i < 50; ++i) wave.push_back(i < 25 ? 100 : 101);
  EXPECT_EQ(judge(plan, wave), Verdict::go_on);
}

TEST(Stopping, WithoutACountTimeDecides) {
  const MeasurePlan plan;
  const std::vector<double> of_50_ms(50, 50e6), of_1_us(50, 1e3);
  EXPECT_EQ(judge(plan, std::span(of_50_ms).first(9)), Verdict::go_on);
  EXPECT_EQ(judge(plan, std::span(of_50_ms).first(10)), Verdict::enough);
  EXPECT_EQ(judge(plan, std::span(of_1_us).first(49)), Verdict::go_on);
  EXPECT_EQ(judge(plan, of_1_us), Verdict::enough);
}

TEST(Stopping, LooksGrowApart) {
  MeasurePlan plan;
  plan.until = StoppingRule{0.05, 0.95, 10, 30};
  EXPECT_EQ(next_look(plan, 0), 10);
  EXPECT_EQ(next_look(plan, 10), 13);
  EXPECT_EQ(next_look(plan, 28), 30);
  EXPECT_EQ(next_look({.steps = 7}, 0), 7);
}

TEST(Stopping, GivesUpAtTheMost) {
  MeasurePlan plan;
  plan.until = StoppingRule{0.001, 0.95, 2, 6};
  std::vector<double> wild = {1, 9, 2, 8, 3};
  EXPECT_EQ(judge(plan, wild), Verdict::go_on);
  wild.push_back(7);
  EXPECT_EQ(judge(plan, wild), Verdict::gave_up);
}

}  // namespace
}  // namespace assay::host::measure
