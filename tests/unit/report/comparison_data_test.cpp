#include "report/comparison_data.hpp"

#include <gtest/gtest.h>

namespace assay::host::report {
namespace {

using compare::Entry;

Json interval_of(const std::optional<double>& low, const std::optional<double>& high) {
  compare::Comparison comparison;
  comparison.sides = {{"A", "a", {}}, {"B", "b", {}}};
  comparison.side_facts.resize(2);
  Entry a, b;
  a.kind = Entry::Kind::baseline, a.value = 10;
  b.kind = Entry::Kind::compared, b.value = 12, b.ratio = 1.2, b.low = low, b.high = high, b.verdict = "cannot tell";
  comparison.metrics = {{"step", Direction::lower_is_better, {{"demo", {}, "ms", {a, b}}}}};
  const Json entry = comparison_json({comparison, ""}, {})["metrics"][0]["cases"][0]["sides"][1];
  return entry.contains("interval") ? entry["interval"] : Json("none");
}

TEST(ComparisonData, AnOpenEndIsNull) {
  EXPECT_EQ(interval_of(1.1, 1.341), (Json{1.1, 1.341}));
  EXPECT_EQ(interval_of({}, 1.341), (Json{nullptr, 1.341}));
  EXPECT_EQ(interval_of(1.1, {}), (Json{1.1, nullptr}));
  EXPECT_EQ(interval_of({}, {}), "none");
}

}  // namespace
}  // namespace assay::host::report
