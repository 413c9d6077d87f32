#include "history/index.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "history/report.hpp"
#include "runs_on_disk.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host::history {
namespace {

namespace fs = std::filesystem;

class HistoryIndex : public ::testing::Test {
 protected:
  HistoryIndex() {
    for (int day = 1; day <= 6; ++day) put_run(results(), "decoder", {.day = day, .steps_ms = {10, 10.1, 10.2, 10}});
    put_run(results(), "other", {.day = 3, .steps_ms = {20, 20.1}, .host = "node2"});
  }
  fs::path results() const { return folder_ / "results"; }
  fs::path file() const { return folder_ / "cache/history.sqlite"; }

  // How many files were read.
  std::size_t refresh() {
    index_.emplace(file(), warnings_);
    return index_->refresh({results()}, warnings_);
  }
  std::string reported() {
    const SeriesOptions options;
    return history_json(index_->runs(), find_series(*index_, options, warnings_), options).dump(1);
  }

  test::TemporaryFolder folder_;
  std::optional<Index> index_;
  std::vector<std::string> warnings_;
};

TEST_F(HistoryIndex, SaysWhereRecordsStand) {
  EXPECT_EQ(refresh(), 7u);
  const auto records = index_->records();
  ASSERT_EQ(records.size(), 7u);
  EXPECT_EQ(records[0].started, "2026-11-01T12:00:00Z");
  EXPECT_EQ(records[0].experiment, "decoder");
  EXPECT_EQ(records[0].series, records[1].series) << "the same case in another run";
  const auto runs = index_->runs();
  ASSERT_EQ(runs.size(), 7u);
  EXPECT_EQ(runs[0].hosts, std::vector<std::string>{"node1"});
  EXPECT_EQ(runs[0].revision.substr(0, 4), "aaaa");
  EXPECT_TRUE(warnings_.empty()) << warnings_[0];
}

TEST_F(HistoryIndex, ReadsOnlyWhatHasChanged) {
  refresh();
  EXPECT_EQ(refresh(), 0u);
  const fs::path run = put_run(results(), "decoder", {.day = 9, .steps_ms = {11, 11.1}});
  EXPECT_EQ(refresh(), 1u);
  EXPECT_EQ(index_->records().size(), 8u);
  std::ofstream(run / "cases.jsonl", std::ios::app) << line_of({.day = 9, .steps_ms = {12, 12.1}, .size = "large"});
  EXPECT_EQ(refresh(), 1u);
  EXPECT_EQ(index_->records().size(), 9u);
  fs::remove_all(run);
  EXPECT_EQ(refresh(), 0u);
  EXPECT_EQ(index_->records().size(), 7u);
}

TEST_F(HistoryIndex, RebuiltItSaysTheSame) {
  refresh();
  const std::string before = reported();
  EXPECT_NE(before.find("\"value\": 10."), std::string::npos) << before;
  fs::remove(file());
  EXPECT_EQ(refresh(), 7u);
  EXPECT_EQ(reported(), before);
}

TEST_F(HistoryIndex, ADamagedOneAndOneOfAnotherVersionAreMadeAnew) {
  refresh();
  const std::string before = reported();
  index_.reset();
  test::put_file(file(), std::string(8192, 'x'));
  EXPECT_EQ(refresh(), 7u);
  EXPECT_EQ(reported(), before);
  Database(file()).run("PRAGMA user_version = 99");
  EXPECT_EQ(refresh(), 7u);
  EXPECT_EQ(reported(), before);
  EXPECT_TRUE(warnings_.empty()) << warnings_[0];
}

TEST_F(HistoryIndex, LinesThatAreNoRecordsAreTold) {
  const fs::path run = put_run(results(), "decoder", {.day = 9, .steps_ms = {10, 10.1}});
  std::ofstream(run / "cases.jsonl", std::ios::app) << "no record\n";
  refresh();
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("1 line is no record"), std::string::npos) << warnings_[0];
}

TEST_F(HistoryIndex, WhereItCannotBeKeptItIsInMemory) {
  test::put_file(folder_ / "file", "");
  std::vector<std::string> warnings;
  Index index(folder_ / "file/cache/history.sqlite", warnings);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("cannot be kept: Not a directory"), std::string::npos) << warnings[0];
  EXPECT_EQ(index.refresh({results()}, warnings), 7u);
  EXPECT_EQ(Index({}, warnings).refresh({results()}, warnings), 7u);
}

TEST_F(HistoryIndex, TheLastRecordOfACaseCounts) {
  const fs::path run = put_run(results(), "decoder", {.day = 8, .steps_ms = {10, 10.1}});
  std::ofstream(run / "cases.jsonl", std::ios::app)
      << line_of({.day = 8, .steps_ms = {14, 14.1}, .status = "outdated"}) << "{\"torn\":";
  refresh();
  ASSERT_EQ(index_->records().size(), 8u);
  const SeriesFound found = find_series(*index_, {}, warnings_);
  EXPECT_EQ(found.not_ok, 1u);
  EXPECT_EQ(found.series[0].points.size(), 6u) << "the one that is outdated is none";
}

TEST_F(HistoryIndex, OnlyWhatLiesBelowTheFoldersCounts) {
  const fs::path elsewhere = folder_ / "elsewhere";
  put_run(elsewhere, "decoder", {.day = 20, .steps_ms = {10, 10.1}});
  std::vector<std::string> warnings;
  Index index(file(), warnings);
  index.refresh({results(), elsewhere}, warnings);
  EXPECT_EQ(index.records().size(), 8u);
  EXPECT_EQ(index.refresh({elsewhere}, warnings), 0u) << "known already";
  EXPECT_EQ(index.records().size(), 1u);
}

}  // namespace
}  // namespace assay::host::history
