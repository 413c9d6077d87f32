// One run whose cases are the sides.
#include "compare/split.hpp"

#include "compare/comparison.hpp"
#include "noisy_records.hpp"

#include <gtest/gtest.h>

namespace assay::host::compare {
namespace {

class Split : public ::testing::Test {
 protected:
  // A case by its axes, of which the parameters are a copy.
  Json timed(const Json& axes, double time_ms) {
    Json record = record_of(axes, machine_.steps(time_ms, 100, {0.001, 0.005, 0.2, 0}), axes);
    record["index"] = next_index_++;
    return record;
  }
  static Side side(std::vector<Json> records) { return side_of(0, {run_of(std::move(records))}); }
  static std::vector<std::string> labels(const SplitSide& split) {
    std::vector<std::string> result;
    for (const Side& side : split.sides) result.push_back(side.label);
    return result;
  }
  static std::string complaint(const Side& side, const SplitRules& rules) {
    try {
      split_side(side, rules);
    } catch (const SplitError& e) {
      return e.what();
    }
    return "";
  }
  static Comparison compared(const Side& side, const SplitRules& rules) {
    SplitSide split = split_side(side, rules);
    ComparisonOptions options = one_state();
    options.rules.across = split.across;
    return compare_sides(std::move(split.sides), options);
  }
  Side executions() {
    return side({timed({{"size", "small"}, {"execution", "eager"}}, 100),
                 timed({{"size", "small"}, {"execution", "graph"}}, 50),
                 timed({{"size", "large"}, {"execution", "eager"}}, 300),
                 timed({{"size", "large"}, {"execution", "graph"}}, 300)});
  }
  NoisyRuns machine_{5};
  int next_index_ = 0;
};

TEST_F(Split, EachCaseIsSetAgainstTheOneWithTheSameOtherInputs) {
  const Comparison comparison = compared(executions(), {{"execution"}, {}});
  ASSERT_EQ(comparison.sides.size(), 2u);
  EXPECT_EQ(comparison.axes, std::vector<std::string>{"size"});
  const auto& cases = comparison.metrics[0].cases;
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_NEAR(*cases[0].entries[1].ratio, 0.5, 0.01);
  EXPECT_EQ(cases[0].entries[1].verdict, "faster");
  EXPECT_EQ(cases[1].entries[1].verdict, "same");
  EXPECT_TRUE(comparison.unmatched.empty());
}

TEST_F(Split, TheBaselineIsTheFirstValueOrTheOneAskedFor) {
  EXPECT_EQ(labels(split_side(executions(), {{"execution"}, {}})), (std::vector<std::string>{"eager", "graph"}));
  EXPECT_EQ(labels(split_side(executions(), {{"execution"}, "graph"})), (std::vector<std::string>{"graph", "eager"}));
  // A case that was run again stands last in the file.
  Side again = executions();
  std::rotate(again.runs[0].records.begin(), again.runs[0].records.begin() + 1, again.runs[0].records.end());
  EXPECT_EQ(labels(split_side(again, {{"execution"}, {}})), (std::vector<std::string>{"eager", "graph"}));
}

TEST_F(Split, SeveralKeysMakeASideOfEachCombination) {
  const SplitSide split = split_side(executions(), {{"execution", "size"}, "graph,large"});
  EXPECT_EQ(labels(split), (std::vector<std::string>{"graph,large", "eager,small", "graph,small", "eager,large"}));
  const Comparison comparison = compared(executions(), {{"execution", "size"}, {}});
  ASSERT_EQ(comparison.metrics[0].cases.size(), 1u);
  for (std::size_t s = 1; s < 4; ++s)
    EXPECT_EQ(comparison.metrics[0].cases[0].entries[s].kind, Entry::Kind::compared) << s;
}

TEST_F(Split, NumbersAreNamedWithTheirKeyAndKnownInAnySpelling) {
  std::vector<Json> records;
  for (const int warmup : {0, 5}) records.push_back(timed({{"measure.warmup", warmup}}, 100));
  const Side run = side(records);
  EXPECT_EQ(labels(split_side(run, {{"measure.warmup"}, "5.0"})), (std::vector<std::string>{"warmup=5", "warmup=0"}));
}

TEST_F(Split, RanksMayDifferWhenTheyAreWhatIsAskedAbout) {
  std::vector<Json> records;
  for (const int ranks : {1, 2}) {
    records.push_back(timed({{"run.ranks", ranks}}, 100.0 / ranks));
    records.back()["ranks"] = ranks;
  }
  const Comparison comparison = compared(side(records), {{"run.ranks"}, {}});
  EXPECT_EQ(comparison.metrics[0].cases[0].entries[1].verdict, "faster");
}

// On two processors one rank has two threads, and two ranks have one each.
TEST_F(Split, ThreadsThatFollowFromTheRanksMoveWithThem) {
  Json one = timed({{"size", "small"}, {"run.ranks", 1}}, 100), two = timed({{"size", "small"}, {"run.ranks", 2}}, 50);
  one["ranks"] = 1, two["ranks"] = 2;
  one["threads"] = {{"count", 2}, {"count_from", "2 usable processors"}};
  two["threads"] = {{"count", 1}, {"count_from", "2 usable processors, shared by 2 ranks"}};
  const SplitSide split = split_side(side({one, two}), {{"run.ranks"}, {}});
  EXPECT_EQ(split.notes.back(), "run.threads changes with run.ranks");
  EXPECT_EQ(compared(side({one, two}), {{"run.ranks"}, {}}).metrics[0].cases[0].entries[1].verdict, "faster");
}

TEST_F(Split, RunsWithOtherThreadsAreSplitByThem) {
  Json one = timed({{"size", "small"}}, 100), two = timed({{"size", "small"}}, 50);
  one["threads"] = {{"count", 1}, {"count_from", "OMP_NUM_THREADS=1"}};
  two["threads"] = {{"count", 2}, {"count_from", "2 usable processors"}};
  const Side both = side_of(0, {run_of({one}), run_of({two})});
  EXPECT_EQ(labels(split_side(both, {{"run.threads"}, {}})), (std::vector<std::string>{"threads=1", "threads=2"}));
  EXPECT_EQ(compared(both, {{"run.threads"}, {}}).metrics[0].cases[0].entries[1].verdict, "faster");
}

TEST_F(Split, WhatMovesWithTheKeyIsNoDifference) {
  const Side run = side({timed({{"precision", "fp32"}, {"attention", "naive"}}, 100),
                         timed({{"precision", "tf32"}, {"attention", "naive"}}, 80),
                         timed({{"precision", "bf16"}, {"attention", "flash"}}, 50)});
  const SplitSide split = split_side(run, {{"precision"}, {}});
  EXPECT_EQ(split.across, (std::set<std::string>{"attention", "precision"}));
  EXPECT_EQ(split.notes.back(), "attention moves with precision: naive (fp32), naive (tf32), flash (bf16)");
  EXPECT_EQ(compared(run, {{"precision"}, {}}).metrics[0].cases[0].entries[2].verdict, "faster");
}

TEST_F(Split, TheDimensionsOfASizeMoveWithIt) {
  std::vector<Json> records;
  for (const char* size : {"small", "large"}) {
    records.push_back(timed({{"size", size}}, 100));
    records.back()["params"]["d_model"] = size == std::string("small") ? 768 : 1280;
  }
  const SplitSide split = split_side(side(records), {{"size"}, {}});
  EXPECT_EQ(split.notes.back(), "d_model changes with size");
  const Entry large = compared(side(records), {{"size"}, {}}).metrics[0].cases[0].entries[1];
  EXPECT_EQ(large.kind, Entry::Kind::compared) << large.reason;
}

TEST_F(Split, AnAxisThatOnlySomeValuesUse) {
  const Side run = side({timed({{"strategy", "naive"}, {"bucket_mb", 1}}, 100),
                         timed({{"strategy", "bucketed"}, {"bucket_mb", 1}}, 90),
                         timed({{"strategy", "bucketed"}, {"bucket_mb", 10}}, 80)});
  // By the strategy alone one bucket has a partner; which other cases it could stand for, only the user knows.
  const Comparison one = compared(run, {{"strategy"}, {}});
  ASSERT_EQ(one.metrics[0].cases.size(), 1u);
  EXPECT_EQ(one.metrics[0].cases[0].entries[1].kind, Entry::Kind::compared);
  EXPECT_EQ(one.unmatched, std::vector<std::string>{"only in bucketed: decoder strategy=bucketed bucket_mb=10"});
  EXPECT_NE(split_side(run, {{"strategy"}, {}}).notes.back().find("--by strategy,bucket_mb sets each of them"),
            std::string::npos);
  const Comparison all = compared(run, {{"strategy", "bucket_mb"}, {}});
  ASSERT_EQ(all.sides.size(), 3u);
  for (std::size_t s = 1; s < 3; ++s) EXPECT_EQ(all.metrics[0].cases[0].entries[s].verdict, "faster");
}

TEST_F(Split, SeveralRunsOfOneThingAreSplitTogether) {
  Side both = executions();
  both.runs.push_back(executions().runs[0]);
  const SplitSide split = split_side(both, {{"execution"}, {}});
  ASSERT_EQ(split.sides.size(), 2u);
  for (const Side& side : split.sides) {
    ASSERT_EQ(side.runs.size(), 2u);
    EXPECT_EQ(side.runs[1].records.size(), 2u);
  }
}

TEST_F(Split, CasesThatDoNotSayTheKeyAreLeftOutAndCounted) {
  Side run = executions();
  run.runs[0].records.push_back(typed(timed({{"size", "small"}}, 100)));
  const SplitSide split = split_side(run, {{"execution"}, {}});
  EXPECT_EQ(split.sides[0].runs[0].records.size() + split.sides[1].runs[0].records.size(), 4u);
  EXPECT_EQ(split.notes.back(), "1 case is left out, which does not say execution");
}

TEST_F(Split, MistakesSayWhatThereIs) {
  const Side run = executions();
  EXPECT_EQ(
      complaint(run, {{"executon"}, {}}),
      "--by executon: no case has an input of this name; what varies: size, execution; did you mean 'execution'?");
  EXPECT_EQ(complaint(run, {{"measure.warmup"}, {}}),
            "--by measure.warmup: all cases have measure.warmup = 5; what varies: size, execution");
  EXPECT_EQ(complaint(run, {{"execution"}, "egaer"}),
            "--baseline is 'egaer'; expected a value of execution: eager, graph; did you mean 'eager'?");
  EXPECT_EQ(complaint(run, {{"execution", "size"}, "eager"}),
            "--baseline is 'eager'; expected the values of execution,size: eager,small; graph,small; eager,large; "
            "graph,large");
  EXPECT_EQ(complaint(side({timed({}, 1)}), {{"size"}, {}}),
            "--by size: no case has an input of this name; what varies: nothing");
}

}  // namespace
}  // namespace assay::host::compare
