// The commands beside run, and what they refuse.
#include <fstream>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

class SanitizedCommands : public Sandbox {
 protected:
  SanitizedCommands() : Sandbox(BAD_PLUGINS) {}

  void expect_said(const std::vector<std::string>& arguments, int code, const std::vector<std::string>& parts) {
    const RunResult result = run(arguments);
    EXPECT_EQ(result.exit.code, code) << result.output;
    for (const std::string& part : parts) EXPECT_PRED2(contains, result.output, part);
  }
};

TEST_F(SanitizedCommands, List) {
  expect_said({"list", "--plugin-path", BAD_PLUGINS}, 0, {"bad_hangs", "struct_size 16", "Devices"});
  const RunResult result = run({"list", "--json", "--plugin-path", BAD_PLUGINS});
  EXPECT_EQ(result.exit.code, 0) << result.output;
  EXPECT_FALSE(nlohmann::json::parse(result.output, nullptr, false).is_discarded()) << result.output;
}

TEST_F(SanitizedCommands, Describe) {
  expect_said({"describe", EMPTY_PLUGIN}, 0, {"nothing, many times"});
  expect_said({"describe", "bad_nan_metric", "--plugin-path", BAD_PLUGINS}, 0, {"step_ms", "compute", "loss"});
  expect_said({"describe", "bad_null_table", "--plugin-path", BAD_PLUGINS}, 2, {"offers no workloads"});
  expect_said({"describe", "nobody"}, 2, {"no plugin 'nobody'"});
}

TEST_F(SanitizedCommands, HelpAndVersion) {
  expect_said({"--help"}, 0, {"Usage: assay COMMAND"});
  expect_said({"run", "--help"}, 0, {"--resume"});
  expect_said({"--version"}, 0, {"assay 1."});
  expect_said({"compar"}, 2, {"did you mean 'compare'?"});
  expect_said({"run"}, 2, {"assay:"});
}

TEST_F(SanitizedCommands, AWrongExperiment) {
  std::ofstream(folder() / "x.toml") << R"(schema = 2
name = "x"
descripton = ""
[workload]
plugin = "bad_sometimes_bad"
[workload.params]
bad_at = "three"
stepms = 1
[sweep]
i = { min = 1, max = 8, factor = 1 }
"measure.warmpu" = [1]
[[sweep.zip]]
bad_at = [1, 2]
step_ms = [1]
[measure]
warmup = -3
timeout = "soon"
until = { relative_error = 2 }
[run]
device = "abacus"
ranks = "some"
allow = ["tired"]
memory_limit = "much"
[output]
formats = ["xml"]
columns = ["step.maen_ms"]
[unknown]
key = 1
)";
  expect_said(run_arguments(), 2,
              {"x.toml:3:1: unknown key 'descripton'", "did you mean 'description'?", "bad_at is \"three\"",
               "warmup is -3", "\"abacus\"", "unknown table 'unknown'", "nothing was started"});
  std::ofstream(folder() / "x.toml") << "schema = 1\nname = ";
  expect_said(run_arguments(), 2, {"x.toml:2:"});
  EXPECT_FALSE(std::filesystem::exists(folder() / "out"));
}

TEST_F(SanitizedCommands, Compare) {
  const ExperimentText text{.plugin = EMPTY_PLUGIN, .name = "a", .sweep = "i = [0, 1]"};
  EXPECT_EQ(records_of(text).size(), 2u);
  const std::string a = run_folder().string();
  ExperimentText other = text;
  other.name = "b", other.measure = "warmup = 2\nsteps = 40";
  EXPECT_EQ(run_experiment(other).exit.code, 0);
  const std::string b = run_folder().string();
  for (const char* format : {"terminal", "markdown", "csv", "json"})
    expect_said({"compare", a, b, "--format", format, "--metric", "step,memory"}, 0, {"step"});
  expect_said({"compare", a, b, "--statistic", "median", "--across", "i"}, 0, {"Sides"});
  expect_said({"compare", a, "nowhere"}, 2, {"nowhere is not there"});
}

TEST_F(SanitizedCommands, NewPlugin) {
  expect_said({"new", "plugin", "mine"}, 0, {"mine"});
  EXPECT_TRUE(std::filesystem::exists(folder() / "mine/CMakeLists.txt"));
  expect_said({"new", "plugin", "trained", "--template", "train"}, 0, {"trained/model.hpp", "trained/trained.cpp"});
  expect_said({"new", "plugin", "other", "--template", "trian"}, 2, {"no template 'trian'", "did you mean 'train'?"});
}

}  // namespace
}  // namespace assay::test
