#include "compare/verdict.hpp"
#include "compare/figure_alone.hpp"

#include "noisy_records.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <utility>

#include "measured_runs.hpp"
#include "support/trials.hpp"

namespace assay::host::compare {
namespace {

using assay::test::that_many;

RunFigure published(double mean, std::optional<double> std, std::optional<std::size_t> n) {
  RunFigure figure;
  figure.mean = mean, figure.std = std, figure.n = n, figure.timed = true;
  return figure;
}

TestResult test(const RunFigure& a, const RunFigure& b, const TestOptions& options = one_state().test) {
  return compare_figures({"A", {a}}, {"B", {b}}, options);
}

std::vector<double> two_modes(double fast_ms, double slow_ms, double slow_share, std::size_t n, unsigned seed);

// Every fiftieth step takes three times as long, and runs of ten steps mostly miss it.
TEST(Verdict, ShortRunsMissSlowStepsAndSayNothingOfThem) {
  NoisyRuns machine(94);
  std::mt19937 random(95);
  std::uniform_int_distribution<std::size_t> first(0, 49);
  const auto stalling = [&](std::size_t n) {
    std::vector<double> steps = machine.steps(100, n, {0.001, 0.002, 0, 0});
    for (std::size_t i = first(random); i < n; i += 50) steps[i] *= 3;
    return measured(steps);
  };
  for (int i = 0; i < that_many(50); ++i) {
    TestedSide a{"A", {}}, b{"B", {}};
    for (int r = 0; r < 3; ++r) a.runs.push_back(stalling(10)), b.runs.push_back(stalling(1000));
    EXPECT_EQ(compare_figures(a, b, {}).outcome, Outcome::cannot_tell) << i;
  }
}

TEST(Verdict, OneStalledStepMakesNoRunSlower) {
  NoisyRuns machine(96);
  for (const double factor : {100.0, 1e3, 1e6}) {
    std::vector<double> steps = machine.steps(10, 30, {0, 0.002, 0, 0});
    steps[17] *= factor;
    EXPECT_EQ(compare_figures({"A", {measured(machine.steps(10, 30, {0, 0.002, 0, 0}))}}, {"B", {measured(steps)}}, {})
                  .outcome,
              Outcome::cannot_tell)
        << factor;
  }
}

// Runs that do not say when they were made are taken for made together.
TEST(Verdict, ARunWithoutATimeMakesNoVerdictSurer) {
  TestedSide a{"A", {}}, b{"B", {}};
  for (int r = 0; r < 3; ++r) {
    a.runs.push_back(measured(std::vector<double>(50, 100 + 0.4 * r)));
    b.runs.push_back(measured(std::vector<double>(50, 102.5 + 0.4 * r)));
    a.runs.back().started_s = 60.0 * r, b.runs.back().started_s = 60.0 * (3 + r);
  }
  const TestResult in_blocks = compare_figures(a, b, {});
  b.runs[1].started_s.reset();
  const TestResult partly = compare_figures(a, b, {});
  EXPECT_EQ(*partly.low, *in_blocks.low);
  for (int r = 0; r < 3; ++r) a.runs[r].started_s = 120.0 * r, b.runs[r].started_s = 120.0 * r + 60;
  EXPECT_GT(*compare_figures(a, b, {}).low, *in_blocks.low);
}

TestedSide side_of_levels(const std::string& label, const std::vector<double>& percent) {
  TestedSide side{label, {}};
  for (const double level : percent)
    side.runs.push_back(measured(std::vector<double>(50, 100 * std::exp(level / 100))));
  return side;
}

// By normal errors their interval leaves out 1, but 4 of 70 ways to deal the runs to two sides lie as far apart.
TEST(Verdict, RunsThatLieAmongOneAnotherNeedMore) {
  const TestedSide a = side_of_levels("A", {0, 1, 2, 8.1}), b = side_of_levels("B", {8, 9, 10, 11});
  const TestResult result = compare_figures(a, b, {});
  EXPECT_GT(*result.low, 1);
  EXPECT_EQ(result.outcome, Outcome::cannot_tell);
  ASSERT_FALSE(result.notes.empty());
  EXPECT_NE(result.notes.front().find("dealt to two sides"), std::string::npos) << result.notes.front();
  EXPECT_EQ(compare_figures(side_of_levels("A", {0, 1, 2, 3}), b, {}).outcome, Outcome::higher);
}

// Runs that agree by chance are worth no more than their steps are.
TEST(Verdict, RunsThatAgreeAreNoSurerThanTheirSteps) {
  NoisyRuns machine(98);
  const std::vector<double> steps = machine.steps(100, 50, {0, 0.1, 0, 0});
  std::vector<double> slower;
  for (const double ms : steps) slower.push_back(1.03 * ms);
  TestedSide a{"A", {}}, b{"B", {}};
  for (int r = 0; r < 3; ++r) a.runs.push_back(measured(steps)), b.runs.push_back(measured(slower));
  EXPECT_EQ(compare_figures(a, b, {}).outcome, Outcome::cannot_tell);
}

// Equal in the mean: nine steps in ten are 3% shorter, and one is 27% longer.
TEST(Verdict, EqualMeansOfOtherStepsAreNotTheSame) {
  TestedSide a{"A", {}}, b{"B", {}};
  for (int r = 0; r < 5; ++r) {
    a.runs.push_back(measured(std::vector<double>(50, 100 + 0.01 * r)));
    std::vector<double> steps(50, 97.0);
    for (std::size_t i = static_cast<std::size_t>(r); i < 50; i += 10) steps[i] = 127;
    b.runs.push_back(measured(steps));
  }
  EXPECT_EQ(compare_figures(a, b, {}).outcome, Outcome::differs_in_tail);
  EXPECT_EQ(compare_figures(b, a, {}).outcome, Outcome::differs_in_tail);
}

// One or two runs a side are never sure of their slow steps.
TEST(Verdict, FewRunsDoNotDifferInTheirTail) {
  for (const int runs : {1, 2}) {
    TestedSide a{"A", {}}, b{"B", {}};
    for (int r = 0; r < runs; ++r) {
      a.runs.push_back(measured(std::vector<double>(100, 100.0)));
      std::vector<double> steps = two_modes(96, 140, 0.1, 100, 97 + static_cast<unsigned>(r));
      b.runs.push_back(measured(steps));
    }
    EXPECT_EQ(compare_figures(a, b, by_undisturbed_steps()).outcome, Outcome::cannot_tell) << runs;
  }
}

// Of slow steps on both sides: a change within the threshold is none, by undisturbed steps either.
TEST(Verdict, UndisturbedStepsHaveTheThresholdToo) {
  NoisyRuns machine(92);
  for (int i = 0; i < that_many(50); ++i) {
    TestedSide a{"A", {}}, b{"B", {}};
    for (int r = 0; r < 10; ++r) {
      a.runs.push_back(measured(machine.steps(100, 50, {0.001, 0.002, 0, 0.1})));
      b.runs.push_back(measured(machine.steps(101, 50, {0.001, 0.002, 0, 0.1})));
    }
    for (const std::string& note : compare_figures(a, b, {}).notes)
      EXPECT_FALSE(note.starts_with("by the 5th percentile")) << note;
  }
}

TEST(Verdict, RestlessStepsWidenTheInterval) {
  NoisyRuns machine(1);
  const RunFigure calm = measured(machine.steps(100, 30, {0, 0.001, 0, 0}));
  const RunFigure restless = measured(machine.steps(100, 30, {0, 0.1, 0, 0}));
  const RunFigure as_restless = measured(machine.steps(100, 30, {0, 0.1, 0, 0}));
  const TestResult a = test(calm, calm), b = test(restless, as_restless);
  EXPECT_EQ(a.outcome, Outcome::same);
  EXPECT_GT(*b.high / *b.low, 1.05);
  EXPECT_LT(*a.high / *a.low, 1.04);
  EXPECT_EQ(b.outcome, Outcome::cannot_tell);
}

TEST(Verdict, WhatARunMightHaveGainedIsNotHeldAgainstIt) {
  NoisyRuns machine(2);
  const RunFigure calm = measured(machine.steps(100, 100, {0, 0.005, 0, 0}));
  RunFigure waited = measured(machine.steps(110, 100, {0, 0.005, 0, 0}));
  EXPECT_EQ(test(calm, waited).outcome, Outcome::higher);
  waited.waited_share = 0.2;
  const TestResult result = test(calm, waited);
  EXPECT_EQ(result.outcome, Outcome::cannot_tell);
  EXPECT_LT(*result.low, 0.7);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_NE(result.notes[0].find("B's threads waited for other processes 20% of the time"), std::string::npos)
      << result.notes[0];
  // In the other direction nothing excuses it: it waited, and is faster all the same.
  waited = measured(machine.steps(50, 100, {0, 0.005, 0, 0}));
  waited.waited_share = 0.5;
  EXPECT_EQ(test(calm, waited).outcome, Outcome::lower);
  // As the baseline it could have been faster than it was: B is not known to be faster.
  EXPECT_EQ(test(waited, measured(machine.steps(40, 100, {0, 0.005, 0, 0}))).outcome, Outcome::cannot_tell);
}

TEST(Verdict, ASharedGpuIsNoGroundForAVerdict) {
  NoisyRuns machine(9);
  const Noise quiet{0, 0.001, 0, 0};
  const RunFigure alone = measured(machine.steps(100, 50, quiet));
  RunFigure shared = measured(machine.steps(200, 50, quiet));
  shared.shared_device = true;
  const TestResult result = test(alone, shared);
  EXPECT_EQ(result.outcome, Outcome::cannot_tell);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_NE(result.notes[0].find("other processes computed on the GPU of B"), std::string::npos) << result.notes[0];
}

TEST(Verdict, ContendedRunsAreLeftOutWhereThereAreOthers) {
  NoisyRuns machine(3);
  const Noise quiet{0.001, 0.005, 0, 0};
  TestedSide a{"A", {}}, b{"B", {}};
  for (int i = 0; i < 4; ++i) {
    a.runs.push_back(measured(machine.steps(100, 50, quiet)));
    b.runs.push_back(measured(machine.steps(i == 1 ? 300 : 100, 50, quiet)));
  }
  b.runs[1].waited_share = 0.6;
  const TestResult result = compare_figures(a, b, {});
  EXPECT_EQ(result.outcome, Outcome::same);
  EXPECT_EQ(result.runs_a, 4u);
  EXPECT_EQ(result.runs_b, 3u);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_NE(result.notes[0].find("1 of 4 runs of B left out"), std::string::npos) << result.notes[0];
}

TEST(Verdict, SlowStepsThatAQuartileHidesAreNotTheSame) {
  NoisyRuns machine(4);
  const RunFigure steady = measured(machine.steps(100, 300, {0, 0.002, 0, 0}));
  const RunFigure stalling = measured(machine.steps(100, 300, {0, 0.002, 0, 0.4}));
  EXPECT_EQ(test(steady, stalling).outcome, Outcome::higher);
  TestOptions options = one_state().test;
  options.statistic = Statistic::p05;
  const TestResult result = test(steady, stalling, options);
  EXPECT_EQ(result.outcome, Outcome::differs_in_tail);
  ASSERT_FALSE(result.notes.empty());
  EXPECT_NE(result.notes.back().find("the sides differ in their slow steps"), std::string::npos) << result.notes.back();
  EXPECT_NEAR(*result.other_ratio, 1.2, 0.03);
}

TEST(Verdict, OneRunThatIsLeftOfSeveralIsNotTrustedAlone) {
  NoisyRuns machine(10);
  TestedSide a{"A", {}}, b{"B", {}};
  for (int i = 0; i < 3; ++i) {
    a.runs.push_back(measured(machine.steps(100, 50, {0.001, 0.002, 0, 0})));
    b.runs.push_back(measured(machine.steps(i == 1 ? 104 : 130, 50, {0.001, 0.002, 0, 0})));
    if (i != 1) b.runs.back().waited_share = 0.2;
  }
  const TestResult result = compare_figures(a, b, {});
  EXPECT_EQ(result.outcome, Outcome::cannot_tell);
  EXPECT_EQ(result.runs_b, 3u);
  ASSERT_FALSE(result.notes.empty());
  EXPECT_NE(result.notes[0].find("B's threads waited for other processes 20% of the time"), std::string::npos)
      << result.notes[0];
}

// The steps of a program with a fast and a slow path.
std::vector<double> two_modes(double fast_ms, double slow_ms, double slow_share, std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::bernoulli_distribution is_slow(slow_share);
  std::vector<double> steps;
  for (std::size_t i = 0; i < n; ++i) steps.push_back(is_slow(random) ? slow_ms : fast_ms);
  return steps;
}

TEST(Verdict, FastStepsDoNotMakeUpForSlowOnes) {
  // 4% less in four steps of five, 4.8% more in the mean.
  for (const std::size_t runs : {1u, 3u})
    // The means of three runs of 20 such steps may scatter by as much as they differ.
    for (const std::size_t n : {runs == 1 ? 20u : 40u, 100u, 1000u})
      for (unsigned seed = 1; seed <= 20; ++seed) {
        TestedSide a{"A", {}}, b{"B", {}};
        for (std::size_t r = 0; r < runs; ++r) {
          a.runs.push_back(measured(std::vector<double>(n, 10.0)));
          b.runs.push_back(measured(two_modes(9.6, 14.0, 0.2, n, seed * 10 + static_cast<unsigned>(r))));
        }
        double mean_of_b = 0;
        for (const RunFigure& run : b.runs) mean_of_b += run.mean / static_cast<double>(runs);
        if (mean_of_b < 10.3) continue;  // so few slow steps by chance
        const std::string which = fmt::format("{} runs of {} steps, seed {}", runs, n, seed);
        const Outcome forth = compare_figures(a, b, {}).outcome, back = compare_figures(b, a, {}).outcome;
        EXPECT_TRUE(forth != Outcome::lower && forth != Outcome::same) << which;
        EXPECT_TRUE(back != Outcome::higher && back != Outcome::same) << which;
      }
}

// Half of the steps 5% faster, half 5% slower: one run a side may not be called faster by its low percentile.
TEST(Verdict, ASingleRunWithTwoModesIsNotFaster) {
  int faster = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    NoisyRuns machine(seed);
    const TestedSide a{"A", {measured(machine.steps(100, 100, {0, 0.005, 0, 0}))}};
    const TestedSide b{"B", {measured(two_modes(95, 105, 0.5, 100, seed))}};
    faster += compare_figures(a, b, {}).outcome == Outcome::lower;
  }
  EXPECT_LE(faster, 4);
}

// Half of the steps take half as long again: the percentiles will never see it, however many runs there are.
TEST(Verdict, SlowStepsThatAreSureAreSlower) {
  TestedSide a{"A", {}}, b{"B", {}};
  NoisyRuns machine(5);
  for (unsigned r = 0; r < 4; ++r) {
    a.runs.push_back(measured(machine.steps(100, 100, {0.002, 0.005, 0, 0})));
    b.runs.push_back(measured(two_modes(100, 150, 0.5, 100, 70 + r)));
  }
  const TestResult result = compare_figures(a, b, {});
  EXPECT_EQ(result.outcome, Outcome::higher);
  EXPECT_EQ(result.statistic, Statistic::mean);
  EXPECT_GT(result.ratio, 1.15);
}

TEST(Verdict, ALossOfThroughputIsOneOfTheMeans) {
  TestedSide a{"A", {}}, b{"B", {}};
  for (unsigned r = 0; r < 3; ++r) {
    a.runs.push_back(measured(std::vector<double>(500, 10.0)));
    b.runs.push_back(measured(two_modes(9.6, 14.0, 0.2, 500, r + 1)));
    a.runs.back().scale = b.runs.back().scale = 2048e3;
  }
  const TestResult result = compare_figures(a, b, {});
  EXPECT_EQ(result.statistic, Statistic::mean);
  EXPECT_EQ(result.outcome, Outcome::lower);
  EXPECT_NEAR(result.ratio, 10 / 10.48, 0.01);
}

TEST(Verdict, MeansThatScatterDoNotHinderForEver) {
  NoisyRuns machine(21);
  std::mt19937 random(22);
  std::uniform_real_distribution<double> stall_share(0, 0.4);
  int found = 0, wrong = 0;
  constexpr int kTrials = that_many(200);
  for (int i = 0; i < kTrials; ++i) {
    TestedSide a{"A", {}}, b{"B", {}};
    for (int r = 0; r < 3; ++r) {
      a.runs.push_back(measured(machine.steps(100, 200, {0.002, 0.002, 0.3, stall_share(random)})));
      b.runs.push_back(measured(machine.steps(103, 200, {0.002, 0.002, 0.3, stall_share(random)})));
    }
    const Outcome outcome = compare_figures(a, b, {}).outcome;
    found += outcome == Outcome::higher ? 1 : 0;
    wrong += outcome == Outcome::lower || outcome == Outcome::same ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GE(found, kTrials / 3);
}

// Of 10 steps the 5th percentile is close to the shortest; of 200 it lies below by as much again.
TEST(Verdict, OtherNumbersOfStepsAreNoDifference) {
  NoisyRuns machine(31);
  for (const double resemblance : {0.0, 0.6}) {
    double sum = 0;
    int apart = 0;
    constexpr int kTrials = that_many(300);
    for (int i = 0; i < kTrials; ++i) {
      TestedSide a{"A", {}}, b{"B", {}};
      for (int r = 0; r < 3; ++r) {
        a.runs.push_back(measured(machine.steps(100, 10, {0, 0.05, resemblance, 0})));
        b.runs.push_back(measured(machine.steps(100, 200, {0, 0.05, resemblance, 0})));
      }
      const TestResult result = compare_figures(a, b, by_undisturbed_steps());
      sum += std::log(result.ratio);
      apart += result.outcome == Outcome::lower || result.outcome == Outcome::higher ? 1 : 0;
      EXPECT_NE(result.notes.front().find("runs of 10 to 200 steps"), std::string::npos) << result.notes.front();
    }
    EXPECT_NEAR(sum / kTrials, 0, 0.005) << resemblance;
    EXPECT_LE(apart, kTrials * 3 / 100) << resemblance;
  }
}

// A side alone has the figures that it has beside itself.
TEST(Verdict, ASideAlone) {
  NoisyRuns machine(43);
  RunFigure contended = measured(machine.steps(100, 20, {0, 0.05, 0, 0.1})), rate = measured(machine.steps(80, 9, {}));
  contended.waited_share = 0.2;
  rate.scale = 7;
  RunFigure exact = published(3, std::nullopt, std::nullopt);
  exact.exact = true, exact.timed = false;
  const RunFigure calm = measured(machine.steps(90, 33, {0, 0.02, 0.2, 0}));
  for (const Statistic statistic : {Statistic::mean, Statistic::p05, Statistic::median})
    for (const std::vector<RunFigure>& runs : {std::vector<RunFigure>{calm},
                                               {contended},
                                               {calm, contended, calm},
                                               {rate, rate},
                                               {exact},
                                               {published(5, 1, 9)}}) {
      TestOptions options;
      options.statistic = statistic;
      const TestResult beside = compare_figures({"A", runs}, {"A", runs}, options);
      const FigureAlone alone = figure_alone({"A", runs}, options);
      EXPECT_EQ(alone.value, beside.value_a);
      EXPECT_EQ(alone.runs, beside.runs_a);
      EXPECT_EQ(alone.statistic, beside.statistic);
      EXPECT_EQ(alone.by_samples, beside.by_samples);
    }
}

TEST(Verdict, CannotTellSaysHowManyRunsWould) {
  NoisyRuns machine(42);
  const Noise restless{0.01, 0.05, 0.3, 0};
  const TestResult unclear =
      test(measured(machine.steps(100, 30, restless)), measured(machine.steps(100, 30, restless)));
  ASSERT_EQ(unclear.outcome, Outcome::cannot_tell);
  ASSERT_TRUE(unclear.runs_to_settle.has_value());
  EXPECT_GE(*unclear.runs_to_settle, 3u);
  EXPECT_LE(*unclear.runs_to_settle, 100u);
  const RunFigure calm = measured(machine.steps(100, 100, {0, 0.001, 0, 0}));
  EXPECT_FALSE(test(calm, calm).runs_to_settle);
  // More runs do not help where others have the device, or the spread is not known.
  RunFigure shared = calm;
  shared.shared_device = true;
  EXPECT_FALSE(test(shared, shared).runs_to_settle);
  EXPECT_FALSE(test(published(100, std::nullopt, std::nullopt), calm).runs_to_settle);
}

TEST(Verdict, FiguresWithoutSamplesAreTestedByMeanAndDeviation) {
  const TestResult far = test(published(308.0, 17.85, 10), published(38.86, 0.03, 10));
  EXPECT_EQ(far.outcome, Outcome::lower);
  EXPECT_FALSE(far.by_samples);
  EXPECT_EQ(far.statistic, Statistic::mean);
  EXPECT_NEAR(far.ratio, 38.86 / 308.0, 1e-12);
  EXPECT_EQ(test(published(100, 20, 10), published(105, 20, 10)).outcome, Outcome::cannot_tell);
  // An unknown number of steps is taken for the fewest that have a deviation.
  EXPECT_EQ(test(published(100, 3, 1000), published(110, 3, 1000)).outcome, Outcome::higher);
  EXPECT_EQ(test(published(100, 3, std::nullopt), published(110, 3, std::nullopt)).outcome, Outcome::cannot_tell);
  EXPECT_EQ(test(published(100, 0.1, std::nullopt), published(50, 0.1, std::nullopt)).outcome, Outcome::lower);
}

TEST(Verdict, AMeanWithoutADeviationTellsNothing) {
  const TestResult result = test(published(283.7, std::nullopt, std::nullopt), published(78.0, 0.5, 10));
  EXPECT_EQ(result.outcome, Outcome::cannot_tell);
  EXPECT_FALSE(result.low);
  EXPECT_NEAR(result.ratio, 78.0 / 283.7, 1e-12);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_EQ(test(measured({5.0}), measured({9.0})).outcome, Outcome::cannot_tell);
}

TEST(Verdict, SamplesMeetMeansByTheirMeans) {
  NoisyRuns machine(5);
  const TestResult result = test(published(100, 1, 100), measured(machine.steps(100, 100, {0, 0.01, 0, 0.2})));
  EXPECT_EQ(result.statistic, Statistic::mean);
  EXPECT_GT(result.ratio, 1.05);
}

TEST(Verdict, ARateIsTheOtherWayRound) {
  NoisyRuns machine(6);
  RunFigure a = measured(machine.steps(100, 100, {0, 0.005, 0, 0})),
            b = measured(machine.steps(110, 100, {0, 0.005, 0, 0}));
  a.scale = 2048e3, b.scale = 2048e3;
  const TestResult result = test(a, b);
  EXPECT_EQ(result.outcome, Outcome::lower);
  EXPECT_NEAR(result.value_a, 20480, 300);
  EXPECT_NEAR(result.ratio, 1 / 1.1, 0.01);
  b.waited_share = 0.2;
  EXPECT_EQ(test(a, b).outcome, Outcome::cannot_tell);
  EXPECT_GT(*test(a, b).high, 1.2);
}

TEST(Verdict, WhatIsAccountedHasNoNoise) {
  RunFigure a, b;
  a.exact = b.exact = true;
  a.mean = 1000, b.mean = 1010;
  EXPECT_EQ(test(a, b).outcome, Outcome::same);
  b.mean = 1030;
  EXPECT_EQ(test(a, b).outcome, Outcome::higher);
  EXPECT_EQ(*test(a, b).low, *test(a, b).high);
  EXPECT_EQ(test(a, b, {0.05, 0.95, 0.005, Statistic::median}).outcome, Outcome::same);
}

TEST(Verdict, SwappedSidesGiveTheReciprocal) {
  NoisyRuns machine(8);
  const Noise noise{0.003, 0.02, 0.4, 0.1};
  const RunFigure a = measured(machine.steps(100, 77, noise)), b = measured(machine.steps(104, 31, noise));
  const TestResult forth = test(a, b), back = test(b, a);
  EXPECT_NEAR(forth.ratio * back.ratio, 1, 1e-12);
  EXPECT_NEAR(*forth.low * *back.high, 1, 1e-12);
  EXPECT_NEAR(*forth.high * *back.low, 1, 1e-12);
}

TEST(Verdict, Locations) {
  EXPECT_EQ(location({4, 1, 3, 2, 5}, Statistic::lower_quartile), 2);
  EXPECT_EQ(location({4, 1, 3, 2, 5}, Statistic::median), 3);
  EXPECT_EQ(location({4, 1, 3, 2}, Statistic::median), 2.5);
  EXPECT_EQ(location({4, 1, 3, 2, 10}, Statistic::mean), 4);
}

}  // namespace
}  // namespace assay::host::compare
