// The history of the reported cases, from run folders to what the page draws.
#include "report/history_data.hpp"

#include "history/index.hpp"
#include "support/temporary_folder.hpp"
#include "unit/history/runs_on_disk.hpp"

#include <gtest/gtest.h>

namespace assay::host::report {
namespace {

namespace fs = std::filesystem;

class HistoryData : public ::testing::Test {
 protected:
  // Ten runs of two sizes in separate runs; the small one is 5% slower from the sixth on.
  HistoryData() {
    compare::NoisyRuns random(11);
    for (int day = 1; day <= 10; ++day) {
      history::RunOnDisk run{.day = day, .steps_ms = random.steps(day > 5 ? 105 : 100, 20, {.of_run = 0.002})};
      run.revision = std::string(40, day > 5 ? 'b' : 'a');
      last_ = history::put_run(folder_.path(), "sizes", run);
    }
    history::put_run(folder_.path(), "other", {.day = 3, .steps_ms = {5, 5, 5}, .size = "large"});
    fs::create_directory_symlink(last_, folder_.path() / "latest");
  }
  ReportedRuns reported(const std::string& path) {
    ReportedRuns runs = read_runs({path});
    std::vector<std::string> warnings;
    history::Index index({}, warnings);
    index.refresh({folder_.path()}, warnings);
    ReportedHistory history;
    history.options.of_runs = places_of(runs);
    history.found = history::find_series(index, history.options, warnings);
    runs.history = std::move(history);
    return runs;
  }
  test::TemporaryFolder folder_;
  fs::path last_;
};

TEST_F(HistoryData, HasTheRunsOfTheReportedCasesAlone) {
  for (const char* given : {"latest", "latest/", "latest/cases.jsonl"}) {
    const Json json = history_json(reported((folder_.path() / given).string()));
    ASSERT_EQ(json["series"].size(), 1u) << given;
    const Json& series = json["series"][0];
    EXPECT_EQ(series["label"], "size=small");
    EXPECT_EQ(series["case_ids"], Json::array({0})) << given;
    ASSERT_EQ(series["points"].size(), 10u);
    EXPECT_EQ(series["points"][0][0], 1793534400) << "2026-11-01T12:00:00Z";
    EXPECT_NEAR(series["points"][9][1].get<double>(), 105, 3);
    EXPECT_EQ(json["revisions"][series["points"][9][3].get<std::size_t>()], "bbbbbbbbbb");
    EXPECT_EQ(json["hosts"], Json({"node1"}));
    ASSERT_EQ(series["changes"].size(), 1u);
    EXPECT_EQ(series["changes"][0]["at"], 5);
    EXPECT_EQ(series["changes"][0]["word"], "slower");
    EXPECT_EQ(series["changes"][0]["worse"], true);
    EXPECT_TRUE(series["changes"][0]["text"].get<std::string>().find("% slower since 2026-11-06 12:00 (") !=
                std::string::npos)
        << series;
  }
}

TEST_F(HistoryData, OfManyRunsTheNewestAreKeptAndTheChangeBeforeThemInWords) {
  for (int day = 11; day <= 30; ++day)
    history::put_run(folder_.path(), "sizes", {.day = day, .steps_ms = {105, 105.2, 104.8, 105.1, 104.9}});
  const Json series = history_json(reported(last_.string()), 1)["series"][0];
  EXPECT_EQ(series["points"].size(), least_points_of_a_series);
  EXPECT_EQ(series["left_out"], 10);
  EXPECT_EQ(series["case_ids"], Json::array({0}));
  ASSERT_EQ(series["changes"].size(), 1u);
  EXPECT_FALSE(series["changes"][0].contains("at")) << series;
}

TEST_F(HistoryData, WhatIsNoTimeStandsBesideItsNeighbour) {
  for (const char* time : {"garbage", "9999-01-01T00:00:00Z"}) {
    ReportedRuns runs = reported(last_.string());
    runs.history->found.series[0].points[0].started = time;
    runs.history->found.series[0].points[9].started = time;
    const Json points = history_json(runs)["series"][0]["points"];
    EXPECT_EQ(points[0][0], points[1][0]) << time;
    EXPECT_EQ(points[9][0], points[8][0]) << time;
  }
}

TEST_F(HistoryData, OneRunIsNoHistory) {
  const ReportedRuns runs = reported((folder_.path() / "other").string());
  EXPECT_EQ(runs.history->found.series.size(), 1u);
  EXPECT_TRUE(history_json(runs)["series"].empty());
}

}  // namespace
}  // namespace assay::host::report
