#include "experiment/parse.hpp"

#include "demo_workload.hpp"

#include <fstream>

namespace assay::host::experiment::test {
namespace {

TEST(Experiment, ReadsEverySetting) {
  const auto experiment = good(R"(
schema = 1
name = "all-of-it"
description = "every key"
[workload]
plugin = "./demo.so"
[workload.params]
size = "large"
lr = 1
checkpointing = true
[measure]
warmup = 2
until = { relative_error = 0.02, confidence = 0.99, min_steps = 20, max_steps = 50 }
sync = false
timeout = "1h30m"
[run]
device = "cpu"
ranks = "all"
bind = "cores"
stall_timeout = "0s"
wireup_timeout = 2.5
isolate = false
allow = ["ok", "oom", "timeout", "crashed", "unsupported", "wrong_result", "failed"]
seed = 7
threads = 3
memory_limit = "4GiB"
[output]
dir = "elsewhere"
formats = ["csv"]
columns = ["size", "parameters", "forward.mean_ms", "memory.any_moment.mib", "status"]
[profile]
nvtx = false
nsys = true
kernels = true
memory_snapshot = true
)");
  EXPECT_EQ(experiment.name, "all-of-it");
  EXPECT_EQ(experiment.description, "every key");
  EXPECT_EQ(experiment.plugin, "./demo.so");
  EXPECT_EQ(experiment.file, "x.toml");
  EXPECT_EQ(experiment.output.dir, "elsewhere");
  EXPECT_EQ(experiment.output.formats, std::vector<std::string>{"csv"});
  EXPECT_EQ(experiment.output.columns.size(), 5u);
  ASSERT_EQ(experiment.cases.size(), 1u);
  const Case& c = experiment.cases[0];
  EXPECT_EQ(c.params.at("lr"), Value(1.0));
  EXPECT_EQ(c.params.at("checkpointing"), Value(true));
  EXPECT_EQ(c.measure.warmup, 2);
  ASSERT_TRUE(c.measure.until.has_value());
  EXPECT_DOUBLE_EQ(c.measure.until->relative_error, 0.02);
  EXPECT_DOUBLE_EQ(c.measure.until->confidence, 0.99);
  EXPECT_EQ(c.measure.until->min_steps, 20);
  EXPECT_EQ(c.measure.until->max_steps, 50);
  EXPECT_FALSE(c.measure.sync);
  EXPECT_EQ(c.measure.timeout, std::chrono::minutes(90));
  EXPECT_EQ(c.run.device, "cpu");
  EXPECT_EQ(c.run.ranks, ranks_all);
  EXPECT_EQ(c.run.bind, "cores");
  EXPECT_EQ(c.run.stall_timeout.count(), 0) << "none";
  EXPECT_EQ(c.run.wireup_timeout, std::chrono::milliseconds(2500));
  EXPECT_FALSE(c.run.isolate);
  EXPECT_EQ(c.run.allow.size(), 7u);
  EXPECT_EQ(c.run.seed, 7u);
  EXPECT_EQ(c.run.threads, 3);
  EXPECT_EQ(c.run.memory_limit_bytes, std::uint64_t{4} << 30);
  EXPECT_FALSE(c.profile.nvtx);
  EXPECT_TRUE(c.profile.nsys);
  EXPECT_TRUE(c.profile.kernels);
  EXPECT_TRUE(c.profile.memory_snapshot);
}

TEST(Experiment, SettingsAreScalarsByDottedName) {
  const auto settings = good(experiment_text("[measure]\nsteps = 3\n")).cases.at(0).settings();
  EXPECT_EQ(settings.at("measure.steps"), Value(std::int64_t{3}));
  EXPECT_EQ(settings.at("measure.timeout"), Value(std::string("10m")));
  EXPECT_EQ(settings.at("run.ranks"), Value(std::string("auto")));
  EXPECT_EQ(settings.at("run.bind"), Value(std::string("none")));
  EXPECT_EQ(settings.at("run.stall_timeout"), Value(std::string("2m")));
  EXPECT_EQ(settings.at("run.wireup_timeout"), Value(std::string("1m")));
  EXPECT_EQ(settings.at("run.seed"), Value(std::int64_t{1234}));
  EXPECT_EQ(settings.count("run.memory_limit"), 0u) << "not set";
  EXPECT_EQ(settings.count("measure.until.confidence"), 0u) << "no stopping rule";
}

TEST(Experiment, FindLooksInAxesParametersAndSettings) {
  const auto c = good(experiment_text("[sweep]\nsize = [\"large\"]\n")).cases.at(0);
  EXPECT_EQ(c.find("size"), Value(std::string("large")));
  EXPECT_EQ(c.find("batch_size"), Value(std::int64_t{4}));
  EXPECT_EQ(c.find("run.device"), Value(std::string("auto")));
  EXPECT_EQ(c.find("nothing"), std::nullopt);
}

TEST(Experiment, ReportsAllMistakesInOnePassInTheFilesOrder) {
  const auto messages = lines(parse(R"(schema = 3
name = ""
[sweep]
batch_size = [1, "two", 0]
[workload]
plugin = "demo"
plguin = "demo"
[workload.params]
size = "huge"
[measure]
warmup = -3
stpes = 4
[output]
formats = ["xml", 3]
[profiles]
)"));
  const std::vector<std::string> starts{"x.toml:1:10: schema",
                                        "x.toml:2:8: name",
                                        "x.toml:4:18: [sweep] batch_size",
                                        "x.toml:4:25: [sweep] batch_size",
                                        "x.toml:7:1: unknown key 'plguin' in [workload]",
                                        "x.toml:9:8: [workload.params] size",
                                        "x.toml:11:10: [measure] warmup",
                                        "x.toml:12:1: unknown key 'stpes'",
                                        "x.toml:14:12: [output] formats has \"xml\"",
                                        "x.toml:14:19: [output] formats has 3",
                                        "x.toml:15:2: unknown table 'profiles'"};
  ASSERT_EQ(messages.size(), starts.size()) << testing::PrintToString(messages);
  for (std::size_t i = 0; i < starts.size(); ++i) EXPECT_TRUE(messages[i].starts_with(starts[i])) << messages[i];
}

TEST(Experiment, NamesItsPluginWhateverElseIsWrong) {
  const auto file = ExperimentFile::from_text("schema = 9\n[workload]\nplugin = \"decodr\"\nfoo = 1\n", "x.toml");
  EXPECT_EQ(file.plugin(), "decodr");
  EXPECT_EQ(file.plugin_mistake("no plugin").to_string(), "x.toml:3:10: no plugin");
  EXPECT_EQ(ExperimentFile::from_text("schema = 1\n[workload]\nplugin = 3\n", "x.toml").plugin(), std::nullopt);
  EXPECT_EQ(ExperimentFile::from_text("schema = ", "x.toml").plugin(), std::nullopt);
}

TEST(Experiment, WithoutASchemaReportsWhatNeedsNone) {
  const auto file = ExperimentFile::from_text(R"(schema = 1
name = "demo"
[workload]
plugin = "decodr"
[workload.params]
anything = 3
both = 1
[sweep]
unknown_here = [1, 2]
both = [1]
empty = []
"measure.warmup" = [-1]
"run.sed" = [1]
[[sweep.zip]]
a = [1, 2]
b = [1]
[output]
columns = ["whatever"]
[run]
allow = ["omo"]
)",
                                              "x.toml");
  const auto result = file.finish(nullptr, {}, {file.plugin_mistake("no plugin 'decodr'")});
  EXPECT_FALSE(result.experiment.has_value());
  const std::vector<std::string> starts{"x.toml:4:10: no plugin 'decodr'",
                                        "x.toml:10:1: 'both' in [sweep] also has a fixed value",
                                        "x.toml:11:9: [sweep] empty is an empty array",
                                        "x.toml:12:21: [sweep] measure.warmup is -1",
                                        "x.toml:13:1: unknown key 'run.sed' in [sweep]",
                                        "x.toml:16:5: [[sweep.zip]] b has 1 value and a has 2",
                                        "x.toml:20:10: [run] allow has \"omo\""};
  const auto messages = lines(result);
  ASSERT_EQ(messages.size(), starts.size()) << testing::PrintToString(messages);
  for (std::size_t i = 0; i < starts.size(); ++i) EXPECT_TRUE(messages[i].starts_with(starts[i])) << messages[i];
}

TEST(Experiment, WithoutASchemaIsNoExperimentEvenWhenNothingIsWrong) {
  const auto result = ExperimentFile::from_text(experiment_text(), "x.toml").finish(nullptr);
  EXPECT_FALSE(result.experiment.has_value());
  EXPECT_TRUE(result.mistakes.empty());
}

TEST(Experiment, RequiredParametersMayBeSweptOrSet) {
  const auto schema = schema_with_required_layers();
  const auto text = experiment_text();
  EXPECT_EQ(ExperimentFile::from_text(text, "x.toml").finish(&schema).mistakes.size(), 1u);
  EXPECT_TRUE(ExperimentFile::from_text(text, "x.toml", {"layers=2"}).finish(&schema).experiment.has_value());
  EXPECT_TRUE(
      ExperimentFile::from_text(text, "x.toml", {"sweep.layers=[1, 2]"}).finish(&schema).experiment.has_value());
  const auto zipped = experiment_text("[[sweep.zip]]\nlayers = [1, 2]\n");
  EXPECT_TRUE(ExperimentFile::from_text(zipped, "x.toml").finish(&schema).experiment.has_value());
}

TEST(Experiment, RefusesWhatIsNoFiniteNumberEvenWithoutARange) {
  auto schema = demo_schema();
  for (auto& spec : schema.params) spec.min.reset(), spec.max.reset();
  const auto finish = [&](const char* params) {
    return ExperimentFile::from_text(experiment_text("", params), "x.toml").finish(&schema);
  };
  EXPECT_EQ(lines(finish("lr = -inf")),
            std::vector<std::string>{"x.toml:6:6: [workload.params] lr is -inf; expected a number (default 0.001)"});
  EXPECT_EQ(lines(finish("lr = nan")),
            std::vector<std::string>{"x.toml:6:6: [workload.params] lr is nan; expected a number (default 0.001)"});
}

TEST(Experiment, AnUnreadableFileIsAMistake) {
  const auto schema = demo_schema();
  const auto absent = ExperimentFile::read("no/such/file.toml").finish(&schema);
  ASSERT_EQ(absent.mistakes.size(), 1u);
  EXPECT_EQ(absent.mistakes[0].to_string(),
            "no/such/file.toml: cannot be read: No such file or directory; expected an experiment file (TOML)");
  const auto folder = ExperimentFile::read(testing::TempDir()).finish(&schema);
  ASSERT_EQ(folder.mistakes.size(), 1u);
  EXPECT_NE(folder.mistakes[0].text.find("cannot be read: Is a directory"), std::string::npos)
      << folder.mistakes[0].text;
}

TEST(Experiment, InputPathsAreRelativeToTheFile) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "assay_experiment_inputs";
  fs::create_directories(folder / "data");
  std::ofstream(folder / "data" / "w.safetensors") << "x";
  std::ofstream(folder / "x.toml") << experiment_text("", "weights = \"data/../data/w.safetensors\"");
  const auto schema = demo_schema();
  const auto result = ExperimentFile::read(folder / "x.toml").finish(&schema, {"weights=data/w.safetensors"});
  ASSERT_TRUE(result.experiment.has_value()) << testing::PrintToString(lines(result));
  EXPECT_EQ(result.experiment->cases.at(0).params.at("weights"), Value((folder / "data/w.safetensors").string()));
  fs::remove(folder / "data" / "w.safetensors");
  const auto missing = ExperimentFile::read(folder / "x.toml").finish(&schema);
  ASSERT_EQ(missing.mistakes.size(), 1u);
  EXPECT_EQ(missing.mistakes[0].line, 6);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace assay::host::experiment::test
