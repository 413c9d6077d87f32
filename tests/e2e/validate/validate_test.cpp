// What `assay validate` says and does beside its checks; and what the host makes of plugins that cannot be opened.
#include <sys/stat.h>

#include "e2e/support/sandbox.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <sstream>

namespace assay::test {
namespace {

namespace fs = std::filesystem;

std::string unfit(const std::string& rule) { return std::string(UNFIT_PLUGINS) + "/unfit_" + rule + ".so"; }

class Validate : public Sandbox {};

TEST_F(Validate, ShowsATableOfAtMost80Columns) {
  for (const char* rule : {"sound", "crashes_in_run"}) {
    const RunResult result = run({"validate", unfit(rule)});
    std::istringstream lines(result.output);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
  const RunResult result = run({"validate", unfit("crashes_in_run")});
  EXPECT_EQ(result.exit.code, 1);
  EXPECT_PRED2(contains, result.output, "  error      run.works            the process ends: signal 11");
  EXPECT_FALSE(contains(result.output, "  ok  ")) << result.output;
  const RunResult all = run({"validate", unfit("crashes_in_run"), "--all"});
  EXPECT_PRED2(contains, all.output, "  ok         file.readable        ");
  EXPECT_PRED2(contains, all.output, "  not asked  run.allocation       run.works comes first");
  EXPECT_PRED2(contains, result.output, ", 1 error, 0 warnings\n");
}

TEST_F(Validate, AsksNoMoreThanItsLevel) {
  const RunResult result = run({"validate", unfit("crashes_in_run"), "--level", "1"});
  EXPECT_EQ(result.exit.code, 0) << result.output;
  EXPECT_FALSE(contains(result.output, "run.works")) << result.output;
}

TEST_F(Validate, AsksInItsOwnProcessForADebugger) {
  const RunResult result = run({"validate", unfit("sound"), "--in-process"});
  EXPECT_EQ(result.exit.code, 0) << result.output;
  EXPECT_PRED2(contains, result.output, "0 errors, 0 warnings");
}

TEST_F(Validate, RefusesAWrongCommandLine) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong{
      {{"validate"}, "validate needs a plugin"},
      {{"validate", "nobody"}, "no plugin 'nobody'"},
      {{"validate", unfit("sound"), "--level", "4"}, "--level is 4; expected 1 to 3"},
      {{"validate", unfit("sound"), "--device", "tpu"}, "--device is 'tpu'"},
      {{"validate", unfit("sound"), "--timeout", "0"}, "--timeout is no number"},
      {{"validate", unfit("sound"), "--set", "nn=3"}, "nn"},
      {{"validate", unfit("sound"), "--set", "sweep.n=[1,2]"}, "with one case"},
      {{"validate", unfit("sound") + ":second"}, "has no workload 'second'; it has: unfit"},
  };
  for (const auto& [arguments, text] : wrong) {
    const RunResult result = run(arguments);
    EXPECT_EQ(result.exit.code, 2) << text << "\n" << result.output;
    EXPECT_PRED2(contains, result.output, text);
  }
}

TEST_F(Validate, SaysWhatItDoesNotAskAndWhy) {
  const RunResult result = run({"validate", unfit("sound"), "--device", "cuda"});
  EXPECT_EQ(result.exit.code, 0) << result.output;
  EXPECT_PRED2(contains, result.output, " checks            the workload does not run on the device 'cuda'\n");
}

TEST_F(Validate, FindsAFileThatIsNoLibrary) {
  std::ofstream(folder() / "text.so") << "no library\n";
  std::ofstream(folder() / "empty.so");
  ASSERT_EQ(mkfifo((folder() / "pipe.so").c_str(), 0600), 0);
  fs::copy_file(unfit("sound"), folder() / "short.so");
  fs::resize_file(folder() / "short.so", 3000);
  for (const char* name : {"text.so", "empty.so", "pipe.so"}) {
    const RunResult result = run({"validate", std::string("./") + name, "--level", "1"});
    EXPECT_EQ(result.exit.code, 1) << result.output;
    EXPECT_PRED2(contains, result.output, "  error      file.readable");
  }
  const RunResult result = run({"validate", "./short.so", "--level", "1"});
  EXPECT_EQ(result.exit.code, 1) << result.output;
  EXPECT_PRED2(contains, result.output, "  error      file.readable        its table of sections lies beyond its end");
}

// ---- plugins of the project itself: none has a finding ----

struct OwnPlugin {
  const char* name;
  std::vector<std::string> set;  // a case that is small
};
void PrintTo(const OwnPlugin& plugin, std::ostream* out) { *out << plugin.name; }

class OwnPlugins : public Sandbox, public testing::WithParamInterface<OwnPlugin> {};

TEST_P(OwnPlugins, HaveNoErrorAndNoWarning) {
  std::vector<std::string> arguments{"validate", GetParam().name};
  for (const std::string& value : GetParam().set) arguments.insert(arguments.end(), {"--set", value});
  const RunResult result = run(arguments);
  EXPECT_EQ(result.exit.code, 0) << result.output;
  EXPECT_PRED2(contains, result.output, " passed, 0 errors, 0 warnings\n");
}

const std::vector<std::string> small_decoder{"d_model=16",    "d_ff=32",      "layers=1",        "heads=2",
                                             "vocab_size=32", "batch_size=2", "context_length=8"};
const std::vector<std::string> two_stages{"d_model=16",    "d_ff=32",      "layers=2",        "heads=2",
                                          "vocab_size=32", "batch_size=2", "context_length=8"};
std::vector<std::string> with(std::vector<std::string> values, const std::vector<std::string>& more) {
  values.insert(values.end(), more.begin(), more.end());
  return values;
}

INSTANTIATE_TEST_SUITE_P(
    All, OwnPlugins,
    testing::Values(OwnPlugin{"all_reduce", {"size_bytes=4096"}},
                    OwnPlugin{"attention", {"batch_size=2", "heads=2", "seq=32", "head_dim=8"}},
                    OwnPlugin{"mixed_precision:accumulation", {"terms=50"}}, OwnPlugin{"mixed_precision:dtypes", {}},
                    OwnPlugin{"mixed_precision:speed_accuracy",
                              with(small_decoder, {"loss_steps=2", "reference_context=8"})},
                    OwnPlugin{"node_check", {"size=64", "repeats=1", "bytes=65536"}},
                    OwnPlugin{"decoder", small_decoder}, OwnPlugin{"moe", with(small_decoder, {"kv_heads=2"})},
                    OwnPlugin{"ddp", small_decoder}, OwnPlugin{"sharded_optimizer", small_decoder},
                    OwnPlugin{"fsdp", small_decoder}, OwnPlugin{"tensor_parallel", small_decoder},
                    OwnPlugin{"context_parallel", small_decoder}, OwnPlugin{"pipeline_parallel", two_stages},
                    OwnPlugin{"encoder_decoder",
                              {"d_model=16", "d_ff=32", "heads=2", "encoder_layers=1", "decoder_layers=1",
                               "sequence_length=8", "batch_size=2", "vocab_size=32", "num_samples=8", "workers=1"}}),
    [](const auto& info) {
      std::string name = info.param.name;
      std::replace(name.begin(), name.end(), ':', '_');
      return name;
    });

// ---- plugins that cannot be opened, and the host that goes on ----

class UnopenablePlugins : public Sandbox {
 protected:
  UnopenablePlugins() : Sandbox(UNFIT_PLUGINS) {}
};

TEST_F(UnopenablePlugins, AreALineOfTheListEach) {
  fs::create_directory(folder() / "plugins");
  const char* const rules[] = {"exits_in_constructor",
                               "aborts_in_constructor",
                               "crashes_in_constructor",
                               "many_params",
                               "null_choice",
                               "latin_help",
                               "sound"};
  for (const char* rule : rules) fs::copy_file(unfit(rule), folder() / "plugins" / (std::string(rule) + ".so"));
  fs::copy_file(unfit("sound"), folder() / "plugins/short.so");
  fs::resize_file(folder() / "plugins/short.so", 3000);
  const RunResult result = run({"list", "--plugin-path", "plugins"});
  EXPECT_EQ(result.exit.code, 0) << result.output;
  for (const char* text : {"exits_in_constructor.so: opening it, or reading its tables, ends the process: exit code 0",
                           "aborts_in_constructor.so: opening it, or reading its tables, ends the process: signal 6",
                           "many_params.so: workload 'unfit' counts 4000000000 parameters; expected at most 10000",
                           "null_choice.so: workload 'unfit': choice 1 of parameter 'mode' is NULL", "latin_help.so",
                           "short.so", "adds, and has one mistake"})
    EXPECT_PRED2(contains, result.output, text);
  const RunResult json = run({"list", "--json", "--plugin-path", "plugins"});
  EXPECT_EQ(json.exit.code, 0);
  const auto plugins = nlohmann::json::parse(json.output).at("plugins");
  EXPECT_EQ(std::count_if(plugins.begin(), plugins.end(), [](const auto& row) { return row.contains("problem"); }), 7);
}

TEST_F(UnopenablePlugins, AreAMistakeOfTheExperimentThatNamesThem) {
  for (const char* rule : {"exits_in_constructor", "aborts_in_constructor", "many_params", "null_choice"}) {
    const RunResult result = run_experiment({.plugin = std::string("unfit_") + rule});
    EXPECT_EQ(result.exit.code, 2) << rule << "\n" << result.output;
    EXPECT_PRED2(contains, result.output, std::string("unfit_") + rule + ".so: ");
    EXPECT_TRUE(run_folders().empty());
  }
}

}  // namespace
}  // namespace assay::test
