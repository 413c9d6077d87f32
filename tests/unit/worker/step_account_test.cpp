// The account of steps: counts, repetitions and what they may differ by; and steps of two stages in turns.
#include "worker/step_account.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "worker/peak_probe.hpp"
#include "worker/stage_trial.hpp"

namespace assay::host::worker {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// One mark a step, of magnitude 1.
StepAccount account_of_values(const std::vector<double>& values, double tolerance = 0) {
  StepAccount account;
  account.steps = values.size();
  account.marks_per_step = 1;
  account.tolerance = tolerance;
  for (const double value : values) account.marks.insert(account.marks.end(), {value, 1.0});
  return account;
}

measure::LoopResult of_steps(std::uint64_t before, std::uint64_t all) {
  measure::LoopResult result;
  result.iterations_before_window = before;
  result.iterations = all;
  return result;
}

struct Repeated {
  RepeatedSteps result;
  std::size_t repetitions = 0;
};
// `repetitions`: what each of them leaves; the last one again where more are asked for.
Repeated repeated(const StepAccount& timed, const std::vector<std::vector<double>>& repetitions, double step_s = 1,
                  double took_s = 0) {
  constexpr std::uint64_t before = 1;
  Repeated r;
  r.result = compare_repeated(
      timed, {timed.steps, before, step_s},
      [&](std::uint64_t) {
        StepAccount again =
            account_of_values(repetitions[std::min(r.repetitions++, repetitions.size() - 1)], timed.tolerance);
        again.took_s = took_s;
        return again;
      },
      [](bool mine) { return mine; });
  return r;
}

TEST(StepAccount, HasTheStepsThatWereCalled) {
  StepAccount account;
  account.steps = 12;
  EXPECT_EQ(mistake_in_count(account, of_steps(2, 12)), "");
  account.steps = 2;
  EXPECT_EQ(mistake_in_count(account, of_steps(2, 12)),
            "12 steps were called, 2 of them before the window, and the workload's state accounts for 2");
  account.steps = 13;
  EXPECT_NE(mistake_in_count(account, of_steps(2, 12)), "");
}

TEST(StepAccount, RepeatsAllStepsWhereTheyAreShort) {
  EXPECT_EQ(steps_to_repeat(of_steps(5, 105), 1e-3), 105u);
  EXPECT_EQ(steps_to_repeat(of_steps(5, 105), 0), 105u);
  EXPECT_EQ(steps_to_repeat(of_steps(5, 105), 0.05), 10u);  // half a second
  EXPECT_EQ(steps_to_repeat(of_steps(20, 120), 0.1), 22u);  // and some measured ones in any case
  EXPECT_EQ(steps_to_repeat(of_steps(1, 11), 10), 3u);      // two of long ones
  EXPECT_EQ(steps_to_repeat(of_steps(1, 2), 10), 2u);
}

TEST(StepAccount, RepeatedStepsAreTheSameToTheBit) {
  const Repeated same = repeated(account_of_values({3, 2, nan}), {{3, 2, nan}});
  EXPECT_EQ(same.result.mistake, "");
  EXPECT_EQ(same.result.text, "the first 3 repeated from the start with the same marks to the bit");
  EXPECT_EQ(same.repetitions, 1u);
  const Repeated other = repeated(account_of_values({3, 2, 1}), {{3, 2, 1.5}});
  EXPECT_EQ(
      other.result.mistake,
      "measured step 2 left 1, but 1.5 when it was repeated from the start (mark 1 of 1): the timed steps are not "
      "the verified ones");
  EXPECT_EQ(other.repetitions, 1u);
  EXPECT_NE(repeated(account_of_values({nan, 2}), {{3, 2}}).result.mistake.find("step 1 of the warm-up left nan"),
            std::string::npos);
}

TEST(StepAccount, AMagnitudeThatIsNoNumberForbidsNothingThatIsTheSame) {
  StepAccount timed = account_of_values({nan, 2}, 0.01);
  timed.marks[1] = nan;  // a step whose gradients are not finite, which a loss scale skips
  EXPECT_EQ(repeated(timed, {{nan, 2}}).result.mistake, "");
  EXPECT_NE(repeated(timed, {{3, 2}}).result.mistake, "");
}

TEST(StepAccount, ADeviceThatDoesNotRepeatItselfHasItsSpread) {
  // Within the tolerance, at once.
  EXPECT_EQ(repeated(account_of_values({3, 2}, 0.01), {{3.005, 2}}).repetitions, 1u);
  // Beyond it, and near what repetitions differ by.
  const Repeated near = repeated(account_of_values({3, 2}, 0.01), {{3, 2.1}, {3, 1.9}});
  EXPECT_EQ(near.result.mistake, "");
  EXPECT_EQ(near.repetitions, 2u);
  EXPECT_EQ(near.result.text, "the first 2 repeated from the start with marks as near as the device repeats itself");
  // Far beyond.
  const Repeated far = repeated(account_of_values({3, 9}, 0.01), {{3, 2.1}, {3, 1.9}, {3, 2}, {3, 2}, {3, 2}});
  EXPECT_NE(far.result.mistake.find("measured step 1 left 9, but 2.1"), std::string::npos) << far.result.mistake;
  EXPECT_EQ(far.repetitions, 5u);
  // Repetitions that agree show no spread.
  EXPECT_NE(repeated(account_of_values({3, 2}, 0.01), {{3, 2.1}}).result.mistake, "");
}

TEST(StepAccount, WhatALaterStepDiffersByExcusesNoEarlierOne) {
  const StepAccount timed = account_of_values({1, 5, 1}, 1e-3);
  EXPECT_NE(repeated(timed, {{1, 1, 1}, {1, 1, 1.5}}).result.mistake, "");
  EXPECT_NE(repeated(timed, {{1, 1, 1}, {1, 1, nan}}).result.mistake, "");
  EXPECT_NE(repeated(timed, {{1, 1, 1}, {1, nan, 1}}).result.mistake, "") << "no number is no spread";
}

TEST(StepAccount, ATimeHoldsTheWorkOfItsStep) {
  const StepAccount timed = account_of_values({3, 2});
  EXPECT_EQ(repeated(timed, {{3, 2}}, 0.1, 0.5).result.mistake, "");
  const Repeated longer = repeated(timed, {{3, 2}}, 0.1, 2);
  EXPECT_EQ(longer.result.mistake,
            "a measured step took 100 ms, but the first 2 steps took 1000 ms each when repeated and awaited: the time "
            "of a step does not include its work");
  EXPECT_EQ(longer.repetitions, 5u);
  EXPECT_EQ(repeated(timed, {{3, 2}}, 1e-6, 0.01).result.mistake, "");  // waits between short steps
}

TEST(StepAccount, ARepetitionThatCountsOtherStepsIsWrong) {
  EXPECT_EQ(repeated(account_of_values({3, 2}), {{3}}).result.mistake,
            "2 steps were repeated, and the workload's state accounts for 1, 1 of them marked");
}

TEST(StepAccount, WithoutMarksNothingIsCompared) {
  StepAccount timed;
  timed.steps = 4;
  const RepeatedSteps result = compare_repeated(
      timed, {4, 1, 1}, [](std::uint64_t) { return StepAccount(); }, [](bool mine) { return mine; });
  EXPECT_EQ(result.mistake, "");
  EXPECT_EQ(result.text, "what they leave has no marks");
}

TEST(StageTrial, FindsWhatDoesNothingWhenItIsMeasured) {
  const StageTrial idle = stage_trial([](bool measured) { return measured ? 1e-7 : 1e-3; });
  EXPECT_EQ(idle.measured_s.size(), static_cast<std::size_t>(stage_trial_pairs));
  EXPECT_EQ(idle.steps_together, 1);
  EXPECT_NE(mistake_in(idle).find("the slowest measured ones took 0.0001 ms, the fastest others 1 ms"),
            std::string::npos)
      << mistake_in(idle);
}

TEST(StageTrial, TakesShortStepsInARow) {
  const StageTrial idle = stage_trial([](bool measured) { return measured ? 1e-7 : 1e-5; });
  EXPECT_EQ(idle.steps_together, 100);
  EXPECT_NE(mistake_in(idle), "");
  EXPECT_EQ(mistake_in(stage_trial([](bool) { return 1e-5; })), "");
}

TEST(StageTrial, LetsNeighboursBe) {
  const auto mistake = [](std::vector<double> measured_s, std::vector<double> other_s) {
    return mistake_in(StageTrial{std::move(measured_s), std::move(other_s)});
  };
  EXPECT_EQ(mistake({1.0, 1.0, 1.0}, {1.1, 1.0, 5.0}), "");
  EXPECT_EQ(mistake({1.0, 1.0, 1.0}, {3.0, 3.0, 1.9}), "");  // one that was not slow
  EXPECT_EQ(mistake({1.0, 1.0, 1.0}, {0.5, 0.5, 0.5}), "");  // measured ones may take longer
  EXPECT_EQ(mistake({1e-8, 1e-8}, {1e-5, 1e-5}), "");        // calls, not steps
  EXPECT_EQ(mistake({}, {}), "");
}

TEST(StageTrial, FindsWhatStopsWorkingForGood) {
  EXPECT_TRUE(is_suspicious({1e-7, 1e-7, 1e-3, 1e-3}, 1e-3));  // every second step
  EXPECT_FALSE(is_suspicious({1e-3, 1e-3, 9e-4, 1e-3}, 1e-3));
  EXPECT_FALSE(is_suspicious({1e-7}, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(is_suspicious({1e-8}, 1e-5));  // calls, not steps
  EXPECT_EQ(mistake_in(std::vector{1e-7, 1e-7, 1e-7}, {5e-2, 1e-3, 2e-3}),
            "a quarter of the measured steps took at most 0.0001 ms, but a new object's first steps took at least 1 ms "
            "each: a "
            "measured step skips work");
  EXPECT_EQ(mistake_in(std::vector{1e-3, 1e-3}, {5e-2, 1e-3, 2e-3}), "");
  EXPECT_EQ(mistake_in(std::vector{1e-7, 1e-7}, {5e-2}), "");  // a first step does not count
}

record::Peak peak_of(double gflop_per_s) {
  record::Peak peak;
  peak.gflop_per_s = gflop_per_s;
  return peak;
}

TEST(Peak, OfWhichTheStepsDoMoreIsTriedAgain) {
  int trials = 0;
  const auto slow_at_first = [&] { return std::optional(peak_of(++trials == 1 ? 50 : 100)); };
  const CheckedPeak checked = checked_peak(slow_at_first, 90, [] { return false; });
  EXPECT_EQ(checked.mistake, "");
  EXPECT_EQ(*checked.peak->gflop_per_s, 100);
  EXPECT_EQ(trials, 2);
}

TEST(Peak, ThatStepsExceedEachTimeMakesThemWrong) {
  const auto at_most_100 = [] { return std::optional(peak_of(100)); };
  const CheckedPeak checked = checked_peak(at_most_100, 130, [] { return false; });
  EXPECT_EQ(checked.mistake,
            "the steps did 130 GFLOP/s and the device at most 100 in 8 trials after them: a step skipped work, or the "
            "workload states too many operations");
  EXPECT_EQ(checked_peak(at_most_100, 130, [] { return true; }).mistake, "");  // others had the processors
  EXPECT_EQ(checked_peak(at_most_100, 120, [] { return false; }).mistake, "");
  EXPECT_EQ(checked_peak([] { return std::optional<record::Peak>(); }, 130, [] { return false; }).mistake, "");
}

}  // namespace
}  // namespace assay::host::worker
