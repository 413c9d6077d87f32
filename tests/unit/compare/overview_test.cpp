// All runs below a folder.
#include "compare/overview.hpp"

#include "common/text_format.hpp"
#include "noisy_records.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace assay::host::compare {
namespace {

namespace fs = std::filesystem;

class RunsBelow : public ::testing::Test {
 protected:
  void put_run(const std::string& name, const std::string& size, const std::string& started,
               const std::string& workload = "decoder") {
    fs::create_directories(folder_ / name);
    Json record = record_of({{"size", size}}, {10, 11, 12}, {{"size", size}});
    record["started"] = started;
    record["workload"] = workload;
    std::ofstream(folder_ / name / "cases.jsonl") << record.dump() << "\n";
  }
  static std::string two_digits(int number) { return (number < 10 ? "0" : "") + std::to_string(number); }
  static std::string run(int number) { return "20261120T1200" + two_digits(number) + "Z-0001"; }
  static std::string time(int number) { return "2026-11-20T12:00:" + two_digits(number) + "Z"; }
  Overview overview() const { return overview_of(folder_.path().string()).value(); }
  test::TemporaryFolder folder_;
};

TEST_F(RunsBelow, AreFoundAtAnyDepthWithoutFollowingLinks) {
  put_run("a/" + run(1), "small", time(1));
  put_run("b/c/" + run(2), "small", time(2));
  fs::create_directory_symlink(run(1), folder_ / "a/latest");
  const auto found = runs_below(folder_.path());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[1].string().ends_with("b/c/" + run(2)));
  EXPECT_TRUE(runs_below(folder_ / "a" / run(1)).empty());
  EXPECT_EQ(read_sides({folder_.path().string()}, FolderOfRuns::sides).sides.size(), 2u);
}

TEST_F(RunsBelow, ThoseThatShareCasesAreOneGroupTheOldestFirst) {
  put_run("x/" + run(3), "small", time(3));
  put_run("x/" + run(5), "small", time(5));
  put_run("y/" + run(1), "small", time(1));
  put_run("z/" + run(2), "small", time(2), "attention");
  const Overview all = overview();
  ASSERT_EQ(all.runs.size(), 4u);
  ASSERT_EQ(all.groups.size(), 1u);
  std::vector<std::string> paths;
  for (const std::size_t place : all.groups[0]) paths.push_back(all.runs[place].path);
  EXPECT_EQ(paths, (std::vector<std::string>{"y/" + run(1), "x/" + run(3), "x/" + run(5)}));
  EXPECT_FALSE(all.runs.back().group);
  EXPECT_EQ(all.skipped, std::vector<std::string>{"1 run shares no case with another"});
  EXPECT_EQ(group_title(all, 0), "Comparison 1: y and x, 3 runs");
  const Comparison comparison = compare_group(all, 0, {});
  EXPECT_EQ(comparison.sides.size(), 3u);
  EXPECT_EQ(comparison.metrics[0].cases[0].entries[2].kind, Entry::Kind::compared);
}

TEST_F(RunsBelow, ARowSaysWhatARunIs) {
  put_run("x/" + run(1), "small", time(1));
  put_run("y/" + run(2), "large", time(2));
  const Overview all = overview();
  const RunRow& row = all.runs[0];
  EXPECT_EQ(row.experiment, "x");
  EXPECT_EQ(row.workload, "decoder");
  EXPECT_EQ(row.started, time(1));
  EXPECT_EQ(row.device, "AMD EPYC");
  EXPECT_EQ(row.cases, 1u);
  EXPECT_EQ(row.ok, 1u);
  EXPECT_DOUBLE_EQ(row.step_mean_ms.value(), 11);
  EXPECT_DOUBLE_EQ(row.items_per_s.value(), 2048e3 / 11);
  EXPECT_TRUE(all.groups.empty());
}

TEST_F(RunsBelow, ACaseThatIsNotOkCountsInNoMean) {
  put_run("x/" + run(1), "small", time(1));
  put_run("y/" + run(2), "large", time(2));
  Json oom = record_of({{"size", "xl"}}, {900}, {{"size", "xl"}});
  oom["status"] = "oom";
  std::ofstream(folder_ / "x" / run(1) / "cases.jsonl", std::ios::app) << oom.dump() << "\n";
  const Overview all = overview();
  EXPECT_EQ(all.runs[0].cases, 2u);
  EXPECT_EQ(all.runs[0].ok, 1u);
  EXPECT_DOUBLE_EQ(all.runs[0].step_mean_ms.value(), 11);
}

TEST_F(RunsBelow, RunsOfOneExperimentInOneFolderNeedNoOverview) {
  put_run("x/" + run(1), "small", time(1));
  put_run("x/" + run(2), "small", time(2));
  EXPECT_FALSE(overview_of((folder_ / "x").string()));
  EXPECT_FALSE(overview_of((folder_ / "x" / run(1)).string()));
  EXPECT_TRUE(overview_of(folder_.path().string()));
}

TEST_F(RunsBelow, OfMoreThanAFewTheNewestAreCompared) {
  for (int i = 1; i <= 12; ++i) put_run("x/" + run(i), "small", time(i));
  const Overview all = overview();
  EXPECT_EQ(all.runs.size(), 12u);
  ASSERT_EQ(all.groups[0].size(), most_compared_runs);
  EXPECT_EQ(all.runs[all.groups[0].back()].path, "x/" + run(12));
  EXPECT_EQ(all.skipped,
            std::vector<std::string>{"comparison 1 has the 8 newest of 12 runs; name others to compare them"});
}

TEST_F(RunsBelow, WhatCannotBeReadIsToldAndHindersNothing) {
  put_run("x/" + run(1), "small", time(1));
  put_run("y/" + run(2), "small", time(2));
  fs::create_directories(folder_ / "z");
  std::ofstream(folder_ / "z/bench_torn.json") << "{";
  fs::create_directories(folder_ / "empty" / run(3));
  std::ofstream(folder_ / "empty" / run(3) / "cases.jsonl") << "";
  const Overview all = overview();
  EXPECT_EQ(all.groups.size(), 1u);
  ASSERT_EQ(all.skipped.size(), 2u);
  EXPECT_NE(all.skipped[0].find("bench_torn.json has no records"), std::string::npos);
  EXPECT_EQ(all.warnings.size(), 1u);
}

TEST_F(RunsBelow, TheTerminalsWidthIsKept) {
  for (int i = 1; i <= 3; ++i) put_run("decoder-execution/" + run(i), "small", time(i));
  const std::string text = overview_text(overview(), 120);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 120u) << line;
  EXPECT_NE(text.find("decoder-execution/" + run(2)), std::string::npos) << text;
}

TEST_F(RunsBelow, EveryFormHasEachRun) {
  put_run("x/" + run(1), "small", time(1));
  put_run("y/" + run(2), "large", time(2), "attention");
  const Overview all = overview();
  EXPECT_NE(overview_markdown(all).find("| x/" + run(1) + " | x "), std::string::npos) << overview_markdown(all);
  EXPECT_NE(overview_csv(all).find("y/" + run(2) + ",y," + time(2) + ",AMD EPYC,1,1,11.0,"), std::string::npos)
      << overview_csv(all);
  const Json json = Json::parse(overview_json(all, {"{\"schema\": 1}"}));
  ASSERT_EQ(json["runs"].size(), 2u);
  EXPECT_EQ(json["runs"][1]["workload"], "attention");
  EXPECT_TRUE(json["runs"][1]["comparison"].is_null());
  EXPECT_EQ(json["comparisons"].size(), 1u);
}

}  // namespace
}  // namespace assay::host::compare
