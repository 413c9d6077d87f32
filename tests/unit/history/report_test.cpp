#include "history/report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/text_format.hpp"
#include "history/sparkline.hpp"
#include "runs_on_disk.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host::history {
namespace {

class HistoryReport : public ::testing::Test {
 protected:
  // Ten runs; from the sixth on 5% slower, with another revision and another driver.
  HistoryReport() {
    compare::NoisyRuns random(11);
    for (int day = 1; day <= 10; ++day) {
      const bool is_new = day > 5;
      RunOnDisk run{.day = day, .steps_ms = random.steps(is_new ? 105 : 100, 20, {.of_run = 0.002})};
      if (is_new) run.revision = std::string(40, 'b'), run.driver = "590.10.01";
      put_run(folder_.path(), "decoder-sizes", run);
    }
    index_.refresh({folder_.path()}, warnings_);
  }
  SeriesFound found(const SeriesOptions& options = {}) { return find_series(index_, options, warnings_); }

  test::TemporaryFolder folder_;
  std::vector<std::string> warnings_;
  Index index_{{}, warnings_};
};

TEST_F(HistoryReport, SaysSinceWhenAndWhatElseChanged) {
  const std::string text = history_text(found(), {}, 160);
  EXPECT_NE(text.find("decoder-sizes (decoder): step"), std::string::npos) << text;
  EXPECT_NE(text.find("% slower since 2026-11-06 12:00 ("), std::string::npos) << text;
  EXPECT_NE(text.find("\n    5."), std::string::npos) << text;
  EXPECT_NE(text.find("; revision aaaaaaaaaa -> bbbbbbbbbb, driver 580.95.05 -> 590.10.01\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("10 runs, "), std::string::npos) << text;
  EXPECT_NE(text.find("assay compare "), std::string::npos) << text;
}

TEST_F(HistoryReport, IsNoWiderThanTheTerminalButForCommands) {
  const std::string text = history_text(found(), {}, 80);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    if (line.find("assay compare") == std::string::npos) {
      EXPECT_LE(display_width(line), 80u) << line;
    }
    begin = end + 1;
  }
  const std::string overview = overview_text(index_.runs(), 80);
  EXPECT_LE(display_width(overview.substr(0, overview.find('\n'))), 80u) << overview;
  EXPECT_NE(overview.find("decoder-sizes     10"), std::string::npos) << overview;
}

TEST_F(HistoryReport, ACopyOfAResultsFolderCountsOnce) {
  test::TemporaryFolder both;
  for (const char* place : {"results", "copy"})
    std::filesystem::copy(folder_.path(), both.path() / place, std::filesystem::copy_options::recursive);
  Index index{{}, warnings_};
  index.refresh({both.path()}, warnings_);
  const SeriesFound found = find_series(index, {}, warnings_);
  ASSERT_EQ(found.series.size(), 1u);
  EXPECT_EQ(found.series[0].points.size(), 10u);
  ASSERT_FALSE(warnings_.empty());
  EXPECT_NE(warnings_.back().find("10 records stand in more than one run, which is a copy, and count once"),
            std::string::npos);
}

TEST_F(HistoryReport, SinceAndOtherMetrics) {
  const SeriesFound newer = found({.since = "2026-11-06T00:00:00Z"});
  ASSERT_EQ(newer.series.size(), 1u);
  EXPECT_EQ(newer.series[0].points.size(), 5u);
  EXPECT_TRUE(newer.series[0].changes.empty());
  const SeriesFound rates = found({.metric = "items_per_s"});
  ASSERT_EQ(rates.series.size(), 1u);
  ASSERT_EQ(rates.series[0].changes.size(), 1u);
  EXPECT_TRUE(rates.series[0].changes[0].worse);
  EXPECT_EQ(rates.series[0].changes[0].word, "slower");
  const SeriesFound none = found({.metric = "steep"});
  EXPECT_TRUE(none.series.empty());
  EXPECT_EQ(none.without_metric, 10u);
  EXPECT_NE(std::find(none.metrics.begin(), none.metrics.end(), "step"), none.metrics.end());
}

TEST_F(HistoryReport, JsonHasPointsAndChanges) {
  const auto json = history_json(index_.runs(), found(), {});
  EXPECT_EQ(json["schema"], "assay.history/1");
  EXPECT_EQ(json["runs"].size(), 10u);
  EXPECT_EQ(json["series"][0]["points"].size(), 10u);
  const auto& change = json["series"][0]["changes"][0];
  EXPECT_EQ(change["since"], "2026-11-06T12:00:00Z");
  EXPECT_EQ(change["verdict"], "slower");
  EXPECT_EQ(change["worse"], true);
}

TEST_F(HistoryReport, FollowsTheMeanOrAnotherStatistic) {
  put_run(folder_.path(), "stalls", {.day = 20, .steps_ms = {10, 10, 10, 10, 10, 10, 10, 10, 10, 20}});
  index_.refresh({folder_.path()}, warnings_);
  const auto value_by = [&](compare::Statistic statistic) {
    SeriesOptions options{.name = "stalls"};
    options.test.statistic = statistic;
    return found(options).series.at(0).points.at(0).value;
  };
  EXPECT_DOUBLE_EQ(found({.name = "stalls"}).series.at(0).points.at(0).value, 11);
  EXPECT_DOUBLE_EQ(value_by(compare::Statistic::mean), 11);
  EXPECT_DOUBLE_EQ(value_by(compare::Statistic::p05), 10);
  EXPECT_DOUBLE_EQ(value_by(compare::Statistic::median), 10);
}

TEST_F(HistoryReport, WhereNoRecordExplainsAChangeItSaysSo) {
  for (int day = 1; day <= 12; ++day)
    put_run(folder_.path(), "same", {.day = day, .steps_ms = {day > 6 ? 9.0 : 10.0, day > 6 ? 9.01 : 10.01}});
  index_.refresh({folder_.path()}, warnings_);
  const SeriesOptions options{.name = "same"};
  const std::string text = history_text(found(options), options, 160);
  EXPECT_NE(text.find("10.0% faster since 2026-11-07 12:00 (10.0 to 10.0%)"), std::string::npos) << text;
  EXPECT_NE(text.find("; no recorded change explains it\n"), std::string::npos) << text;
}

TEST_F(HistoryReport, ARunIsNotComparedWithItself) {
  const auto run = put_run(folder_.path(), "repeats", {.day = 1, .steps_ms = {10, 10.01}, .repeat = 1});
  std::string lines;
  for (int repeat = 1; repeat <= 14; ++repeat)
    lines += line_of({.day = 1, .steps_ms = {repeat > 7 ? 11.0 : 10.0, repeat > 7 ? 11.01 : 10.01}, .repeat = repeat});
  test::put_file(run / "cases.jsonl", lines);
  index_.refresh({folder_.path()}, warnings_);
  const SeriesOptions options{.name = "repeats"};
  const SeriesFound repeats = found(options);
  ASSERT_EQ(repeats.series.at(0).changes.size(), 1u);
  const std::string text = history_text(repeats, options, 160);
  EXPECT_NE(text.find("slower since 2026-11-01 12:08"), std::string::npos) << text;
  EXPECT_EQ(text.find("assay compare"), std::string::npos) << text;
}

TEST_F(HistoryReport, TurnsOfAbAreLeftOutUnlessTheyAreAskedFor) {
  const auto session = folder_.path() / "ab-decoder-sizes/20261112T120000Z-0001";
  std::filesystem::path side_a;
  for (const char* side : {"a", "b"}) {
    const auto run = put_run(session / side, "decoder-sizes",
                             {.day = 12,
                              .steps_ms = {90, 90.1},
                              .revision = std::string(40, 'b'),
                              .driver = "590.10.01",
                              .command = "assay run x.toml --set run.repeat=2 --output x/a/ --quiet --resume"});
    if (side[0] == 'a') side_a = run;
    test::put_file(run / "cases.jsonl", line_of({.day = 12, .steps_ms = {90, 90.1}}) +
                                            line_of({.day = 12, .steps_ms = {90, 90.1}, .repeat = 2}));
  }
  index_.refresh({folder_.path()}, warnings_);
  const SeriesFound without = found();
  EXPECT_EQ(without.of_ab, 4u);
  ASSERT_EQ(without.series.size(), 1u);
  EXPECT_EQ(without.series[0].points.size(), 10u);
  const std::string text = history_text(without, {}, 160);
  EXPECT_NE(text.find("left out: 4 cases of `assay ab` (--with-ab shows them)\n"), std::string::npos) << text;
  EXPECT_EQ(history_json(index_.runs(), without, {})["of_ab"], 4);
  const SeriesFound with = found({.with_ab = true});
  EXPECT_EQ(with.of_ab, 0u);
  EXPECT_EQ(with.series.at(0).points.size(), 14u);
  EXPECT_EQ(found({.of_runs = {std::filesystem::canonical(side_a)}}).series.at(0).points.size(), 14u)
      << "its own report shows it";
  // Folders that have such names for another reason.
  for (const char* side : {"a", "b"})
    put_run(folder_.path() / "machines" / side, "other", {.day = 1, .steps_ms = {5, 5}});
  index_.refresh({folder_.path()}, warnings_);
  EXPECT_EQ(found().of_ab, 4u);
}

TEST(Sparkline, HasEightHeights) {
  EXPECT_EQ(sparkline({1, 2, 4, 8, 16, 32, 64, 128}, 20), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline({1, 1, 128, 128}, 2), "▁█");
  EXPECT_EQ(sparkline({100, 100.01, 100}, 9), "▄▄▄") << "noise is flat";
  EXPECT_EQ(sparkline({}, 9), "");
  EXPECT_EQ(sparkline({5}, 9), "▄");
}

}  // namespace
}  // namespace assay::host::history
