#include "compare/side_facts.hpp"

#include "compare/report.hpp"
#include "noisy_records.hpp"

#include <gtest/gtest.h>

namespace assay::host::compare {
namespace {

Json executed(const std::string& execution, const std::string& size, const std::string& started = "") {
  Json record = record_of({{"execution", execution}, {"size", size}}, {10, 11, 12, 11, 10}, {{"size", size}});
  if (!started.empty()) record["started"] = started;
  return record;
}

std::vector<Side> eager_and_graph() {
  return {side_of(0, {run_of({executed("eager", "small", "2026-11-20T12:00:31Z"),
                              executed("eager", "large", "2026-11-20T11:59:01Z")})}),
          side_of(1, {run_of({executed("graph", "small"), executed("graph", "large")})})};
}

TEST(SideFacts, TellWhatTheSidesDoNotShare) {
  const std::vector<SideFacts> facts = facts_of(eager_and_graph(), {{"execution"}, false});
  ASSERT_EQ(facts.size(), 2u);
  EXPECT_EQ(facts[0].inputs, std::vector<std::string>{"execution=eager"});
  EXPECT_EQ(facts[1].inputs, std::vector<std::string>{"execution=graph"});
  EXPECT_EQ(facts[0].started, "2026-11-20T11:59:01Z");
  EXPECT_EQ(facts[1].started, "");
  EXPECT_EQ(facts[0].cases, 2u);
  // Without --across too: it is shown unasked.
  EXPECT_EQ(facts_of(eager_and_graph(), {})[1].inputs, std::vector<std::string>{"execution=graph"});
}

TEST(SideFacts, NothingOfWhatIsTheSame) {
  const std::vector<Side> sides{side_of(0, {run_of({executed("eager", "small"), executed("eager", "large")})}),
                                side_of(1, {run_of({executed("eager", "small")})})};
  for (const SideFacts& facts : facts_of(sides, {})) EXPECT_TRUE(facts.inputs.empty());
}

TEST(SideFacts, SeveralTimesOfACaseAreOne) {
  const std::vector<Side> sides{side_of(0, {run_of({executed("eager", "small"), executed("eager", "small")})})};
  EXPECT_EQ(facts_of(sides, {})[0].cases, 1u);
}

TEST(SideFacts, StandInTheReport) {
  ComparisonOptions options;
  options.rules.across = {"execution"};
  const Comparison comparison = compare_sides(eager_and_graph(), options);
  const std::string text = comparison_text(comparison, {}, 140);
  EXPECT_NE(text.find("execution=eager"), std::string::npos) << text;
  EXPECT_NE(text.find("execution=graph"), std::string::npos) << text;
  EXPECT_NE(text.find("2026-11-20T11:59 "), std::string::npos) << text;
  EXPECT_NE(text.find("nothing in the records, beside the inputs above"), std::string::npos) << text;
  const Json json = Json::parse(comparison_json(comparison, {}));
  EXPECT_EQ(json["sides"][1]["inputs"], Json::array({"execution=graph"}));
}

}  // namespace
}  // namespace assay::host::compare
