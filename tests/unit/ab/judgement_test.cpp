#include "ab/judgement.hpp"

#include <gtest/gtest.h>

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

TEST(Judgement, SaysWhyNothingCanBeCompared) {
  compare::Comparison comparison = comparison_of({{}});
  comparison.metrics[0].cases[0].entries[1].kind = Entry::Kind::missing;
  EXPECT_NE(judge(comparison, 5).problem.find("side B has no such case"), std::string::npos);
  comparison = comparison_of({{}});
  comparison.unmatched = {"B has size=xl"};
  EXPECT_EQ(judge(comparison, 5).problem, "the sides have other cases: B has size=xl");
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
