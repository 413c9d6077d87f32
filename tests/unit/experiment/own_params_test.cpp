#include "experiment/own_params.hpp"

#include <gtest/gtest.h>

#include "demo_workload.hpp"

namespace assay::host::experiment::test {
namespace {

plugin::WorkloadSchema open_schema() {
  auto schema = demo_schema();
  schema.is_open = true;
  plugin::ParamSpec command;
  command.name = "command", command.type = plugin::ParamType::text, command.words = true;
  command.default_value = std::string();
  schema.params.push_back(command);
  return schema;
}

ParseResult parse_open(const std::string& text, const std::vector<std::string>& set = {}) {
  auto schema = open_schema();
  const auto file = ExperimentFile::from_text(text, "x.toml", set);
  for (plugin::ParamSpec& own : file.own_params_of(schema)) schema.params.push_back(std::move(own));
  return file.finish(&schema);
}

TEST(OwnParams, HaveTheTypeOfTheirValues) {
  const auto result = parse_open(experiment_text("[sweep]\nrate = [1, 0.5]\nn = { min = 1, max = 4, factor = 2 }\n"
                                                 "[[sweep.zip]]\nkind = [\"a\", \"b\"]\nbig = [true, false]",
                                                 "depth = 3"),
                                 {"more=7"});
  ASSERT_TRUE(result.experiment) << lines(result).front();
  ASSERT_EQ(result.experiment->cases.size(), 12u);
  const Case& first = result.experiment->cases.front();
  EXPECT_EQ(first.params.at("rate"), Value(1.0));
  EXPECT_EQ(first.params.at("n"), Value(std::int64_t{1}));
  EXPECT_EQ(first.params.at("kind"), Value(std::string("a")));
  EXPECT_EQ(first.params.at("big"), Value(true));
  EXPECT_EQ(first.params.at("depth"), Value(std::int64_t{3}));
  EXPECT_EQ(first.params.at("more"), Value(std::int64_t{7}));
}

TEST(OwnParams, AreNoneOfAWorkloadWhoseTablesAreAll) {
  EXPECT_EQ(lines(parse(experiment_text("", "depth = 3"))).size(), 1u);
}

TEST(OwnParams, MayNotBeASlipNorAColumnOfEveryTable) {
  for (const char* name : {"batch_sizes", "status", "step.mean_ms"}) {
    const auto mistakes = lines(parse_open(experiment_text("", std::string("\"") + name + "\" = 3")));
    ASSERT_EQ(mistakes.size(), 1u) << name;
    EXPECT_NE(mistakes[0].find("parameter of your own has a name of letters"), std::string::npos) << mistakes[0];
  }
}

TEST(OwnParams, OneThatIsTwoThingsIsAMistake) {
  const auto mistakes = lines(parse_open(experiment_text("[sweep]\nkind = [\"a\", 1]")));
  ASSERT_EQ(mistakes.size(), 1u);
  EXPECT_NE(mistakes[0].find("[sweep] kind is 1; expected a string"), std::string::npos) << mistakes[0];
}

TEST(OwnParams, AnIntegerMayHaveTheValueOfOne) {
  const std::string sweep = "[sweep]\nbatch = [8, 32]";
  const auto result = parse_open(experiment_text(sweep, "batch_size = \"{batch}\""));
  ASSERT_TRUE(result.experiment) << lines(result).front();
  ASSERT_EQ(result.experiment->cases.size(), 2u);
  EXPECT_EQ(result.experiment->cases[1].params.at("batch_size"), Value(std::int64_t{32}));
  const auto again = parse_open(result.experiment->resolved_toml);
  ASSERT_TRUE(again.experiment) << lines(again).front();
  EXPECT_EQ(again.experiment->cases[1].params, result.experiment->cases[1].params);
  const auto refusal = [&](const std::string& values, const std::string& name) {
    const auto mistakes =
        lines(parse_open(experiment_text("[sweep]\nbatch = " + values, "batch_size = \"{" + name + "}\"")));
    return mistakes.size() == 1u ? mistakes[0] : "no mistake";
  };
  EXPECT_NE(refusal("[8]", "other").find("{other} is no parameter"), std::string::npos) << refusal("[8]", "other");
  EXPECT_NE(refusal("[-1]", "batch").find("the value of batch, is -1; expected"), std::string::npos)
      << refusal("[-1]", "batch");
  EXPECT_EQ(lines(parse(experiment_text("", "batch_size = \"{heads}\""))).size(), 1u) << "its table is all it has";
}

TEST(OwnParams, ColumnsThatOnlyAReportFillsAreKnown) {
  const auto result = parse_open(experiment_text("[output]\ncolumns = [\"status\", \"rank_loss\", \"step.mean_ms\"]"));
  ASSERT_TRUE(result.experiment) << lines(result).front();
  EXPECT_EQ(result.experiment->output.reported_columns, std::vector<std::string>{"rank_loss"});
}

TEST(Words, AnArrayOfStringsIsOneText) {
  const auto result = parse_open(experiment_text("", "command = [\"a b\", 'c\\\"', \"\", \"d\"]"));
  ASSERT_TRUE(result.experiment) << lines(result).front();
  EXPECT_EQ(result.experiment->cases.front().params.at("command"), Value(std::string(R"("a b" "c\\\"" "" d)")));
  EXPECT_EQ(lines(parse_open(experiment_text("", "command = [1]"))).size(), 1u);
}

}  // namespace
}  // namespace assay::host::experiment::test
