#include "compare/report.hpp"

#include "common/text_format.hpp"
#include "noisy_records.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace assay::host::compare {
namespace {

class Report : public ::testing::Test {
 protected:
  Comparison comparison(std::size_t sides, std::vector<double> costs = {}) {
    std::vector<Side> all;
    for (std::size_t i = 0; i < sides; ++i) {
      std::vector<Json> records;
      for (const char* size : {"small", "medium", "large"}) {
        records.push_back(record_of({{"size", size}, {"a_rather_long_parameter", "graph|eager"}},
                                    machine_.steps(100.0 * static_cast<double>(i + 1), 50, {0, 0.005, 0, 0}),
                                    {{"size", size}, {"a_rather_long_parameter", "graph|eager"}}));
        if (size == std::string("large") && i == 1) {
          records.back()["status"] = "oom";
          records.back()["reason"] = "wanted \x1b[2J more";
        }
      }
      Json environment{{"cpu", {{"model", std::string(60, 'x') + std::to_string(i)}}}};
      all.push_back(side_of(i, {run_of(std::move(records), std::move(environment))}));
    }
    ComparisonOptions options = one_state();
    options.metrics = {"step", "memory"};
    options.dollars_per_gpu_hour = std::move(costs);
    return compare_sides(std::move(all), options);
  }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
  NoisyRuns machine_{3};
};

TEST_F(Report, TheTerminalsWidthIsKept) {
  for (const std::size_t sides : {2u, 3u, 5u}) {
    const std::string text = comparison_text(comparison(sides, std::vector<double>(sides, 3.0)), {}, 120);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 120u) << line;
    EXPECT_FALSE(has(text, "\x1b"));
  }
}

TEST_F(Report, DifferencesComeBeforeVerdicts) {
  const std::string text = comparison_text(comparison(2), {}, 120, {false, true});
  const std::size_t difference = text.find("cpu.model"), verdict = text.find("slower");
  ASSERT_NE(difference, std::string::npos);
  ASSERT_NE(verdict, std::string::npos);
  EXPECT_LT(difference, verdict);
  EXPECT_TRUE(has(text, "step, ms: mean of the steps; lower is better")) << text;
  EXPECT_TRUE(has(text, "Not compared\n  size=large: B: oom: wanted")) << text;
  EXPECT_TRUE(has(text, "95% interval of the ratio lies within 2%"));
  EXPECT_FALSE(has(comparison_text(comparison(2), {}, 120), "interval of the ratio")) << "only where it is asked for";
}

TEST_F(Report, WhereNothingCouldBeComparedTheReasonAndTheRemedyComeFirst) {
  Json other = record_of({}, machine_.steps(100, 30, {}));
  other["workload"] = "all_reduce", other["files"] = {{"plugin", "0123456789abcdef"}};
  std::vector<Side> sides{side_of(0, {run_of({record_of({}, machine_.steps(100, 30, {}))})}),
                          side_of(1, {run_of({other})})};
  const std::string text = comparison_text(compare_sides(std::move(sides), one_state()), {}, 80);
  EXPECT_TRUE(text.starts_with("Nothing could be compared\n  A runs the workload decoder, and B runs all_reduce."))
      << text;
  EXPECT_TRUE(has(text, "--across workload")) << text;
  EXPECT_LT(text.find("only in B: all_reduce"), text.find("What differs about machine")) << text;
  EXPECT_FALSE(has(text, "step, ms")) << text;

  std::vector<Side> again{
      side_of(0, {run_of({record_of({{"d", 1}, {"e", 1}}, machine_.steps(100, 30, {}), {{"d", 1}}),
                          record_of({{"d", 2}, {"e", 1}}, machine_.steps(100, 30, {}), {{"d", 2}})})}),
      side_of(1, {run_of({other})})};
  ComparisonOptions across;
  across.rules.across = {"workload"};
  EXPECT_FALSE(has(comparison_text(compare_sides(std::move(again), across), {}, 80), "add --across workload"))
      << "it is given";

  std::vector<Side> larger{side_of(0, {run_of({record_of({{"d", 1}}, machine_.steps(100, 30, {}))})}),
                           side_of(1, {run_of({record_of({{"d", 2}}, machine_.steps(100, 30, {}))})})};
  EXPECT_TRUE(comparison_text(compare_sides(std::move(larger), one_state()), {}, 120)
                  .starts_with("Nothing could be compared\n  decoder: other inputs: d 1 / 2; compare all the same with "
                               "--across d\n\nSides"));
  EXPECT_FALSE(has(comparison_text(comparison(2), {}, 120), "Nothing could be compared"));
}

TEST_F(Report, AVerdictWithoutAnIntervalSaysWhyAndWhatToRun) {
  std::vector<Side> sides{side_of(0, {run_of({record_of({}, {100})})}),
                          side_of(1, {run_of({record_of({}, machine_.steps(100, 30, {}))})})};
  const std::string text = comparison_text(compare_sides(std::move(sides), one_state()), {}, 300);
  EXPECT_TRUE(
      has(text,
          "[1] no interval, so no verdict: A has a single step, which does not show how much steps differ by chance. "
          "Compare more steps (--set measure.steps=30) or several runs a side: assay compare A1,A2,A3 B1,B2,B3"))
      << text;
  EXPECT_FALSE(has(text, "How to settle")) << text;
}

TEST_F(Report, ManySidesHaveALineEach) {
  const std::string text = comparison_text(comparison(3), {}, 120);
  EXPECT_TRUE(has(text, "(baseline)"));
  EXPECT_TRUE(has(text, "not compared"));
  EXPECT_TRUE(has(text, "C size=small") || has(text, "slower")) << text;
}

TEST_F(Report, SidesThatLackTheSameAreNamedTogetherAndHaveNoRow) {
  std::vector<Side> sides;
  for (std::size_t i = 0; i < 4; ++i) {
    std::vector<Json> records;
    for (const char* size : {"small", "large"})
      if (i < 2 || size == std::string("small"))
        records.push_back(record_of({{"size", size}}, machine_.steps(100, 30, {}), {{"size", size}}));
    if (i == 0) records.front()["algorithms"] = {{"matmul", "blocked"}};
    sides.push_back(side_of(i, {run_of(records)}));
  }
  const std::string text = comparison_text(compare_sides(std::move(sides), one_state()), {}, 120);
  EXPECT_TRUE(has(text, "B, C, D do not say: algorithm of matmul")) << text;
  std::size_t rows = 0;
  for (const char* side : {"  A  ", "  B  ", "  C  ", "  D  "})
    for (std::size_t at = text.find(side, text.find("step, ms")); at != std::string::npos; at = text.find(side, at + 1))
      ++rows;
  EXPECT_EQ(rows, 4u + 2u) << text;
}

TEST_F(Report, MarkdownHasTablesAndHeadings) {
  const std::string text = comparison_markdown(comparison(2, {3.0, 5.5}), {});
  EXPECT_TRUE(has(text, "## Sides (the baseline is A)\n\n| side"));
  EXPECT_TRUE(has(text, "tokens/$ B"));
  EXPECT_TRUE(has(text, "\n## Not compared\n\n- size=large"));
}

TEST_F(Report, CsvHasALinePerMetricCaseAndSide) {
  const std::string text = comparison_csv(comparison(3));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 2 * 3 * 3);
  EXPECT_TRUE(text.starts_with("metric,workload,size,unit,side,from,value,ratio,low,high,verdict,statistic,runs,"))
      << text.substr(0, 200);
}

TEST_F(Report, JsonHasEverything) {
  const Json json = Json::parse(comparison_json(comparison(2, {3.0, 5.5}), {}));
  EXPECT_EQ(json["sides"].size(), 2u);
  EXPECT_EQ(json["sides"][1]["from"], "path/B");
  EXPECT_EQ(json["differences"][0]["item"], "cpu.model");
  EXPECT_EQ(json["test"]["threshold"], 0.02);
  const Json& small = json["metrics"][0]["cases"][0];
  EXPECT_EQ(small["axes"]["size"], "small");
  EXPECT_EQ(small["sides"][0]["state"], "baseline");
  EXPECT_EQ(small["sides"][1]["verdict"], "slower");
  EXPECT_GT(small["sides"][1]["low"], 1.9);
  EXPECT_GT(small["sides"][1]["items_per_dollar"], 0);
  const Json& large = json["metrics"][0]["cases"][2];
  EXPECT_EQ(large["sides"][1]["state"], "refused");
  EXPECT_TRUE(large["sides"][1]["ratio"].is_null());
}

TEST_F(Report, WhatCannotBeToldHasTheRunsThatWouldSettleIt) {
  std::vector<Side> sides;
  for (std::size_t i = 0; i < 2; ++i)
    sides.push_back(side_of(i, {run_of({record_of({}, machine_.steps(100, 30, {0, 0.08, 0, 0}))})}));
  const Comparison unclear = compare_sides(std::move(sides), one_state());
  const std::string text = comparison_text(unclear, {}, 120);
  ASSERT_TRUE(has(text, "cannot tell")) << text;
  EXPECT_TRUE(has(text, "runs needed")) << text;
  EXPECT_TRUE(has(text, " a side in all): assay compare A1,A2,A3 B1,B2,B3")) << text;
  EXPECT_TRUE(has(text, "or `assay ab EXPERIMENT.toml ")) << text;
  EXPECT_TRUE(has(comparison_text(unclear, {}, 400, {.by = "execution"}), "--resume --set run.repeat="));
  EXPECT_FALSE(has(comparison_text(comparison(2), {}, 120), "How to settle"));
  const Json entry = Json::parse(comparison_json(unclear, {}))["metrics"][0]["cases"][0]["sides"][1];
  EXPECT_GE(entry["runs_to_settle"], 2);
  EXPECT_GT(entry["p_value"], 0.05);
  EXPECT_FALSE(has(comparison_text(comparison(2), {}, 120), "runs needed"));
}

TEST_F(Report, ASideOfSeveralRunsAndAnOpenInterval) {
  Json waiting = record_of({}, machine_.steps(100, 30, {0, 0.002, 0, 0}));
  waiting["contention"] = {{"wait_share", 0.6}};
  const Json calm = record_of({}, machine_.steps(100, 30, {0, 0.002, 0, 0}));
  std::vector<Side> sides{side_of(0, {run_of({calm}), run_of({calm}), run_of({calm})}),
                          side_of(1, {run_of({waiting}), run_of({waiting})})};
  const std::string text = comparison_text(compare_sides(std::move(sides), one_state()), {}, 120);
  EXPECT_TRUE(has(text, "run and 2 more")) << text;
  // B could have been faster, nobody knows by how much.
  EXPECT_TRUE(has(text, "? .. 1.0")) << text;
  EXPECT_FALSE(has(text, "inf")) << text;
}

TEST_F(Report, MetricsSideBySideHaveALineForEachCase) {
  const std::string text = comparison_markdown(comparison(2), {}, {true, false});
  EXPECT_TRUE(has(text, "## Metrics side by side: step in ms, memory in MiB\n")) << text;
  EXPECT_TRUE(has(text, "| size   | step.A | step.B | step.B/A | step.verdict | memory.A | memory.B | memory.B/A |"))
      << text;
  EXPECT_FALSE(has(text, "How it was tested"));
  EXPECT_TRUE(has(text, "size=large: B: oom")) << text;
}

TEST_F(Report, SideBySideOfManySidesHasALineForEach) {
  const std::string text = comparison_csv(comparison(3), {true, true});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 3 * 3);
  EXPECT_TRUE(
      text.starts_with("size,side,step.value,step./A,step.verdict,memory.value,memory./A,memory.verdict\nsmall,A,"))
      << text;
  EXPECT_TRUE(has(text, "not compared")) << text;
}

TEST_F(Report, SideBySideIsBrokenIntoTablesThatFit) {
  for (const std::size_t sides : {2u, 3u}) {
    const Comparison wide = comparison(sides);
    for (const std::size_t width : {50u, 120u}) {
      const std::string text = comparison_text(wide, {}, width, {true, false});
      const std::string tables = text.substr(text.find("Metrics side by side"));
      std::istringstream lines(tables);
      for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), width) << line;
      std::size_t count = 0;
      for (std::size_t at = tables.find("────"); at != std::string::npos; at = tables.find("\n────", at + 1)) ++count;
      EXPECT_EQ(count, width == 50 ? 2u : 1u) << text;
    }
  }
}

TEST_F(Report, WordsHaveNoColumnsOfRatios) {
  std::vector<Side> sides;
  for (std::size_t i = 0; i < 2; ++i) {
    Json record = record_of({}, {10, 11, 12});
    record["metrics"] = {
        {"logits_dtype", {{"value", 1}, {"word", i == 0 ? "fp32" : "bf16"}, {"unit", ""}, {"direction", 0}}}};
    sides.push_back(side_of(i, {run_of({record})}));
  }
  ComparisonOptions options = one_state();
  options.metrics = {"logits_dtype"};
  const Comparison words = compare_sides(std::move(sides), options);
  EXPECT_TRUE(has(comparison_markdown(words, {}), "## logits_dtype\n\n| A    | B    | verdict |"))
      << comparison_markdown(words, {});
  EXPECT_TRUE(has(comparison_csv(words), ",B,path/B,bf16,,,,differs,")) << comparison_csv(words);
  EXPECT_EQ(Json::parse(comparison_json(words, {}))["metrics"][0]["cases"][0]["sides"][1]["word"], "bf16");
}

}  // namespace
}  // namespace assay::host::compare
