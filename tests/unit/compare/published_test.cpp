// The published figures in the repository: they are read, and stand beside what was measured here.
#include "compare/comparison.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace assay::host::compare {
namespace {

namespace fs = std::filesystem;
const fs::path kPublished = ASSAY_PUBLISHED;

std::vector<fs::path> published_tables() {
  std::vector<fs::path> tables;
  for (const auto& entry : fs::recursive_directory_iterator(kPublished))
    if (entry.path().filename() == "cases.jsonl" && entry.path().string().find("/report-") != std::string::npos)
      tables.push_back(entry.path().parent_path());
  return tables;
}

TEST(Published, EveryTableIsReadWithoutAWarning) {
  const std::vector<fs::path> tables = published_tables();
  EXPECT_GE(tables.size(), 20u);
  for (const fs::path& table : tables) {
    const Sides sides = read_sides({table.string()}, FolderOfRuns::sides);
    EXPECT_TRUE(sides.warnings.empty()) << sides.warnings[0];
    ASSERT_EQ(sides.sides.size(), 1u);
    EXPECT_FALSE(sides.sides[0].runs[0].records.empty()) << table;
    for (const record::CaseRecord& record : sides.sides[0].runs[0].records) {
      ASSERT_TRUE(record.result.notes && !record.result.notes->empty()) << table;
      EXPECT_TRUE(record.result.notes->front().starts_with("published: report 00")) << table;
    }
    EXPECT_TRUE(fs::exists(table.parent_path() / "README.md")) << table;
  }
}

TEST(Published, ALaptopBesideAnH200) {
  Sides sides = read_sides({(kPublished / "report-001-rtx-4090-laptop/decoder-sizes").string(),
                            (kPublished / "h200-2026-11-20/decoder-sizes").string()},
                           FolderOfRuns::sides);
  ComparisonOptions options;
  options.rules.across = {"execution"};  // eager there, a graph here
  const Comparison comparison = compare_sides(std::move(sides.sides), options);
  const auto& cases = comparison.metrics[0].cases;
  ASSERT_EQ(cases.size(), 5u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(cases[i].entries[1].verdict, "faster");
    EXPECT_FALSE(cases[i].entries[1].by_samples);
  }
  EXPECT_EQ(cases[3].entries[1].reason, "A: oom: out of memory");
  ASSERT_FALSE(comparison.differences.items.empty());
  EXPECT_EQ(comparison.differences.items[0].item, "device.name");
}

TEST(Published, AnotherContextIsRefused) {
  Sides sides = read_sides({(kPublished / "report-002-rtx-pro-6000/decoder-fp32").string(),
                            (kPublished / "h200-2026-11-20/decoder-sizes").string()},
                           FolderOfRuns::sides);
  const Comparison comparison = compare_sides(std::move(sides.sides), {});
  ASSERT_FALSE(comparison.metrics[0].cases.empty());
  for (const ComparedCase& c : comparison.metrics[0].cases) {
    EXPECT_EQ(c.entries[1].kind, Entry::Kind::refused);
    EXPECT_NE(c.entries[1].reason.find("context_length 256 / 512"), std::string::npos) << c.entries[1].reason;
  }
}

Comparison published_comparison(const char* baseline, const char* other, const std::string& metric = "step") {
  Sides sides = read_sides({(kPublished / baseline).string(), (kPublished / other).string()}, FolderOfRuns::sides);
  ComparisonOptions options;
  options.metrics = {metric};
  return compare_sides(std::move(sides.sides), options);
}

bool says(const std::vector<std::string>& lines, const std::string& text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

TEST(Published, WhatWasFilledInIsSaid) {
  const Comparison comparison = published_comparison("report-000-guide/decoder-sizes", "h200-2026-11-20/decoder-sizes");
  EXPECT_TRUE(
      says(comparison.unknown,
           "A assumes what its source does not say: pass = forward_backward, precision = fp32, measure.warmup = "
           "5, measure.steps = 10, device = cuda"));
  EXPECT_FALSE(says(comparison.unknown, "B assumes"));
}

TEST(Published, TheOptimizersStepIsNoTrainingStep) {
  const char *report = "report-003-rtx-5090-x2/sharded-optimizer", *here = "h200-x2-2026-11-20/sharded-optimizer";
  for (const char* metric : {"step", "optimizer"}) {
    const Comparison comparison = published_comparison(report, here, metric);
    ASSERT_EQ(comparison.metrics[0].cases.size(), 2u);
    for (const ComparedCase& c : comparison.metrics[0].cases) {
      EXPECT_EQ(c.entries[1].kind, Entry::Kind::refused) << metric;
      EXPECT_TRUE(c.entries[1].reason.starts_with(std::string("A has no figure of ") + metric + "; it has "))
          << c.entries[1].reason;
    }
  }
}

TEST(Published, ASizeWithoutDimensionsIsNotOurs) {
  const Sides sides = read_sides({(kPublished / "report-003-cpu-smoke/ddp-strategies").string()}, FolderOfRuns::sides);
  std::vector<record::CaseRecord> ours = sides.sides[0].runs[0].records;
  for (record::CaseRecord& record : ours)
    for (auto& [name, value] : record.identity.params)
      if (name == "size") value = std::string("tiny");
  std::vector<Side> both = sides.sides;
  both.push_back(both[0]);
  both[1].label = "B";
  both[1].runs[0].records = ours;
  const Comparison comparison = compare_sides(std::move(both), {});
  ASSERT_EQ(comparison.metrics[0].cases.size(), 4u);
  for (const ComparedCase& c : comparison.metrics[0].cases)
    EXPECT_NE(c.entries[1].reason.find("size tiny of report 003 / tiny; compare all the same with --across size"),
              std::string::npos)
        << c.entries[1].reason;
}

TEST(Published, EachSumIsOneOfOurs) {
  const Comparison comparison =
      published_comparison("report-003-smoke/accumulation", "h200-2026-11-21/mixed-precision-accumulation", "result");
  EXPECT_GE(comparison.metrics[0].cases.size(), 3u);
  for (const ComparedCase& c : comparison.metrics[0].cases) {
    EXPECT_EQ(c.entries[1].kind, Entry::Kind::compared) << c.axis_values[0] << ": " << c.entries[1].reason;
    EXPECT_NEAR(c.entries[1].ratio.value_or(0), 1, 1e-9) << c.axis_values[0];
  }
  // No record of that day has the order of its terms.
  for (const std::string& line : comparison.unmatched)
    EXPECT_TRUE(line.starts_with("only in B: ") || line.find("published_name=fp32_sum") != std::string::npos) << line;
}

TEST(Published, ANegativeTimeIsReadAndNotCompared) {
  const Comparison comparison = published_comparison("report-002-rtx-pro-6000/decoder-warmup-0",
                                                     "report-002-rtx-pro-6000/decoder-fp32", "backward");
  ASSERT_EQ(comparison.metrics[0].cases.size(), 5u);
  EXPECT_EQ(comparison.metrics[0].cases[0].entries[1].reason,
            "A has backward = -2.748, and a ratio needs a figure above 0");
  EXPECT_EQ(comparison.metrics[0].cases[1].entries[1].kind, Entry::Kind::compared);
}

}  // namespace
}  // namespace assay::host::compare
