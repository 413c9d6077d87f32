#include "compare/comparison.hpp"
#include "compare/advice.hpp"

#include "noisy_records.hpp"

#include <gtest/gtest.h>

namespace assay::host::compare {
namespace {

class SidesCompared : public ::testing::Test {
 protected:
  std::vector<double> steps(double time_ms) { return machine_.steps(time_ms, 100, {0.001, 0.005, 0.2, 0}); }
  Json sized(const std::string& size, double time_ms) {
    return record_of({{"size", size}}, steps(time_ms), {{"size", size}});
  }
  static std::vector<Side> two(std::vector<Json> a, std::vector<Json> b) {
    return {side_of(0, {run_of(std::move(a))}), side_of(1, {run_of(std::move(b))})};
  }
  NoisyRuns machine_{11};
};

TEST_F(SidesCompared, VerdictsByCase) {
  const Comparison comparison = compare_sides(
      two({sized("small", 100), sized("large", 200)}, {sized("large", 220), sized("small", 100)}), one_state());
  ASSERT_EQ(comparison.axes, std::vector<std::string>{"size"});
  ASSERT_EQ(comparison.metrics.size(), 1u);
  const auto& cases = comparison.metrics[0].cases;
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[0].axis_values, std::vector<std::string>{"small"});
  EXPECT_EQ(cases[0].entries[1].verdict, "same");
  EXPECT_EQ(cases[1].entries[1].verdict, "slower");
  EXPECT_NEAR(*cases[1].entries[1].ratio, 1.1, 0.01);
  EXPECT_TRUE(cases[1].entries[1].worse);
  EXPECT_EQ(case_name(comparison, cases[1]), "size=large");
}

TEST_F(SidesCompared, SeveralSidesAgainstTheFirst) {
  std::vector<Side> sides = two({sized("small", 100)}, {sized("small", 50)});
  sides.push_back(side_of(2, {run_of({sized("small", 200)})}));
  const Comparison comparison = compare_sides(std::move(sides), one_state());
  const auto& entries = comparison.metrics[0].cases[0].entries;
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].kind, Entry::Kind::baseline);
  EXPECT_EQ(entries[1].verdict, "faster");
  EXPECT_EQ(entries[2].verdict, "slower");
}

TEST_F(SidesCompared, CasesThatAreNotOkAreRefusedWithTheirReason) {
  Json oom = sized("small", 1), wrong = sized("large", 1);
  oom["status"] = "oom", oom["reason"] = "wanted 31 GiB";
  wrong["status"] = "wrong_result", wrong["reason"] = "loss is 3, expected 9";
  const Comparison comparison = compare_sides(two({sized("small", 100), sized("large", 1)}, {oom, wrong}), one_state());
  const auto& cases = comparison.metrics[0].cases;
  EXPECT_EQ(cases[0].entries[1].kind, Entry::Kind::refused);
  EXPECT_EQ(cases[0].entries[1].reason, "B: oom: wanted 31 GiB");
  EXPECT_EQ(cases[1].entries[1].reason, "B: verification failed: loss is 3, expected 9");
  EXPECT_TRUE(cases[0].entries[1].failed);
  EXPECT_EQ(reasons_to_fail(comparison, {true, false, false}).size(), 2u);
  EXPECT_TRUE(reasons_to_fail(comparison, {}).empty());
}

TEST_F(SidesCompared, ABaselineThatIsNotOkFailsNothing) {
  Json oom = sized("small", 1);
  oom["status"] = "oom";
  const Comparison comparison =
      compare_sides(two({oom, sized("large", 100)}, {sized("small", 1), sized("large", 100)}), one_state());
  EXPECT_EQ(comparison.metrics[0].cases[0].entries[1].reason, "A: oom");
  EXPECT_TRUE(reasons_to_fail(comparison, {true, false, false}).empty());
}

TEST_F(SidesCompared, OtherUnitsAreRefused) {
  Json samples = sized("small", 100);
  samples["work"]["item_unit"] = "samples";
  ComparisonOptions options = one_state();
  options.metrics = {"items_per_s"};
  const Comparison comparison = compare_sides(two({sized("small", 100)}, {samples}), options);
  EXPECT_EQ(comparison.metrics[0].cases[0].entries[1].reason, "other unit: tokens/s / samples/s");
}

TEST_F(SidesCompared, UnmatchedCasesAndUntoldInputs) {
  const Comparison comparison = compare_sides(
      two({sized("small", 100), sized("large", 100)}, {sized("small", 100), sized("xl", 100)}), one_state());
  EXPECT_EQ(comparison.unmatched,
            (std::vector<std::string>{"only in A: decoder size=large", "only in B: decoder size=xl"}));
  EXPECT_TRUE(comparison.unknown.empty());
  EXPECT_EQ(reasons_to_fail(comparison, {false, false, true}).size(), 2u);
}

TEST_F(SidesCompared, SeveralMetrics) {
  Json more = sized("small", 100);
  more["memory"]["peak_total_mib"] = 1000.0;
  ComparisonOptions options = one_state();
  options.metrics = {"memory", "tokens_per_s"};
  const Comparison comparison = compare_sides(two({sized("small", 100)}, {more}), options);
  ASSERT_EQ(comparison.metrics.size(), 2u);
  EXPECT_EQ(comparison.metrics[0].cases[0].entries[1].verdict, "more");
  EXPECT_EQ(comparison.metrics[1].cases[0].entries[1].verdict, "same");
  EXPECT_EQ(comparison.metrics[1].better, Direction::higher_is_better);
}

TEST_F(SidesCompared, AMetricThatNoCaseHasIsNamedWithThoseThereAre) {
  ComparisonOptions options = one_state();
  options.metrics = {"stp"};
  try {
    compare_sides(two({sized("small", 100)}, {sized("small", 100)}), options);
    FAIL() << "no error";
  } catch (const NoMetricError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("'stp'; did you mean 'step'? There are step, "), std::string::npos) << text;
    EXPECT_NE(text.find("did you mean 'step'?"), std::string::npos) << text;
  }
}

TEST_F(SidesCompared, CostIsForAllGpusOfACase) {
  Json gpus = sized("small", 100);
  gpus["device"]["kind"] = "cuda";
  gpus["ranks"] = 4;
  gpus["rates"]["items_per_s"] = 80000.0;
  Json cpu = sized("small", 100);
  cpu["ranks"] = 2;  // on one machine
  cpu["by_rank"] = Json::array({{{"rank", 0}, {"host", "n1"}}, {{"rank", 1}, {"host", "n1"}}});
  cpu["rates"]["items_per_s"] = 1000.0;
  ComparisonOptions options = one_state();
  options.rules.any_ranks = true;
  options.dollars_per_gpu_hour = {0.5, 4.0};
  const Comparison comparison = compare_sides(two({cpu}, {gpus}), options);
  const auto& entries = comparison.metrics[0].cases[0].entries;
  EXPECT_NEAR(*entries[0].items_per_dollar, 1000.0 * 3600 / 0.5, 1e-6);
  EXPECT_NEAR(*entries[1].items_per_dollar, 80000.0 * 3600 / (4 * 4.0), 1e-6);
  EXPECT_EQ(comparison.item_unit, "tokens");
}

// Events that time phases are a part of steps on one side alone.
TEST_F(SidesCompared, PhasesOfStepsOfTheirOwnAreNoted) {
  Json a = sized("small", 100), b = sized("small", 110);
  const auto notes = [&] { return compare_sides(two({a}, {b}), one_state()).metrics[0].cases[0].entries[1].notes; };
  b["phase_pass"] = {{"steps", 10}, {"step_mean_ms", 112.0}};
  EXPECT_EQ(notes(), (std::vector<std::string>{"phases come from separate steps in B, and from the measured ones in "
                                               "A"}));
  a["phase_pass"] = b["phase_pass"];
  EXPECT_EQ(notes(), std::vector<std::string>{});
}

TEST_F(SidesCompared, ClocksAndThrottlingAreNoted) {
  Json a = sized("small", 100), b = sized("small", 110);
  for (Json* record : {&a, &b}) (*record)["device"]["kind"] = "cuda";
  a["telemetry"] = {{"sm_clock_mhz", {{"mean", 1980.0}, {"min", 1980.0}, {"max", 1980.0}}}};
  b["telemetry"] = {{"sm_clock_mhz", {{"mean", 1722.0}, {"min", 1605.0}, {"max", 1980.0}}}};
  a["validity"] = {{"verdict", "power_limited"}, {"text", "at the power cap of 700 W"}};  // a valid figure
  b["validity"] = {{"verdict", "throttled"}, {"text", "thermal held the clocks down in 40% of the time"}};
  const Comparison comparison = compare_sides(two({a}, {b}), one_state());
  const Entry& entry = comparison.metrics[0].cases[0].entries[1];
  EXPECT_EQ(entry.verdict, "slower");
  EXPECT_EQ(entry.notes, (std::vector<std::string>{"B was throttled: thermal held the clocks down in 40% of the time",
                                                   "mean clock 1980 MHz in A, 1722 MHz in B"}));
}

TEST_F(SidesCompared, AVerificationInPartIsNoted) {
  Json a = sized("small", 100), b = sized("small", 110);
  b["verify"] = {{"status", "partial"}, {"text", "loss alone"}};
  const Comparison comparison = compare_sides(two({a}, {b}), one_state());
  EXPECT_EQ(comparison.metrics[0].cases[0].entries[1].notes,
            (std::vector<std::string>{"B was verified in part; the record's verify.text names the part"}));
}

// Warm-up of 2 steps: behind the first one four settle where steps are short, and one where they are long.
TEST_F(SidesCompared, ALossAfterOtherNumbersOfStepsIsNotJudged) {
  const auto trained = [&](int warmup, int settling, double loss) {
    Json r = sized("small", 100);
    r["settings"]["measure.warmup"] = warmup;
    r["sampling"] = {{"rule", "steps"}, {"settling_steps", settling}, {"mode", "waited"}, {"inner", 1}};
    r["metrics"] = {{"loss", {{"value", loss}, {"unit", ""}, {"direction", 0}}}};
    return r;
  };
  ComparisonOptions options = one_state();
  options.metrics = {"loss"};
  const auto entry_of = [&](const Json& a, const Json& b) {
    return compare_sides(two({a}, {b}), options).metrics[0].cases[0].entries[1];
  };
  const Entry other = entry_of(trained(2, 1, 6.7595), trained(2, 4, 6.5712));
  EXPECT_EQ(other.verdict, "cannot tell");
  EXPECT_NEAR(*other.ratio, 6.5712 / 6.7595, 1e-9);
  EXPECT_TRUE(what_would_settle(compare_sides(two({trained(2, 1, 6.7)}, {trained(2, 4, 6.5)}), options), "").empty())
      << "more runs would not tell";
  EXPECT_EQ(other.notes,
            (std::vector<std::string>{"loss depends on the number of steps, which differs (unrecorded + measured): 2 + "
                                      "100 in A, 5 + 100 in B; compare runs with the same steps, and the same "
                                      "warmup of 0 or at least 5"}));
  EXPECT_EQ(entry_of(trained(2, 1, 6.5), trained(2, 4, 6.5)).verdict, "same") << "of a pass without updates";
  EXPECT_EQ(entry_of(trained(2, 4, 6.7595), trained(2, 4, 6.5712)).verdict, "lower");
  EXPECT_EQ(entry_of(trained(20, 9, 6.7595), trained(20, 4, 6.5712)).verdict, "lower") << "the last of the warm-up";
  Json own_a = trained(2, 1, 6.7595), own_b = trained(2, 4, 6.5712);
  own_a["params"]["loss_steps"] = own_b["params"]["loss_steps"] = 30;
  EXPECT_EQ(entry_of(own_a, own_b).verdict, "lower") << "the workload trains by itself";
  options.metrics = {"step"};
  EXPECT_EQ(entry_of(trained(2, 1, 6.7595), trained(2, 4, 6.5712)).verdict, "same");
}

TEST_F(SidesCompared, ReasonsToFail) {
  const Comparison slower = compare_sides(two({sized("small", 100)}, {sized("small", 120)}), one_state());
  ASSERT_EQ(reasons_to_fail(slower, {true, false, false}).size(), 1u);
  EXPECT_EQ(reasons_to_fail(slower, {true, false, false})[0], "step of B, decoder: slower");
  EXPECT_TRUE(reasons_to_fail(slower, {false, true, true}).empty());
  const Comparison faster = compare_sides(two({sized("small", 100)}, {sized("small", 80)}), one_state());
  EXPECT_TRUE(reasons_to_fail(faster, {true, true, true}).empty());
  const Comparison unclear = compare_sides(
      two({sized("small", 100)}, {record_of({{"size", "small"}}, {90, 130, 95, 140, 100}, {{"size", "small"}})}),
      one_state());
  EXPECT_TRUE(reasons_to_fail(unclear, {true, false, false}).empty());
  EXPECT_EQ(reasons_to_fail(unclear, {false, true, false}).size(), 1u);
  const Comparison nothing = compare_sides(two({sized("small", 100)}, {sized("large", 100)}), one_state());
  EXPECT_EQ(reasons_to_fail(nothing, {true, false, false}), std::vector<std::string>{"nothing could be compared"});
}

TEST_F(SidesCompared, RunsOfASideAreNotComparedWithEachOther) {
  std::vector<Side> sides{side_of(0, {run_of({sized("small", 100)}), run_of({sized("small", 100)})}),
                          side_of(1, {run_of({sized("small", 104)}), run_of({sized("small", 104)})})};
  const Comparison comparison = compare_sides(std::move(sides), one_state());
  ASSERT_EQ(comparison.metrics[0].cases.size(), 1u);
  const Entry& entry = comparison.metrics[0].cases[0].entries[1];
  EXPECT_EQ(entry.runs, 2u);
  EXPECT_EQ(entry.verdict, "slower");
}

class WordsCompared : public SidesCompared {
 protected:
  Json worded(const std::string& size, const std::string& dtype) {
    Json record = sized(size, 100);
    record["metrics"] = {{"logits_dtype", {{"value", 1}, {"word", dtype}, {"unit", ""}, {"direction", 0}}}};
    return record;
  }
  static ComparisonOptions of_words() {
    ComparisonOptions options = one_state();
    options.metrics = {"logits_dtype"};
    return options;
  }
};

TEST_F(WordsCompared, AreTheSameOrDiffer) {
  const Comparison comparison = compare_sides(
      two({worded("small", "fp32"), worded("large", "fp32")}, {worded("small", "fp32"), worded("large", "bf16")}),
      of_words());
  const auto& cases = comparison.metrics[0].cases;
  EXPECT_EQ(cases[0].entries[0].word, "fp32");
  EXPECT_EQ(cases[0].entries[1].verdict, "same");
  EXPECT_EQ(cases[1].entries[1].word, "bf16");
  EXPECT_EQ(cases[1].entries[1].verdict, "differs");
  EXPECT_FALSE(cases[1].entries[1].ratio);
  EXPECT_TRUE(reasons_to_fail(comparison, {true, true, true}).empty());
  FailIf differs;
  differs.differs = true;
  EXPECT_EQ(reasons_to_fail(comparison, differs),
            std::vector<std::string>{"logits_dtype of B, size=large: differs: fp32 / bf16"});
}

TEST_F(WordsCompared, AreRefusedWhereASideHasNone) {
  const Comparison comparison = compare_sides(two({worded("small", "fp32")}, {sized("small", 100)}), of_words());
  EXPECT_EQ(comparison.metrics[0].cases[0].entries[1].reason, "B has no word for logits_dtype");
}

TEST_F(WordsCompared, RunsOfOneSideHaveToAgree) {
  std::vector<Side> sides{side_of(0, {run_of({worded("small", "fp32")})}),
                          side_of(1, {run_of({worded("small", "fp32")}), run_of({worded("small", "bf16")})})};
  const Comparison comparison = compare_sides(std::move(sides), of_words());
  EXPECT_EQ(comparison.metrics[0].cases[0].entries[1].reason, "the runs of B have other words: fp32, bf16");
}

TEST_F(SidesCompared, AllMetricsAreThoseWithAFigureOrAWord) {
  Json record = sized("small", 100);
  record["metrics"] = {{"logits_dtype", {{"value", 1}, {"word", "bf16"}, {"unit", ""}, {"direction", 0}}},
                       {"wrong_elements", {{"value", 0}, {"unit", ""}, {"direction", -1}}}};
  ComparisonOptions options = one_state();
  options.metrics = {"step", "all"};
  std::vector<std::string> names;
  for (const ComparedMetric& metric : compare_sides(two({record}, {record}), options).metrics)
    names.push_back(metric.name);
  EXPECT_EQ(names, (std::vector<std::string>{"step", "items_per_s", "logits_dtype", "memory"}));
}

TEST_F(SidesCompared, AMetricThatIsZeroEverywhereIsNotCalledUnknown) {
  Json record = sized("small", 100);
  record["metrics"] = {{"wrong_elements", {{"value", 0}, {"unit", ""}, {"direction", -1}}}};
  ComparisonOptions options = one_state();
  options.metrics = {"wrong_elements"};
  try {
    compare_sides(two({record}, {record}), options);
    ADD_FAILURE() << "expected a mistake";
  } catch (const NoMetricError& e) {
    EXPECT_STREQ(e.what(), "no case has a figure of 'wrong_elements' above 0, and a ratio needs one");
  }
}

}  // namespace
}  // namespace assay::host::compare
