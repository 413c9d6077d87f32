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
  const std::vector<double> steady = {100, 101, 99, 100};
  EXPECT_EQ(judge(plan, std::span(steady).first(3)), Verdict::go_on);  // below min_steps, however steady
  EXPECT_EQ(judge(plan, steady), Verdict::enough);
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
