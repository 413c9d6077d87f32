// Files that a workload writes: their names stay in the run folder, and each case has its own.
#include "experiment/output_path.hpp"

#include "demo_workload.hpp"

namespace assay::host::experiment::test {
namespace {

plugin::WorkloadSchema schema_with_outputs() {
  auto schema = demo_schema();
  for (const char* name : {"dump", "trace"}) {
    plugin::ParamSpec spec;
    spec.name = name, spec.type = plugin::ParamType::text, spec.default_value = std::string();
    spec.output_path = true;
    schema.params.push_back(spec);
  }
  return schema;
}

ParseResult parse_outputs(const std::string& text, const std::vector<std::string>& set = {},
                          const std::vector<std::string>& filters = {}) {
  const auto schema = schema_with_outputs();
  return ExperimentFile::from_text(text, "x.toml", set).finish(&schema, filters);
}

TEST(OutputPath, WhatLeavesTheRunFolderIsAMistakeAtItsPlace) {
  const std::string expected =
      R"(; expected the name of a file below the run folder, as "x.bin" or "dumps/x.bin", or "" for none)";
  EXPECT_EQ(lines(parse_outputs(experiment_text("", "dump = \"../../x.st\""))),
            std::vector<std::string>{R"(x.toml:6:8: [workload.params] dump is "../../x.st", which leaves its folder)" +
                                     expected});
  EXPECT_EQ(
      lines(parse_outputs(experiment_text("[sweep]\ndump = [\"a.st\", \"/tmp/b.st\"]\n"))),
      std::vector<std::string>{R"(x.toml:8:17: [sweep] dump is "/tmp/b.st", which is an absolute path)" + expected});
  EXPECT_EQ(
      lines(parse_outputs(experiment_text(), {"dump=logs/x"})),
      std::vector<std::string>{
          R"(--set dump=logs/x: [workload.params] dump is "logs/x", which begins with logs, which is assay's own in a run folder)" +
          expected});
}

TEST(OutputPath, NamesOfTheHostAndNamesThatAreNoneAreRefused) {
  for (const char* name :
       {"cases.jsonl", "experiment.toml", "environment.json", "environments/x", "files", "files/a.so", "logs",
        "logs/case-0001.log", "table.csv", "table.md", "bench_cpu_0gpu_1.json", "batch/x", "kernels_case-0001.md",
        "memory_case-0001.pickle", "nsys_case-0001.nsys-rep", "ncu_case-0001.csv", "latest"})
    EXPECT_TRUE(problem_of_output(name)) << name;
  for (const char* name :
       {"/x", "a//b", "a/", "..", "a/../b", "a/..", ".", "./x", ".hidden", "a/.b", "x\n", "x.partial"})
    EXPECT_TRUE(problem_of_output(name)) << name;
  EXPECT_TRUE(problem_of_output(std::string(201, 'x')));
  for (const char* name : {"x", "x.safetensors", "dumps/x.st", "a/b/c", "my-cases.jsonl", "dumps/logs", "a..b", "x y"})
    EXPECT_EQ(problem_of_output(name), std::nullopt) << name;
}

TEST(OutputPath, ADefaultIsHeldToTheSame) {
  auto schema = schema_with_outputs();
  schema.params.back().default_value = std::string("../trace");
  const auto result = ExperimentFile::from_text(experiment_text(), "x.toml").finish(&schema);
  ASSERT_EQ(result.mistakes.size(), 1u);
  EXPECT_TRUE(result.mistakes[0].text.starts_with("the default of trace is \"../trace\", which leaves its folder"))
      << result.mistakes[0].text;
}

TEST(OutputPath, TwoParametersDoNotNameOneFile) {
  EXPECT_EQ(lines(parse_outputs(experiment_text("", "dump = \"a\"\ntrace = \"a\""))),
            std::vector<std::string>{"x.toml:7:9: 'trace' is \"a\", and 'dump' is \"a\": one is in the other's way; "
                                     "expected a file for each"});
  EXPECT_EQ(lines(parse_outputs(experiment_text("[sweep]\ntrace = [\"b\", \"a/b\"]\n", "dump = \"a\""))),
            std::vector<std::string>{"x.toml:8:1: 'trace' is \"a/b\", and 'dump' is \"a\": one is in the other's way; "
                                     "expected a file for each"});
  EXPECT_TRUE(parse_outputs(experiment_text("", "dump = \"a\"\ntrace = \"ab\"")).experiment.has_value());
}

TEST(OutputPath, TheNumberOfACaseStandsBeforeTheEnding) {
  EXPECT_EQ(own_output_name("x.safetensors", "case-0001"), "x.case-0001.safetensors");
  EXPECT_EQ(own_output_name("dumps/x.tar.gz", "case-0001.rank2"), "dumps/x.tar.case-0001.rank2.gz");
  EXPECT_EQ(own_output_name("v1.5/x", "case-0012"), "v1.5/x.case-0012");
}

TEST(OutputPath, OneOfSeveralCasesStaysOneWhateverIsFilteredOut) {
  const std::string sweep = "[sweep]\nbatch_size = [1, 2]\n";
  EXPECT_FALSE(parse_outputs(experiment_text()).experiment->cases.front().is_one_of_several);
  EXPECT_TRUE(parse_outputs(experiment_text(sweep)).experiment->cases.front().is_one_of_several);
  const auto filtered = parse_outputs(experiment_text(sweep), {}, {"batch_size=2"});
  ASSERT_EQ(filtered.experiment->cases.size(), 1u);
  EXPECT_TRUE(filtered.experiment->cases.front().is_one_of_several);
}

}  // namespace
}  // namespace assay::host::experiment::test
