// A choice stands for values of other parameters: what an experiment leaves out follows from it.
#include "demo_workload.hpp"

#include "experiment/hash.hpp"
#include "experiment/presets.hpp"

namespace assay::host::experiment::test {
namespace {

ParseResult parse_with_presets(const std::string& text, const std::vector<std::string>& set = {},
                               const std::vector<std::string>& filters = {}) {
  const auto schema = schema_with_presets();
  return ExperimentFile::from_text(text, "x.toml", set).finish(&schema, filters);
}

Experiment sound(const ParseResult& result) {
  EXPECT_TRUE(result.mistakes.empty());
  return result.experiment.value_or(Experiment{});
}

Value param(const Case& c, const char* name) { return c.params.at(name); }

TEST(Presets, FillWhatTheExperimentLeavesOut) {
  const auto e = sound(parse_with_presets(experiment_text("[sweep]\nsize = [\"small\", \"medium\", \"large\"]\n")));
  ASSERT_EQ(e.cases.size(), 3u);
  EXPECT_EQ(param(e.cases[0], "d_model"), Value(std::int64_t{768}));
  EXPECT_EQ(param(e.cases[0], "heads"), Value(std::int64_t{12}));
  EXPECT_EQ(param(e.cases[1], "d_model"), Value(std::int64_t{0})) << "medium has no preset here";
  EXPECT_EQ(param(e.cases[2], "d_model"), Value(std::int64_t{1280}));
}

TEST(Presets, GiveWayToWhatIsWritten) {
  const auto e = sound(parse_with_presets(experiment_text("", "heads = 6\n")));
  EXPECT_EQ(param(e.cases[0], "heads"), Value(std::int64_t{6}));
  EXPECT_EQ(param(e.cases[0], "d_model"), Value(std::int64_t{768}));
}

TEST(Presets, GiveWayToADefaultThatIsWritten) {
  const auto in_file = sound(parse_with_presets(experiment_text("", "heads = 0\n")));
  EXPECT_EQ(param(in_file.cases[0], "heads"), Value(std::int64_t{0}));
  EXPECT_EQ(param(in_file.cases[0], "d_model"), Value(std::int64_t{768}));
  const auto by_set = sound(parse_with_presets(experiment_text(), {"heads=0"}));
  EXPECT_EQ(param(by_set.cases[0], "heads"), Value(std::int64_t{0}));
  const auto swept = sound(parse_with_presets(experiment_text("[sweep]\nheads = [0, 12]\n")));
  ASSERT_EQ(swept.cases.size(), 2u);
  EXPECT_EQ(param(swept.cases[0], "heads"), Value(std::int64_t{0})) << "as on its axis, not the same case twice";
  EXPECT_EQ(param(swept.cases[1], "heads"), Value(std::int64_t{12}));
  // A file that a run has left says the same.
  EXPECT_NE(in_file.resolved_toml.find("heads = 0"), std::string::npos) << in_file.resolved_toml;
  EXPECT_EQ(sound(parse_with_presets(in_file.resolved_toml)).cases[0].params, in_file.cases[0].params);
  // A preset for a kind of device comes later, when a case is planned.
  auto schema = schema_with_presets();
  schema.presets.push_back({"size", "small", "", "", "cuda", "batch_size", std::int64_t{64}});
  const auto result = ExperimentFile::from_text(experiment_text("", "batch_size = 4\n"), "x.toml", {}).finish(&schema);
  Case written = result.experiment.value().cases.at(0);
  apply_presets(schema, "cuda", written);
  EXPECT_EQ(param(written, "batch_size"), Value(std::int64_t{4}));
}

TEST(Presets, CanBeFilteredAndExcludedBy) {
  const std::string sweep = "[sweep]\nsize = [\"small\", \"large\"]\n";
  const auto filtered = sound(parse_with_presets(experiment_text(sweep), {}, {"d_model=1280"}));
  ASSERT_EQ(filtered.cases.size(), 1u);
  EXPECT_EQ(filtered.cases[0].index, 1);
  const auto excluded = sound(parse_with_presets(experiment_text(sweep + "[[sweep.exclude]]\nheads = 12\n")));
  ASSERT_EQ(excluded.cases.size(), 1u);
  EXPECT_EQ(param(excluded.cases[0], "heads"), Value(std::int64_t{20}));
}

TEST(Presets, OfADeviceWaitUntilItIsKnown) {
  const auto e = sound(parse_with_presets(experiment_text()));
  EXPECT_EQ(param(e.cases[0], "amp"), Value(std::string("auto")));
  Case on_gpu = e.cases[0], on_cpu = e.cases[0], chosen = e.cases[0];
  const auto schema = schema_with_presets();
  apply_presets(schema, "cuda", on_gpu);
  apply_presets(schema, "cpu", on_cpu);
  EXPECT_EQ(param(on_gpu, "amp"), Value(std::string("fp16")));
  EXPECT_EQ(param(on_cpu, "amp"), Value(std::string("off")));
  chosen.params["amp"] = std::string("fp16");
  apply_presets(schema, "cpu", chosen);
  EXPECT_EQ(param(chosen, "amp"), Value(std::string("fp16")));
}

TEST(Presets, WithAFurtherConditionCountWhereBothHold) {
  auto schema = schema_with_presets();
  for (plugin::PresetSpec& preset : schema.presets)
    if (preset.when == "size") preset.also_when = "amp", preset.also_choice = "fp16";
  Case c = sound(parse_with_presets(experiment_text("", "size = \"medium\"\n"))).cases[0];
  c.params["size"] = std::string("large");
  apply_presets(schema, "", c);
  EXPECT_EQ(param(c, "d_model"), Value(std::int64_t{0}));
  c.params["amp"] = std::string("fp16");
  apply_presets(schema, "", c);
  EXPECT_EQ(param(c, "d_model"), Value(std::int64_t{1280}));
}

// So that --set size=large on a resolved file has the dimensions of large.
TEST(Presets, AreLeftOutOfTheResolvedFile) {
  const auto first = sound(parse_with_presets(experiment_text("", "heads = 6\n")));
  EXPECT_EQ(first.resolved_toml.find("d_model"), std::string::npos);
  EXPECT_NE(first.resolved_toml.find("heads = 6"), std::string::npos);
  const auto again = sound(parse_with_presets(first.resolved_toml));
  EXPECT_EQ(again.cases[0].params, first.cases[0].params);
  EXPECT_EQ(again.resolved_toml, first.resolved_toml);
  const auto large = sound(parse_with_presets(first.resolved_toml, {"size=large"}));
  EXPECT_EQ(param(large.cases[0], "d_model"), Value(std::int64_t{1280}));
}

TEST(ColdStart, IsRefusedWhereTheWorkloadAlwaysPrepares) {
  const std::string cold = "[measure]\nprepare = false\n", swept = "[sweep]\n\"measure.prepare\" = [true, false]\n";
  for (const std::string& text : {cold, swept}) {
    auto schema = demo_schema();
    EXPECT_TRUE(ExperimentFile::from_text(experiment_text(text), "x.toml", {}).finish(&schema).mistakes.empty());
    schema.starts_cold = false;
    const auto result = ExperimentFile::from_text(experiment_text(text), "x.toml", {}).finish(&schema);
    ASSERT_EQ(result.mistakes.size(), 1u) << text;
    EXPECT_NE(result.mistakes[0].text.find("workload demo always prepares its steps in set-up"), std::string::npos);
    EXPECT_GT(result.mistakes[0].line, 6);
  }
}

TEST(ColdStart, CountsInTheIdentityOfACaseOnlyWhereItIsAskedFor) {
  const auto schema = demo_schema();
  const auto hash_of = [&](const std::string& rest) {
    const auto result = ExperimentFile::from_text(experiment_text(rest), "x.toml", {}).finish(&schema);
    return case_hash(result.experiment.value().cases.at(0), "demo", {});
  };
  EXPECT_EQ(hash_of(""), hash_of("[measure]\nprepare = true\n"));
  EXPECT_NE(hash_of(""), hash_of("[measure]\nprepare = false\n"));
}

}  // namespace
}  // namespace assay::host::experiment::test
