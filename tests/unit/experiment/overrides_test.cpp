#include "experiment/overrides.hpp"

#include "demo_workload.hpp"

namespace assay::host::experiment::test {
namespace {

using Axes = std::vector<std::string>;

const std::string swept =
    experiment_text("[sweep]\nsize = [\"small\", \"large\"]\nbatch_size = [1, 2]\n[measure]\nsteps = 7\n", "lr = 0.5");

Case only_case(const Experiment& experiment) {
  EXPECT_EQ(experiment.cases.size(), 1u);
  return experiment.cases.empty() ? Case{} : experiment.cases[0];
}

TEST(Set, ChangesParametersByEitherName) {
  for (const char* argument : {"context_length=64", "workload.params.context_length=64"})
    EXPECT_EQ(only_case(good(experiment_text(), {argument})).params.at("context_length"), Value(std::int64_t{64}));
}

TEST(Set, TakesTomlAndBareWords) {
  const auto experiment = good(
      experiment_text(), {"size=large", "lr=1e-3", "checkpointing=true", "run.device=cpu", "measure.timeout=90s",
                          "run.allow=[\"oom\"]", "name=other", "description='two words'", "run.memory_limit=1GiB"});
  const Case c = only_case(experiment);
  EXPECT_EQ(experiment.name, "other");
  EXPECT_EQ(experiment.description, "two words");
  EXPECT_EQ(c.params.at("size"), Value(std::string("large")));
  EXPECT_EQ(c.params.at("lr"), Value(0.001));
  EXPECT_EQ(c.params.at("checkpointing"), Value(true));
  EXPECT_EQ(c.run.device, "cpu");
  EXPECT_EQ(c.run.allow, std::vector<std::string>{"oom"});
  EXPECT_EQ(c.measure.timeout, std::chrono::seconds(90));
  EXPECT_EQ(c.run.memory_limit_bytes, std::uint64_t{1} << 30);
}

// What a shell has no quotes for: a text may look like a number.
TEST(Set, TakesAWordForATextWhateverItLooksLike) {
  plugin::WorkloadSchema schema = demo_schema();
  schema.params.push_back({});
  schema.params.back().name = "note", schema.params.back().type = plugin::ParamType::text;
  schema.params.back().default_value = std::string();
  for (const char* word : {"true", "12", "1e3", "plain"}) {
    const auto result =
        ExperimentFile::from_text(experiment_text(), "x.toml", {std::string("note=") + word}).finish(&schema);
    ASSERT_TRUE(result.experiment) << word;
    EXPECT_EQ(result.experiment->cases.at(0).params.at("note"), Value(std::string(word)));
  }
  EXPECT_FALSE(ExperimentFile::from_text(experiment_text(), "x.toml", {"batch_size=true"}).finish(&schema).experiment);
}

TEST(Set, OfSeveralValuesNamesTheAxis) {
  const auto mistakes = lines(parse(experiment_text(), {"size=[\"small\",\"large\"]"}));
  ASSERT_EQ(mistakes.size(), 1u);
  EXPECT_NE(mistakes[0].find("; several values are an axis: sweep.size=[...]"), std::string::npos) << mistakes[0];
}

TEST(Set, ReplacesASweptAxisByOneValue) {
  EXPECT_EQ(axes_of(good(swept, {"size=large"})), (Axes{"size=large batch_size=1", "size=large batch_size=2"}));
  EXPECT_EQ(axes_of(good(swept, {"size=medium", "batch_size=9"})), (Axes{"size=medium batch_size=9"}));
  const auto dotted = experiment_text("[sweep]\n\"measure.warmup\" = [0, 1]\n");
  EXPECT_EQ(axes_of(good(dotted, {"measure.warmup=3"})), (Axes{"measure.warmup=3"}));
}

TEST(Set, TakesAKeyOutOfItsZipGroup) {
  const auto zipped = experiment_text("[[sweep.zip]]\nd_model = [128, 512]\nheads = [4, 8]\n");
  EXPECT_EQ(axes_of(good(zipped, {"d_model=64"})), (Axes{"d_model=64 heads=4", "d_model=64 heads=8"}));
  EXPECT_EQ(axes_of(good(zipped, {"d_model=64", "heads=2"})), (Axes{"d_model=64 heads=2"}));
}

TEST(Set, MakesAndReplacesAxes) {
  EXPECT_EQ(axes_of(good(experiment_text(), {"sweep.size=[\"small\", \"large\"]"})),
            (Axes{"size=small", "size=large"}));
  EXPECT_EQ(axes_of(good(swept, {"sweep.size=[\"medium\"]", "batch_size=1"})), (Axes{"size=medium batch_size=1"}));
  EXPECT_EQ(axes_of(good(experiment_text("", "size = \"small\""), {"sweep.size=[\"large\"]"})), (Axes{"size=large"}))
      << "an axis takes the place of a fixed value";
  for (const char* argument : {"sweep.measure.warmup=[0, 1]", "sweep.\"measure.warmup\"=[0, 1]"})
    EXPECT_EQ(axes_of(good(experiment_text(), {argument})), (Axes{"measure.warmup=0", "measure.warmup=1"}));
  EXPECT_EQ(good(swept, {"sweep.exclude=[{size = \"small\"}]"}).cases.size(), 2u);
}

TEST(Set, LeavesExclusionsThatNoLongerApply) {
  const auto text = experiment_text("[sweep]\nsize = [\"small\", \"large\"]\n[[sweep.exclude]]\nsize = \"large\"\n");
  const auto experiment = good(text, {"size=medium"});
  EXPECT_EQ(axes_of(experiment), (Axes{"size=medium"}));
  EXPECT_EQ(axes_of(good(experiment.resolved_toml)), (Axes{"size=medium"}));
}

TEST(Set, StepsAndUntilReplaceEachOther) {
  const Case rule = only_case(good(swept, {"size=small", "batch_size=1", "measure.until={relative_error = 0.02}"}));
  ASSERT_TRUE(rule.measure.until.has_value());
  EXPECT_DOUBLE_EQ(rule.measure.until->relative_error, 0.02);
  const Case member = only_case(good(swept, {"size=small", "batch_size=1", "measure.until.min_steps=5"}));
  ASSERT_TRUE(member.measure.until.has_value());
  EXPECT_EQ(member.measure.until->min_steps, 5);
  const Case fixed = only_case(good(experiment_text("[measure]\nuntil = {}\n"), {"measure.steps=3"}));
  EXPECT_FALSE(fixed.measure.until.has_value());
  EXPECT_EQ(fixed.measure.steps, 3);
  const auto both = lines(parse(experiment_text(), {"measure.steps=3", "sweep.measure.until.min_steps=[3, 4]"}));
  ASSERT_EQ(both.size(), 1u) << testing::PrintToString(both);
  EXPECT_TRUE(both[0].starts_with("--set sweep.measure.until.min_steps=[3, 4]: [measure] has both")) << both[0];
}

TEST(Set, NamesThePluginAndCorrectsTheFile) {
  const auto file = ExperimentFile::from_text("schema = 1\nname = \"x\"\n", "x.toml", {"workload.plugin=./p.so"});
  EXPECT_EQ(file.plugin(), "./p.so");
  EXPECT_EQ(file.plugin_mistake("no such file").to_string(), "--set workload.plugin=./p.so: no such file");
  const auto schema = demo_schema();
  EXPECT_TRUE(file.finish(&schema).experiment.has_value());
  EXPECT_EQ(only_case(good(experiment_text("[measure]\nsteps = \"many\"\n"), {"measure.steps=3"})).measure.steps, 3);
}

TEST(Set, ReportsMistakesAfterTheFilesOwnInTheOrderOfTheArguments) {
  const auto messages = lines(parse(experiment_text("[measure]\nwarmup = -1\n"),
                                    {"batchsize=2", "novalue", "measure.steps=0", "size=huge", "lr=[1", "lr=2", "lr=3",
                                     "workload.params.lr=4", "measure.stpes=3", "mesure.steps=3", "=3"}));
  const std::vector<std::string> expected{
      "x.toml:8:10: [measure] warmup is -1; expected an integer >= 0 and <= 10000000 (default 5)",
      "--set batchsize=2: unknown key 'batchsize' in [workload.params]",
      "--set novalue: no key and value; expected key=value",
      "--set measure.steps=0: [measure] steps is 0; expected an integer >= 1 and <= 10000000 (default none)",
      "--set size=huge: [workload.params] size is \"huge\"; expected one of small, medium, large (default small)",
      "--set lr=[1: the value is not TOML: ",
      "--set lr=2: 'lr' is set a second time; expected each key once",
      "--set lr=3: 'lr' is set a second time; expected each key once",
      "--set workload.params.lr=4: 'lr' is set a second time; expected each key once",
      "--set measure.stpes=3: unknown key 'stpes' in [measure]",
      "--set mesure.steps=3: unknown key 'mesure.steps' in [workload.params]",
      "--set =3: no key and value; expected key=value"};
  ASSERT_EQ(messages.size(), expected.size()) << testing::PrintToString(messages);
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(messages[i].starts_with(expected[i])) << messages[i] << "\n" << expected[i];
  EXPECT_TRUE(messages[10].ends_with("; did you mean 'measure.steps'?")) << messages[10];
}

TEST(Set, RefusesASecondStatementInTheValue) {
  const auto messages = lines(parse(experiment_text(), {"batch_size=2\nname = \"other\""}));
  ASSERT_EQ(messages.size(), 1u) << testing::PrintToString(messages);
  EXPECT_NE(messages[0].find("the value is not TOML: more than one value"), std::string::npos) << messages[0];
}

TEST(PlainKey, DropsTheParametersPrefixAlone) {
  EXPECT_EQ(plain_key("workload.params.size"), "size");
  EXPECT_EQ(plain_key("size"), "size");
  EXPECT_EQ(plain_key("measure.steps"), "measure.steps");
  EXPECT_TRUE(is_layout_key("measure.anything"));
  EXPECT_TRUE(is_layout_key("name"));
  EXPECT_FALSE(is_layout_key("name.x"));
  EXPECT_FALSE(is_layout_key("size"));
}

}  // namespace
}  // namespace assay::host::experiment::test
