#include "ab/side_runs.hpp"

#include <gtest/gtest.h>

#include "support/files.hpp"
#include "support/temporary_folder.hpp"
#include "unit/compare/noisy_records.hpp"

namespace assay::host::ab {
namespace {

class SideRuns : public testing::Test {
 protected:
  // A run with two repeats of a case for each size.
  void put(const std::string& side, const std::vector<std::string>& sizes, const Json& more) {
    std::string lines;
    for (const std::string& size : sizes)
      for (const int repeat : {1, 2}) {
        Json params = more;
        params["size"] = size;
        Json record = compare::record_of(params, {10, 11, 12}, {{"size", size}});
        if (repeat > 1) record["repeat"] = repeat;
        lines += record.dump() + "\n";
      }
    test::put_file(folder_.path() / side / "x" / "20261120T120000Z-0001" / "cases.jsonl", lines);
  }
  SidesCompared compared() { return compare_folders(folder_.path() / "a", folder_.path() / "b", {}); }

  test::TemporaryFolder folder_;
};

TEST_F(SideRuns, AreComparedAcrossWhatTheSidesDifferIn) {
  put("a", {"small", "xl"}, {{"work", 10}, {"batch_size", 1}});
  put("b", {"small", "xl"}, {{"work", 10.3}, {"batch_size", 1}});
  const SidesCompared sides = compared();
  EXPECT_EQ(sides.across, std::set<std::string>{"work"});
  ASSERT_EQ(sides.comparison.metrics.at(0).cases.size(), 2u);
  for (const auto& c : sides.comparison.metrics[0].cases) {
    EXPECT_EQ(c.entries.at(1).kind, compare::Entry::Kind::compared) << c.entries[1].reason;
    EXPECT_EQ(c.entries[0].runs, 2u);
    EXPECT_EQ(c.entries[1].runs, 2u);
  }
}

TEST_F(SideRuns, AreComparedAcrossASweptKeyThatHasOneValueOnEachSide) {
  const auto put_execution = [this](const std::string& side, const std::string& execution) {
    std::string lines;
    for (const std::string size : {"small", "xl"}) {
      const Json axes{{"size", size}, {"execution", execution}, {"run.ranks", side == "a" ? 1 : 2}};
      Json record = compare::record_of({{"size", size}, {"execution", execution}}, {10, 11, 12}, axes);
      record["ranks"] = side == "a" ? 1 : 2;
      lines += record.dump() + "\n";
    }
    test::put_file(folder_.path() / side / "x" / "20261120T120000Z-0001" / "cases.jsonl", lines);
  };
  put_execution("a", "eager");
  put_execution("b", "graph");
  const SidesCompared sides = compared();
  EXPECT_EQ(sides.across, (std::set<std::string>{"execution", "run.ranks"}));
  ASSERT_EQ(sides.comparison.metrics.at(0).cases.size(), 2u);
  for (const auto& c : sides.comparison.metrics[0].cases)
    EXPECT_EQ(c.entries.at(1).kind, compare::Entry::Kind::compared) << c.entries[1].reason;
}

TEST_F(SideRuns, OfTheSameThingDifferInNothing) {
  put("a", {"small"}, {{"work", 10}});
  put("b", {"small"}, {{"work", 10}});
  EXPECT_TRUE(compared().across.empty());
}

TEST_F(SideRuns, TellWhatFailed) {
  put("a", {"small"}, {{"work", 10}});
  EXPECT_TRUE(failures_below(folder_.path() / "a").empty());
  Json failed = compare::record_of({}, {1, 2});
  failed["status"] = "crashed", failed["reason"] = "killed by SIGSEGV", failed["repeat"] = 2;
  test::put_file(folder_.path() / "b" / "x" / "20261120T120000Z-0001" / "cases.jsonl", failed.dump() + "\n");
  const auto lines = failures_below(folder_.path() / "b");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "case 1 (repeat 2): crashed: killed by SIGSEGV");
}

}  // namespace
}  // namespace assay::host::ab
