// Findings in tables that no plugin over assay/plugin.hpp compiles with.
#include "validate/table_checks.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace assay::host::validate {
namespace {

plugin::PluginTables sound() {
  plugin::PluginTables tables{"org.x", "1.0", "a test", 1, 3, 0, {}};
  plugin::WorkloadSchema w;
  w.id = "w", w.summary = "what it is";
  w.params.push_back(
      {"n", "tokens", "how many", plugin::ParamType::integer, std::int64_t{4}, false, 1.0, 8.0, {}, false, false});
  w.params.push_back(
      {"mode", "", "which", plugin::ParamType::text, std::string("a"), false, {}, {}, {"a", "b"}, false, false});
  w.metrics.push_back({"loss", "nats", "of the step", Direction::lower_is_better, true, {}});
  w.phases = {"forward"};
  tables.workloads = {w};
  return tables;
}

Answer answer_to(Check check, const std::function<void(plugin::WorkloadSchema&)>& change) {
  plugin::PluginTables tables = sound();
  change(tables.workloads[0]);
  Answers answers;
  check_tables(tables, answers);
  return answers.of(check);
}

TEST(TableChecks, FindNothingInSoundTables) {
  Answers answers;
  check_tables(sound(), answers);
  EXPECT_FALSE(answers.has_findings());
  EXPECT_EQ(answers.of(Check::tables_values).state, State::passed);
}

TEST(TableChecks, FindEachMistakeByItsCheck) {
  using Schema = plugin::WorkloadSchema;
  const std::vector<std::tuple<Check, std::string, std::function<void(Schema&)>>> mistakes{
      {Check::tables_names, "w: the parameter 'status' has the name of a column that every table has",
       [](Schema& w) { w.params[0].name = "status"; }},
      {Check::tables_names, "w: the parameter 'measure.steps' has the name of a column that every table has",
       [](Schema& w) { w.params[0].name = "measure.steps"; }},
      {Check::tables_names, "w: the metric 'status' has the name of a column that every table has",
       [](Schema& w) { w.metrics[0].name = "status"; }},
      {Check::tables_names, "W: the workload's id has capitals", [](Schema& w) { w.id = "W"; }},
      {Check::tables_names, "w: the phase 'straggler' has a name of the host's",
       [](Schema& w) { w.phases[0] = "straggler"; }},
      {Check::tables_text, "w: a text of the summary has control characters",
       [](Schema& w) { w.summary = "two\nlines"; }},
      {Check::tables_values, "w: the default of the parameter 'n' is 9, outside its range",
       [](Schema& w) { w.params[0].default_value = std::int64_t{9}; }},
      {Check::tables_values, "w: the parameter 'n' is a path, and no string",
       [](Schema& w) { w.params[0].input_path = true; }},
      {Check::tables_values, "w: the metric 'loss' has direction 4",
       [](Schema& w) { w.metrics[0].direction = static_cast<Direction>(4); }},
      {Check::tables_choices, "w: the default of the parameter 'mode' is \"c\", which is not one of its choices",
       [](Schema& w) { w.params[1].default_value = std::string("c"); }},
      {Check::tables_choices, "w: the parameter 'mode' has a choice twice",
       [](Schema& w) { w.params[1].choices.push_back("a"); }},
      {Check::tables_choices, "w: the parameter 'n' has choices, and is no string",
       [](Schema& w) { w.params[0].choices = {"4"}; }},
      {Check::tables_units, "w: the unit of the parameter 'n' is \" ms\"", [](Schema& w) { w.params[0].unit = " ms"; }},
      {Check::tables_help, "w: the metric 'loss' has no help", [](Schema& w) { w.metrics[0].help = ""; }},
      {Check::tables_help, "w: the workload has no summary", [](Schema& w) { w.summary = ""; }},
  };
  for (const auto& [check, text, change] : mistakes) {
    const Answer answer = answer_to(check, change);
    EXPECT_EQ(answer.state, State::found) << text;
    EXPECT_EQ(answer.text, text);
  }
}

TEST(TableChecks, ARequiredParameterHasNoDefaultToBeWrong) {
  EXPECT_EQ(answer_to(Check::tables_values,
                      [](plugin::WorkloadSchema& w) {
                        w.params[0].default_value = std::int64_t{0}, w.params[0].required = true;
                      })
                .state,
            State::passed);
}

}  // namespace
}  // namespace assay::host::validate
