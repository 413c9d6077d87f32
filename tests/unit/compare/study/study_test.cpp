// What verdicts are worth, with fixed seeds: the rows of `scripts/study_compare worlds` that are the hardest.
#include "trials.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "support/trials.hpp"

namespace assay::host::compare::study {
namespace {

using assay::test::that_many;

const Design kDesigns[] = {{1, 5}, {1, 50}, {2, 50}, {3, 20}, {3, 50}, {10, 50}};

// Of few trials, as a sanitized build makes them, one may be false.
int at_most(int percent, int trials) { return std::max(trials < 100 / percent ? 1 : 0, trials * percent / 100); }

std::map<Ending, int> endings_of(const World& world, const Design& design, double change, int trials) {
  std::map<Ending, int> counts;
  for (int seed = 0; seed < trials; ++seed)
    ++counts[play_verdict(world, design, change, static_cast<std::uint64_t>(seed), {})];
  return counts;
}

TEST(Study, AVerdictOfOneThingIsFalseInFivePercentAtMost) {
  constexpr int kTrials = that_many(100);
  for (const World& world : worlds()) {
    for (const Design& design : kDesigns) {
      std::map<Ending, int> counts = endings_of(world, design, 0, kTrials);
      EXPECT_LE(kTrials - counts[Ending::same] - counts[Ending::cannot_tell], at_most(5, kTrials))
          << world.name << " " << design.name();
    }
  }
}

TEST(Study, AVerdictOfTwoThingsIsFalseInFivePercentAtMost) {
  constexpr int kTrials = that_many(60);
  constexpr double kChange = 0.03;  // beyond the threshold: `same` is false, too
  for (const World& world : worlds()) {
    for (const Design& design : kDesigns) {
      std::map<Ending, int> counts = endings_of(world, design, kChange, kTrials);
      EXPECT_LE(counts[Ending::wrong] + counts[Ending::same], at_most(5, kTrials))
          << world.name << " " << design.name();
    }
  }
}

// Else it would be best to be silent.
TEST(Study, DifferencesAreFoundAndSamenessToo) {
  constexpr int kTrials = that_many(60);
  for (const char* name : {"iid", "ar-0.8"})
    EXPECT_GE(endings_of(world_of(name), {10, 50}, 0.03, kTrials)[Ending::right], kTrials * 9 / 10) << name;
  // Where slow steps come by chance, the side that is slower may have fewer of them.
  for (const char* name : {"tail-4", "tail-10"})
    EXPECT_GE(endings_of(world_of(name), {10, 50}, 0.03, kTrials)[Ending::right], kTrials / 2) << name;
  EXPECT_GE(endings_of(world_of("iid"), {3, 50}, 0.03, kTrials)[Ending::right], kTrials * 9 / 10);
  EXPECT_GE(endings_of(world_of("iid"), {10, 50}, 0, kTrials)[Ending::same], kTrials * 9 / 10);
}

TEST(Study, OfAHundredCasesThatDoNotDifferSeldomAnyIsClaimedTo) {
  constexpr int kTrials = that_many(20);
  for (const char* name : {"ar-0.95-wide", "modes-within", "modes-between", "drift", "bad-run"})
    for (const Design& design : {Design{1, 50}, Design{3, 50}})
      for (const StateOf state : {StateOf::each_case, StateOf::run}) {
        const World& world = world_of(name);
        if (state == StateOf::run && !world.runs_differ()) continue;
        int with_claims = 0;
        for (int seed = 0; seed < kTrials; ++seed)
          with_claims += play_family(world, design, 100, state, static_cast<std::uint64_t>(seed), {}) > 0;
        EXPECT_LE(with_claims, at_most(5, kTrials))
            << name << " " << design.name() << (state == StateOf::run ? ", of one run" : ", each its own");
      }
}

TEST(Study, ASessionOfOneThingIsFalseInOnePercentAtMost) {
  constexpr int kTrials = that_many(60);
  TestOptions options;
  options.threshold = 0.005, options.run_to_run = 0.001;
  for (const char* name : {"ar-0.95-wide", "modes-within", "modes-between", "drift-quiet", "bad-run"}) {
    int claims = 0;
    for (int seed = 0; seed < kTrials; ++seed) {
      const Ending ending = play_session(world_of(name), 50, 0, static_cast<std::uint64_t>(seed), options).ending;
      claims += ending != Ending::same && ending != Ending::cannot_tell;
    }
    EXPECT_LE(claims, at_most(1, kTrials)) << name;
  }
}

// B is slower in the mean: its slow steps outweigh that the others are shorter, or as long.
TEST(Study, SlowStepsAreNeverFasterNorTheSame) {
  constexpr int kTrials = that_many(60);
  const auto hold = [](const TailRow& row, const Design& design) {
    int false_ones = 0;
    for (int seed = 0; seed < kTrials; ++seed) {
      const Outcome outcome = play_tail(row, design, static_cast<std::uint64_t>(seed), {});
      false_ones += outcome == Outcome::lower || outcome == Outcome::same;
    }
    EXPECT_EQ(false_ones, 0) << row.name << " " << design.name();
  };
  for (const Design& design : {Design{2, 50}, Design{3, 20}, Design{3, 50}}) hold(tail_rows[0], design);
  for (const Design& design : {Design{1, 50}, Design{3, 50}, Design{5, 50}}) hold(tail_rows[1], design);
}

}  // namespace
}  // namespace assay::host::compare::study
