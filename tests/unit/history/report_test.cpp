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
  EXPECT_NE(text.find("slower since 2026-11-06: +5."), std::string::npos) << text;
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

TEST(Sparkline, HasEightHeights) {
  EXPECT_EQ(sparkline({1, 2, 4, 8, 16, 32, 64, 128}, 20), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline({1, 1, 128, 128}, 2), "▁█");
  EXPECT_EQ(sparkline({100, 100.01, 100}, 9), "▄▄▄") << "noise is flat";
  EXPECT_EQ(sparkline({}, 9), "");
  EXPECT_EQ(sparkline({5}, 9), "▄");
}

}  // namespace
}  // namespace assay::host::history
