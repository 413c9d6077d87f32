#include "compare/ends.hpp"

#include "compare/report.hpp"
#include "noisy_records.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace assay::host::compare {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(Ends, NoRatioReachesNothingAndInfinity) {
  EXPECT_FALSE(ends_of(1.0, 0.0, 1.341).low);
  EXPECT_EQ(ends_of(1.0, 0.0, 1.341).high, 1.341);
  EXPECT_FALSE(ends_of(1.0, 0.9, infinity).high);
  EXPECT_EQ(ends_of(1.0, 0.9, std::nullopt).low, 0.9);
  EXPECT_FALSE(ends_of(1.0, 0.0, infinity).low || ends_of(1.0, 0.0, infinity).high);
}

TEST(Ends, FarFromTheRatioAreOpen) {
  const Ends both = ends_of(0.5, 3.652e-36, 7.09e34);
  EXPECT_FALSE(both.low || both.high);
  EXPECT_EQ(ends_text(ends_of(1.0, 0.8, 1001.0)), "0.8000 .. ?");
  EXPECT_EQ(ends_text(ends_of(1.0, 0.8, 999.0)), "0.8000 .. 999.0");
  EXPECT_EQ(ends_text(ends_of(5000.0, 4900.0, 5100.0)), "4900 .. 5100") << "a ratio that is large itself";
  EXPECT_EQ(ends_text(ends_of(1e9, 1e9, 1e9)), "exact");
}

TEST(Ends, AreSpelt) {
  EXPECT_EQ(ends_text({0.98, 1.01}), "0.9800 .. 1.010");
  EXPECT_EQ(ends_text({std::nullopt, 1.341}), "? .. 1.341");
  EXPECT_EQ(ends_text({0.9, std::nullopt}), "0.9000 .. ?");
  EXPECT_EQ(ends_text({1.5, 1.5}), "exact");
  EXPECT_EQ(ends_text({}), "");
}

// Others computed on B's GPU, and how much that took nobody knows: B alone may be faster by any factor.
TEST(Ends, OfAComparisonAreOpenInAllForms) {
  NoisyRuns machine(5);
  const auto record = [&machine](double time_ms) {
    Json record = record_of({}, machine.steps(time_ms, 50, {0, 0.005, 0, 0}));
    record["device"]["kind"] = "cuda";
    return record;
  };
  Json shared = record(120);
  shared["validity"] = {{"verdict", "contended"}, {"text", "others used the GPU"}};
  const Comparison comparison =
      compare_sides({side_of(0, {run_of({record(100)})}), side_of(1, {run_of({shared})})}, {});
  const Entry& b = comparison.metrics.at(0).cases.at(0).entries.at(1);
  EXPECT_FALSE(b.low);
  ASSERT_TRUE(b.high);
  EXPECT_NE(comparison_text(comparison, {}, 120).find(" ? .. "), std::string::npos);
  EXPECT_NE(comparison_markdown(comparison, {}, {}).find(" ? .. "), std::string::npos);
  const Json json = Json::parse(comparison_json(comparison, {}));
  const Json& side = json["metrics"][0]["cases"][0]["sides"][1];
  EXPECT_TRUE(side["low"].is_null()) << side;
  EXPECT_TRUE(side["high"].is_number()) << side;
  std::istringstream lines(comparison_csv(comparison, {}));
  std::string head, first, second;
  std::getline(lines, head), std::getline(lines, first), std::getline(lines, second);
  const auto cell = [](const std::string& line, std::size_t column) {
    std::istringstream cells(line);
    std::string text;
    for (std::size_t i = 0; i <= column; ++i) std::getline(cells, text, ',');
    return text;
  };
  std::size_t low = 0;
  while (cell(head, low) != "low") ASSERT_LT(++low, 40u) << head;
  EXPECT_EQ(cell(second, low), "") << second;
  EXPECT_NE(cell(second, low + 1), "") << second;
}

}  // namespace
}  // namespace assay::host::compare
