// How often verdicts are wrong, and how often they find a change, over many trials of made noise.
#include "noisy_records.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "compare/verdict.hpp"
#include "measured_runs.hpp"
#include "support/trials.hpp"

namespace assay::host::compare {
namespace {

using assay::test::that_many;

struct Rates {
  double lower = 0, higher = 0, same = 0;
};

Rates rates(double slowdown, std::size_t runs, std::size_t steps, const Noise& noise, TestOptions options = {}) {
  if (runs == 1) options.states = 0;
  NoisyRuns machine(7);
  constexpr int kTrials = that_many(200);
  std::map<Outcome, int> counts;
  for (int i = 0; i < kTrials; ++i) {
    TestedSide a{"A", {}}, b{"B", {}};
    for (std::size_t r = 0; r < runs; ++r) {
      a.runs.push_back(measured(machine.steps(100, steps, noise)));
      b.runs.push_back(measured(machine.steps(100 * (1 + slowdown), steps, noise)));
    }
    ++counts[compare_figures(a, b, options).outcome];
  }
  const auto share = [&counts](Outcome outcome) { return static_cast<double>(counts[outcome]) / kTrials; };
  return {share(Outcome::lower), share(Outcome::higher), share(Outcome::same)};
}

// The seed is fixed: these shares are the same on every machine.
TEST(Verdict, FalseVerdictsAreRareWhateverTheNoise) {
  const Noise noises[] = {{0, 0.01, 0, 0},      {0.004, 0.01, 0.5, 0},   {0.004, 0.03, 0.5, 0.1},
                          {0.004, 0.001, 0, 0}, {0.005, 0.05, 0.3, 0.3}, {0, 0, 0, 0.05}};
  for (const std::size_t runs : {1u, 3u})
    for (const std::size_t steps : {10u, 30u, 200u})
      for (const Noise& noise : noises) {
        const Rates found = rates(0, runs, steps, noise);
        EXPECT_LE(found.lower + found.higher, 0.05)
            << runs << " runs of " << steps << " steps, noise of run " << noise.of_run << ", of step " << noise.of_step;
      }
}

TEST(Verdict, ASlowdownOfThreePercentIsFound) {
  EXPECT_GE(rates(0.03, 1, 300, {0.002, 0.02, 0.5, 0}).higher, 0.85);
  EXPECT_GE(rates(0.03, 1, 10, {0.002, 0.002, 0, 0}).higher, 0.95);
  EXPECT_GE(rates(0.03, 3, 60, {0.004, 0.01, 0.3, 0}).higher, 0.9);
  EXPECT_GE(rates(-0.03, 3, 60, {0.004, 0.01, 0.3, 0}).lower, 0.9);
  // A tenth of the steps take half as long again, and the means of 60 steps scatter by 2%.
  EXPECT_GE(rates(0.03, 3, 60, {0.004, 0.02, 0.3, 0.1}).higher, 0.1);
  EXPECT_GE(rates(0.03, 3, 60, {0.004, 0.01, 0.3, 0.1}, by_undisturbed_steps()).higher, 0.6);
}

// A new run beside a history: what the runs of the one side differ by is what the other one's may be off.
TEST(Verdict, ASingleRunBesideManyIsSeldomFalse) {
  constexpr int kTrials = that_many(300);
  for (const std::size_t many : {5u, 8u, 10u, 20u}) {
    NoisyRuns machine(91);
    int wrong = 0;
    for (int i = 0; i < kTrials; ++i) {
      TestedSide a{"A", {}}, b{"B", {measured(machine.steps(100, 50, {0.02, 0.002, 0, 0}))}};
      for (std::size_t r = 0; r < many; ++r) a.runs.push_back(measured(machine.steps(100, 50, {0.02, 0.002, 0, 0})));
      const Outcome outcome = compare_figures(a, b, {}).outcome;
      wrong += outcome == Outcome::lower || outcome == Outcome::higher ? 1 : 0;
    }
    EXPECT_LE(wrong, kTrials / 20 + (kTrials < 50 ? 1 : 0)) << many;
  }
}

// Two runs that scatter by 3%, beside eight that scatter by 0.1%.
TEST(Verdict, TheSideOfFewRunsMayScatterMore) {
  NoisyRuns machine(93);
  constexpr int kTrials = that_many(300);
  int wrong = 0;
  for (int i = 0; i < kTrials; ++i) {
    TestedSide a{"A", {}}, b{"B", {}};
    for (int r = 0; r < 8; ++r) a.runs.push_back(measured(machine.steps(100, 50, {0.001, 0.001, 0, 0})));
    for (int r = 0; r < 2; ++r) b.runs.push_back(measured(machine.steps(100, 50, {0.03, 0.001, 0, 0})));
    const Outcome outcome = compare_figures(a, b, {}).outcome;
    wrong += outcome == Outcome::lower || outcome == Outcome::higher ? 1 : 0;
  }
  EXPECT_LE(wrong, kTrials / 20 + (kTrials < 50 ? 1 : 0));
}

// docs/compare.md has the shares of a longer simulation: those of a few hundred trials scatter around them.
TEST(Verdict, ThreeRunsASideAreSeldomWrongAndFindThreePercent) {
  std::mt19937 random(71);
  std::uniform_real_distribution<double> stall_share(0, 0.1);
  NoisyRuns machine(72);
  constexpr int kTrials = that_many(300);
  for (const double of_run : {0.003, 0.005, 0.01}) {
    int wrong = 0, found = 0;
    for (int i = 0; i < kTrials; ++i) {
      TestedSide a{"A", {}}, b{"B", {}}, slower{"B", {}};
      for (int r = 0; r < 3; ++r)
        for (TestedSide* side : {&a, &b, &slower})
          side->runs.push_back(
              measured(machine.steps(side == &slower ? 103 : 100, 200, {of_run, 0.01, 0.5, stall_share(random)})));
      const Outcome of_same = compare_figures(a, b, {}).outcome;
      wrong += of_same == Outcome::lower || of_same == Outcome::higher ? 1 : 0;
      found += compare_figures(a, slower, {}).outcome == Outcome::higher ? 1 : 0;
    }
    // Stalls in up to a tenth of the steps: where the slower side has fewer of them by chance, nothing is said.
    const bool is_steady = of_run < 0.01;
    EXPECT_LE(wrong, (kTrials * (is_steady ? 2 : 5) + 99) / 100) << of_run;  // one of a few at least
    EXPECT_GE(found, is_steady ? kTrials * 2 / 5 : kTrials / 5) << of_run;
  }
}

TEST(Verdict, SameIsSaidOfWhatIsTheSame) {
  EXPECT_GE(rates(0, 1, 300, {0.002, 0.01, 0.3, 0}).same, 0.85);
  EXPECT_GE(rates(0, 5, 60, {0.004, 0.02, 0.3, 0}).same, 0.8);
  // Of a step in ten that takes half as long again, 300 steps a side have 30, give or take five: that is 1%.
  EXPECT_EQ(rates(0, 5, 60, {0.004, 0.02, 0.3, 0.1}).same, 0);
  EXPECT_EQ(rates(0.05, 1, 300, {0.002, 0.01, 0.3, 0}).same, 0);
}

}  // namespace
}  // namespace assay::host::compare
