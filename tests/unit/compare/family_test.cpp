#include "compare/family.hpp"

#include "noisy_records.hpp"

#include <gtest/gtest.h>

#include "support/trials.hpp"

namespace assay::host::compare {
namespace {

using assay::test::that_many;

// So many cases that all take the same time, in so many runs of each of two sides; `slower` of the second side's cases
// take 6% longer.
Comparison many_cases(NoisyRuns& machine, int cases, int runs, int slower = 0) {
  std::vector<Side> sides;
  for (std::size_t s = 0; s < 2; ++s) {
    std::vector<ComparedRun> of_side;
    for (int r = 0; r < runs; ++r) {
      std::vector<Json> records;
      for (int c = 0; c < cases; ++c) {
        const double time_ms = s == 1 && c < slower ? 106 : 100;
        records.push_back(record_of({{"size", c}}, machine.steps(time_ms, 30, {0.008, 0.002, 0, 0}), {{"size", c}}));
      }
      of_side.push_back(run_of(records));
    }
    sides.push_back(side_of(s, std::move(of_side)));
  }
  return compare_sides(std::move(sides), one_state());
}

const Entry& entry_of(const Comparison& comparison, std::size_t c) { return comparison.metrics[0].cases[c].entries[1]; }

TEST(Family, HolmsMethod) {
  EXPECT_TRUE(adjusted_chances({}).empty());
  EXPECT_EQ(adjusted_chances({0.03}), std::vector<double>{0.03});
  const std::vector<double> adjusted = adjusted_chances({0.04, 0.01, 0.03, 0.5});
  EXPECT_DOUBLE_EQ(adjusted[1], 0.04);
  EXPECT_DOUBLE_EQ(adjusted[2], 0.09);
  EXPECT_DOUBLE_EQ(adjusted[0], 0.09);  // not below that of a smaller one
  EXPECT_DOUBLE_EQ(adjusted[3], 0.5);
}

TEST(Family, TwentyCasesRaiseNoMoreAlarmsThanOne) {
  NoisyRuns machine(51);
  int alarms = 0, alarms_by_itself = 0;
  constexpr int kTrials = that_many(100);
  for (int i = 0; i < kTrials; ++i) {
    const Comparison comparison = many_cases(machine, 20, 3);
    EXPECT_EQ(comparison.family, 20u);
    alarms += reasons_to_fail(comparison, {true, false, false}).empty() ? 0 : 1;
    bool any = false;
    for (std::size_t c = 0; c < 20; ++c) {
      const Entry& entry = entry_of(comparison, c);
      any = any || (*entry.chance < 0.05 && *entry.ratio > 1);
    }
    alarms_by_itself += any ? 1 : 0;
  }
  EXPECT_LE(alarms, kTrials / 20);
  EXPECT_GE(alarms_by_itself, kTrials / 10);  // else this shows nothing
}

TEST(Family, ACaseBesideOthersNeedsMoreAndSaysSo) {
  NoisyRuns machine(52);
  const Comparison many = many_cases(machine, 20, 5, 2);
  EXPECT_EQ(entry_of(many, 0).verdict, "slower");
  EXPECT_EQ(entry_of(many, 1).verdict, "slower");
  EXPECT_GE(*entry_of(many, 0).adjusted_chance, *entry_of(many, 0).chance * 19);
  bool any_withdrawn = false;
  for (int i = 0; i < 40 && !any_withdrawn; ++i) {
    const Comparison comparison = many_cases(machine, 20, 3);
    for (std::size_t c = 0; c < 20; ++c)
      for (const std::string& note : entry_of(comparison, c).notes)
        if (note.find("of 20 verdicts at once, such a ratio may be chance") != std::string::npos) {
          any_withdrawn = true;
          EXPECT_EQ(entry_of(comparison, c).verdict, "cannot tell");
          EXPECT_FALSE(entry_of(comparison, c).worse);
          EXPECT_TRUE(entry_of(comparison, c).runs_to_settle);
        }
  }
  EXPECT_TRUE(any_withdrawn);
}

TEST(Family, ASingleCaseIsAsItWas) {
  NoisyRuns machine(53);
  for (int i = 0; i < 50; ++i) {
    const Comparison comparison = many_cases(machine, 1, 3, 1);
    const Entry& entry = entry_of(comparison, 0);
    EXPECT_EQ(*entry.chance, *entry.adjusted_chance);
    EXPECT_EQ(entry.verdict == "slower", *entry.low > 1);
  }
}

}  // namespace
}  // namespace assay::host::compare
