// What a shell, a daemon and a file's name may do to assay before it does anything; files that are imported again.
#include <sys/stat.h>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;

class CommandLineStart : public Sandbox {
 protected:
  CommandLineStart() : Sandbox(PLUGINS) {
    write_experiment({.plugin = "napping_work", .measure = "warmup = 0\nsteps = 2"});
  }
};

TEST_F(CommandLineStart, WithoutStandardDescriptors) {
  for (const char* closed : {"<&-", ">&- 2>&-", "<&- >&- 2>&-"}) {
    const std::string command = "cd '" + folder().string() +
                                "' && '" ASSAY_EXECUTABLE "' run x.toml --plugin-path '" PLUGINS "' --output out " +
                                closed + (std::string(closed) == "<&-" ? " >seen.txt 2>&1" : "");
    EXPECT_EQ(std::system(command.c_str()), 0) << closed;
  }
  EXPECT_EQ(run_folders().size(), 3u);
  for (const nlohmann::json& record : cases()) EXPECT_EQ(record["status"], "ok") << record;
}

TEST_F(CommandLineStart, ANameThatIsNotUtf8IsRefusedBeforeAnythingStarts) {
  const std::string name = "caf\xe9.toml";
  fs::copy_file(folder() / "x.toml", folder() / name);
  const RunResult result = run({"run", name, "--plugin-path", PLUGINS, "--output", "out"});
  EXPECT_EQ(result.exit.code, 2) << result.output;
  EXPECT_PRED2(contains, result.output, "'caf\\xE9.toml' is not UTF-8");
  EXPECT_FALSE(fs::exists(folder() / "out"));
}

TEST_F(CommandLineStart, NoContentIsImportedTwice) {
  const std::string text = R"({"results": [{"command": "a", "times": [0.1]}]})";
  std::ofstream(folder() / "a.json") << text;
  std::ofstream(folder() / "copy.json") << text;
  std::ofstream(folder() / "bad.json") << "{";
  const auto import = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "import");
    arguments.insert(arguments.end(), {"--output", "out"});
    return run(arguments);
  };
  const auto imported = [&] { return run_folders("hyperfine").size(); };
  // One that is wrong stops all of them: what is called again then doubles nothing.
  EXPECT_EQ(import({"a.json", "bad.json"}).exit.code, 2);
  EXPECT_FALSE(fs::exists(folder() / "out"));
  const RunResult thrice = import({"a.json", "copy.json", "a.json"});
  EXPECT_EQ(thrice.exit.code, 0) << thrice.output;
  EXPECT_PRED2(contains, thrice.output, "copy.json: nothing to do: ");
  EXPECT_EQ(imported(), 1u);
  EXPECT_EQ(import({"a.json", "--again"}).exit.code, 0);
  EXPECT_EQ(imported(), 2u);
  const std::vector<fs::path> both = run_folders("hyperfine");
  const RunResult compared = run({"compare", both[0].string(), both[1].string()});
  EXPECT_EQ(compared.exit.code, 0) << compared.output;
  EXPECT_PRED2(contains, compared.output, "were imported from one file");
  // An older measurement is not the latest.
  const fs::path latest = fs::read_symlink(folder() / "out/hyperfine/latest");
  EXPECT_EQ(import({"a.json", "--date", "2020-01-01"}).exit.code, 0);
  EXPECT_EQ(fs::read_symlink(folder() / "out/hyperfine/latest"), latest);
  // Another measurement is no copy.
  EXPECT_FALSE(contains(run({"history", "--results", "out"}).output, "copy")) << output();
  // A file that does not say when it was measured is not quoted.
  std::ofstream(folder() / "undated.json") << R"({"context": {"executable": "x"}, "benchmarks": [{"name": "a",
    "run_type": "iteration", "iterations": 1, "real_time": 1.0, "cpu_time": 1.0, "time_unit": "ns"}]})";
  EXPECT_FALSE(contains(import({"undated.json"}).output, "measured at")) << output();
  // What comes through a pipe can be read once.
  ASSERT_EQ(mkfifo((folder() / "pipe").c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(folder() / "pipe") << R"({"results": [{"command": "a", "times": [0.2]}]})"; });
  EXPECT_EQ(import({"pipe"}).exit.code, 0) << output();
  writer.join();
  EXPECT_EQ(imported(), 4u);
  EXPECT_EQ(import({"a.json", "--again", "--date", "2400-01-01"}).exit.code, 2) << "beyond what records hold";
  const RunResult exported = run({"export", "out", "--format", "openmetrics", "--output", "a.prom"});
  EXPECT_EQ(exported.exit.code, 0) << exported.output;
  EXPECT_PRED2(contains, text_of(folder() / "a.prom"), "assay_step_seconds{workload=\"hyperfine\"");
  EXPECT_PRED2(contains, run({"export", "out", "--format", "prometheus"}).output, "Prometheus reads openmetrics");
  EXPECT_PRED2(contains, run({"export", "out", "--format", "mlflow"}).output, "scripts/upload_run");
  EXPECT_PRED2(contains, run({"history", "out", "--results", "out"}).output, "give a folder as --results out");
}

}  // namespace
}  // namespace assay::test
