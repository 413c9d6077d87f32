// From arguments to runs, and which of them are compared.
#include "report/runs.hpp"

#include "results/find_runs.hpp"
#include "support/temporary_folder.hpp"
#include "unit/record/sample_record.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace assay::host::report {
namespace {

namespace fs = std::filesystem;

class Runs : public ::testing::Test {
 protected:
  std::string put_run(const std::string& experiment, const std::string& name, const std::vector<host::Json>& records) {
    const fs::path run = folder_.path() / experiment / name;
    fs::create_directories(run);
    std::ofstream lines(run / "cases.jsonl");
    const std::string started = "2026-11-20T12:00:0" + std::to_string(runs_++) + "Z";  // no run is another one's copy
    for (host::Json record : records) record["started"] = started, lines << record.dump() << "\n";
    return run.string();
  }
  std::string root() const { return folder_.path().string(); }

  test::TemporaryFolder folder_;
  int runs_ = 0;
  const std::string first_ = "20261120T120000Z-0001", second_ = "20261121T120000Z-0002";
};

TEST_F(Runs, OneRunIsNotCompared) {
  const std::string run = put_run("sizes", first_, {ok_record()});
  const ReportedRuns read = read_runs({run});
  ASSERT_EQ(read.runs.size(), 1u);
  EXPECT_EQ(read.runs[0].table.source.run, first_);
  EXPECT_EQ(read.runs[0].table.source.experiment, "sizes");
  EXPECT_EQ(read.runs[0].path, run);
  EXPECT_TRUE(read.comparisons.empty());
  fs::create_directory_symlink(first_, fs::path(root()) / "sizes/latest");
  const ReportedRuns latest = read_runs({root() + "/sizes/latest"});
  EXPECT_EQ(latest.runs[0].table.source.run, first_);
  EXPECT_EQ(latest.runs[0].table.source.experiment, "sizes");
}

TEST_F(Runs, SeveralAreSidesOfOneComparison) {
  const std::string a = put_run("sizes", first_, {ok_record()}), b = put_run("sizes", second_, {ok_record()});
  const ReportedRuns read = read_runs({a, b});
  ASSERT_EQ(read.comparisons.size(), 1u);
  ASSERT_TRUE(read.comparisons[0].comparison);
  ASSERT_EQ(read.comparisons[0].comparison->metrics.size(), 2u);
  EXPECT_EQ(read.comparisons[0].comparison->metrics[0].name, "step");
  EXPECT_EQ(read.comparisons[0].comparison->metrics[1].name, "memory");
  EXPECT_EQ(read.runs[1].label, "B");
}

TEST_F(Runs, CasesMayDifferInWhatIsNamed) {
  host::Json graph = ok_record();
  graph["params"]["execution"] = "graph";
  host::Json eager = ok_record();
  eager["params"]["execution"] = "eager";
  const std::string a = put_run("sizes", first_, {eager}), b = put_run("sizes", second_, {graph});
  const auto verdict = [&](const compare::MatchRules& rules) {
    return read_runs({a, b}, {rules, {}}).comparisons.at(0).comparison->metrics.at(0).cases.at(0).entries.at(1);
  };
  EXPECT_EQ(verdict({}).kind, compare::Entry::Kind::refused);
  EXPECT_EQ(verdict({{"execution"}, false}).kind, compare::Entry::Kind::compared);
}

TEST_F(Runs, ValuesWithinOneRunAreCompared) {
  host::Json graph = ok_record(), eager = ok_record();
  graph["index"] = 1;
  graph["axes"] = {{"execution", "graph"}};
  graph["params"]["execution"] = "graph";
  eager["axes"] = {{"execution", "eager"}};
  eager["params"]["execution"] = "eager";
  const std::string run = put_run("sizes", first_, {graph, eager});
  const ReportedRuns read = read_runs({run}, {{}, {{"execution"}, "eager"}});
  ASSERT_EQ(read.runs.size(), 1u);
  EXPECT_EQ(read.runs[0].table.records.size(), 2u);
  ASSERT_EQ(read.comparisons.size(), 1u);
  ASSERT_TRUE(read.comparisons[0].comparison);
  EXPECT_EQ(read.comparisons[0].comparison->sides.size(), 2u);
  EXPECT_EQ(read.comparisons[0].comparison->metrics[0].cases[0].entries[1].kind, compare::Entry::Kind::compared);
  EXPECT_THROW(read_runs({run}, {{}, {{"batch_size"}, {}}}), compare::SplitError);
  const std::string other = put_run("sizes", second_, {graph, eager});
  EXPECT_THROW(read_runs({run, other}, {{}, {{"execution"}, {}}}), compare::SplitError);
}

TEST_F(Runs, RunsOfOneSideAreCountedBesideItsLabel) {
  const std::string a = put_run("sizes", first_, {ok_record()}), b = put_run("sizes", second_, {ok_record()}),
                    c = put_run("sizes", "20261122T120000Z-0003", {ok_record()});
  const ReportedRuns read = read_runs({a + "," + b, c});
  ASSERT_EQ(read.runs.size(), 3u);
  EXPECT_EQ(read.runs[0].label, "A1");
  EXPECT_EQ(read.runs[1].label, "A2");
  EXPECT_EQ(read.runs[2].label, "B");
}

TEST_F(Runs, OfAFolderThoseAreComparedThatBelongTogether) {
  host::Json other = ok_record();
  other["workload"] = "attention";
  put_run("attention", first_, {other});
  put_run("sizes", first_, {ok_record()});
  put_run("sizes", second_, {ok_record()});
  const ReportedRuns read = read_runs({root()});
  ASSERT_EQ(read.runs.size(), 3u);
  ASSERT_EQ(read.comparisons.size(), 1u);
  ASSERT_TRUE(read.comparisons[0].comparison);
  ASSERT_EQ(read.comparisons[0].comparison->sides.size(), 2u);
  // A side is called as its run is in the rest of the page.
  for (const compare::Side& side : read.comparisons[0].comparison->sides)
    for (const ReportedRun& run : read.runs) EXPECT_TRUE(run.path != side.name || run.label == side.label) << run.path;
  EXPECT_EQ(read.comparisons[0].comparison->sides[0].label, "B");
}

TEST_F(Runs, WithoutTimesThereIsAReasonInPlaceOfAComparison) {
  host::Json oom = ok_record();
  oom["status"] = "oom";
  oom.erase("phases");
  const std::string a = put_run("sizes", first_, {oom}), b = put_run("sizes", second_, {oom});
  const ReportedRuns read = read_runs({a, b});
  ASSERT_EQ(read.comparisons.size(), 1u);
  EXPECT_FALSE(read.comparisons[0].comparison);
  EXPECT_NE(read.comparisons[0].refusal, "");
}

TEST_F(Runs, WhatIsNoRunAndWhatHasNoRecordAreRefused) {
  EXPECT_THROW(read_runs({root() + "/nowhere"}), results::NoRunError);
  try {
    read_runs({put_run("sizes", first_, {})});
    ADD_FAILURE() << "a run without a record was taken";
  } catch (const results::NoRunError& e) {
    EXPECT_NE(std::string(e.what()).find("no case has finished there, so there is nothing to report"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace assay::host::report
