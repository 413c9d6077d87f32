#include "ab/judgement.hpp"

#include "ab/report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace assay::host::ab {
namespace {

using compare::Entry;
using compare::Outcome;

struct Case {
  Outcome outcome = Outcome::same;
  std::size_t runs_a = 5, runs_b = 5;
};

compare::Comparison comparison_of(const std::vector<Case>& cases) {
  compare::Comparison comparison;
  comparison.metrics.push_back({"step", Direction::lower_is_better, {}});
  for (const Case& c : cases) {
    compare::ComparedCase row;
    row.workload = "demo";
    Entry a, b;
    a.kind = Entry::Kind::baseline, a.runs = c.runs_a;
    b.kind = Entry::Kind::compared, b.runs = c.runs_b, b.outcome = c.outcome, b.worse = c.outcome == Outcome::higher;
    row.entries = {a, b};
    comparison.metrics[0].cases.push_back(row);
  }
  return comparison;
}

Verdict verdict_of(const std::vector<Case>& cases) { return judge(comparison_of(cases), 5).verdict; }

TEST(Judgement, OfSeveralCases) {
  EXPECT_EQ(verdict_of({{Outcome::same}, {Outcome::same}}), Verdict::same);
  EXPECT_EQ(verdict_of({{Outcome::same}, {Outcome::lower}}), Verdict::faster);
  EXPECT_EQ(verdict_of({{Outcome::lower}, {Outcome::cannot_tell}}), Verdict::cannot_tell);
  EXPECT_EQ(verdict_of({{Outcome::lower}, {Outcome::cannot_tell}, {Outcome::higher}}), Verdict::slower);
  const Judgement judgement = judge(comparison_of({{Outcome::same}, {Outcome::cannot_tell}, {Outcome::higher}}), 5);
  EXPECT_EQ(judgement.cases, 3u);
  EXPECT_EQ(judgement.open, 1u);
  EXPECT_EQ(judgement.worse, 1u);
}

TEST(Judgement, OfWhatHasNoBetterDirection) {
  compare::Comparison comparison = comparison_of({{Outcome::same}, {Outcome::lower}});
  comparison.metrics[0].better = Direction::neither;
  EXPECT_EQ(judge(comparison, 5).verdict, Verdict::differs);
  EXPECT_EQ(verdict_of({{Outcome::differs}}), Verdict::differs);
}

// Of runs that were left out, as others used the machine meanwhile, none is counted.
TEST(Judgement, NeedsEnoughRunsOnBothSides) {
  EXPECT_EQ(verdict_of({{Outcome::higher, 5, 4}}), Verdict::cannot_tell);
  EXPECT_EQ(verdict_of({{Outcome::higher, 1, 5}}), Verdict::cannot_tell);
  EXPECT_EQ(verdict_of({{Outcome::higher, 5, 5}}), Verdict::slower);
}

// Student's t gives two runs a side an interval from nothing to everything, which is of no use.
TEST(Judgement, TwoRunsASideHaveNoInterval) {
  compare::Comparison comparison = comparison_of({{Outcome::same, 2, 3}, {Outcome::same, 3, 3}, {Outcome::same, 2, 2}});
  for (compare::ComparedCase& c : comparison.metrics[0].cases)
    c.entries[1].ratio = 1.5, c.entries[1].low = 0.1, c.entries[1].high = 9;
  Entry& exact = comparison.metrics[0].cases[2].entries[1];
  exact.low = exact.high = exact.ratio;
  hold_to_fewest_runs(comparison, 5);
  const std::vector<compare::ComparedCase>& cases = comparison.metrics[0].cases;
  EXPECT_FALSE(cases[0].entries[1].low || cases[0].entries[1].high);
  EXPECT_TRUE(cases[1].entries[1].low && cases[1].entries[1].high);
  EXPECT_TRUE(cases[2].entries[1].low) << "a count that is exact needs no runs";
  comparison.metrics[0].cases.resize(1);
  EXPECT_EQ(pair_line({2, false, 20, comparison}, {}),
            "Round 2: step ratio 1.5000, no interval: fewer than 3 runs a side do not show how much runs differ "
            "(interim, not tested); at most 28 rounds more, 4:40");
}

TEST(Judgement, ARoundSaysHowManyCasesAreDecidedAndWhatIsLeft) {
  compare::Comparison comparison = comparison_of({{Outcome::same}, {Outcome::cannot_tell}, {Outcome::higher}});
  SessionPlan plan;
  plan.looks.min_runs = 5;
  EXPECT_EQ(pair_line({10, true, 10, comparison}, plan),
            "Round 10: 2 of 3 cases decided, 1 worse; at most 20 rounds more, 0:20");
  plan.max_time_s = 12.5;
  EXPECT_EQ(pair_line({10, true, 10, comparison}, plan),
            "Round 10: 2 of 3 cases decided, 1 worse; at most 3 rounds more, 0:03")
      << "the round that is under way when the time is over is finished";
  EXPECT_EQ(pair_line({10, true, 13, comparison}, plan), "Round 10: 2 of 3 cases decided, 1 worse");
  EXPECT_EQ(pair_line({30, true, 10, comparison}, plan), "Round 30: 2 of 3 cases decided, 1 worse");
}

TEST(Judgement, AnOpenEndIsNoFigure) {
  compare::Comparison comparison = comparison_of({{Outcome::cannot_tell}});
  Entry& b = comparison.metrics[0].cases[0].entries[1];
  b.ratio = 1.2, b.high = 1.341;
  EXPECT_EQ(pair_line({5, true, 700, comparison}, {}),
            "Round 5: step ratio 1.2000 [?, 1.3410], open where others used the machine");
  SessionResult result;
  result.comparison = comparison;
  SessionNames names;
  names.folders = {"a", "b"}, names.metric = "step";
  const auto json = nlohmann::json::parse(result_json(result, names, 0));
  EXPECT_TRUE(json["cases"][0]["low"].is_null());
  EXPECT_EQ(json["cases"][0]["high"], 1.341);
}

TEST(Judgement, TheCompareCommandGoesByTheSameStatistic) {
  SessionNames names;
  names.folders = {"a", "b"}, names.metric = "step", names.statistic = "median";
  names.test.statistic = compare::Statistic::median;
  EXPECT_NE(compare_command(names, 0.99).find(" --statistic median "), std::string::npos);
  names.test.statistic = compare::TestOptions().statistic;
  EXPECT_EQ(compare_command(names, 0.99).find("--statistic"), std::string::npos);
}

TEST(Judgement, SaysWhyNothingCanBeCompared) {
  compare::Comparison comparison = comparison_of({{}});
  comparison.metrics[0].cases[0].entries[1].kind = Entry::Kind::missing;
  EXPECT_NE(judge(comparison, 5).problem.find("side B has no such case"), std::string::npos);
  comparison = comparison_of({{}});
  comparison.unmatched = {"B has size=xl"};
  EXPECT_TRUE(
      judge(comparison, 5).problem.starts_with("A and B do not have the same cases: B has size=xl. Every case"));
  EXPECT_TRUE(judge(comparison, 5).is_of_both);
  EXPECT_EQ(judge(comparison_of({}), 5).problem, "nothing could be compared");
}

TEST(Judgement, ACaseThatIsOkOnNeitherSideCountsForNothing) {
  compare::Comparison comparison = comparison_of({{}, {}});
  Entry& allowed = comparison.metrics[0].cases[0].entries[1];
  allowed.kind = Entry::Kind::refused, allowed.reason = "A: oom; B: oom";
  EXPECT_EQ(judge(comparison, 5).problem, "");
  EXPECT_EQ(judge(comparison, 5).cases, 1u);
  EXPECT_EQ(judge(comparison, 5).verdict, Verdict::same);
  allowed.failed = true;
  EXPECT_NE(judge(comparison, 5).problem.find("A: oom; B: oom"), std::string::npos);
}

}  // namespace
}  // namespace assay::host::ab
