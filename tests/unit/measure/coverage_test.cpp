// What an interval promises: nominal 95% holds the true mean in at least 90% of the measurements, also where the rule
// has stopped as soon as the interval looked narrow enough, and where steps hang together. Simulated with a fixed seed.
#include "measure/statistics.hpp"
#include "measure/stopping.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "support/trials.hpp"

namespace assay::host::measure {
namespace {

constexpr int measurements = assay::test::that_many(1000);

struct Simulated {
  double covered = 0, mean_steps = 0;
};

// Steps of 1 with a standard deviation of `cv`, each resembling the one before by `share`.
class Steps {
 public:
  Steps(double share, double cv, std::uint64_t seed) : random_(seed), share_(share), cv_(cv), last_(normal_(random_)) {}
  double next() {
    const double step = 1 + cv_ * last_;
    last_ = share_ * last_ + std::sqrt(1 - share_ * share_) * normal_(random_);
    return step;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<> normal_;
  double share_, cv_, last_;
};

Simulated simulate(const MeasurePlan& plan, double share, double cv) {
  Simulated result;
  for (int i = 0; i < measurements; ++i) {
    Steps steps(share, cv, static_cast<std::uint64_t>(i) + 1);
    std::vector<double> x;
    do {
      for (const std::int64_t look = next_look(plan, static_cast<std::int64_t>(x.size()));
           static_cast<std::int64_t>(x.size()) < look;)
        x.push_back(steps.next());
    } while (judge(plan, x) == Verdict::go_on);
    const Statistics s = summarize(x);
    result.covered += s.ci_low <= 1 && 1 <= s.ci_high ? 1.0 / measurements : 0;
    result.mean_steps += static_cast<double>(x.size()) / measurements;
  }
  return result;
}

class Coverage : public testing::TestWithParam<double> {};

TEST_P(Coverage, OfTheRule) {
  MeasurePlan plan;
  plan.until.emplace();  // 1% of the mean
  for (const double cv : {0.005, 0.01, 0.02, 0.05})
    EXPECT_GE(simulate(plan, GetParam(), cv).covered, 0.90) << "autocorrelation " << GetParam() << ", cv " << cv;
}

TEST_P(Coverage, OfAFixedNumberOfSteps) {
  EXPECT_GE(simulate({.steps = 100}, GetParam(), 0.02).covered, 0.90) << "autocorrelation " << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Autocorrelation, Coverage, testing::Values(0.0, 0.5, 0.8, 0.9));

// The price of caution is small where there is nothing to be cautious of.
TEST(CoverageOfIndependentSteps, CostsFewSteps) {
  MeasurePlan plan;
  plan.until.emplace();
  EXPECT_LT(simulate(plan, 0, 0.005).mean_steps, 32);
  EXPECT_LT(simulate(plan, 0, 0.05).mean_steps, 150);  // (1.96 * 5 / 1)^2 = 96 are needed
}

}  // namespace
}  // namespace assay::host::measure
