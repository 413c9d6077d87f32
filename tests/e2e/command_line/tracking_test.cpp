// What goes beyond one run: results of other programs taken in, a history of runs, cleaning up, and what shells
// complete.
#include <fstream>
#include <string>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Tracking : public Sandbox {
 protected:
  Tracking() : Sandbox(PLUGINS) { set_variable("ASSAY_CACHE_DIR", (folder() / "cache").string()); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder() / name) << text; }
  // A file of hyperfine whose runs took about so many seconds.
  void write_times(const std::string& name, double s) const {
    json times = json::array();
    for (int i = 0; i < 10; ++i) times.push_back(s * (1 + 0.001 * (i % 3)));
    write(name, json{{"results", {{{"command", "sort x"}, {"times", times}}}}}.dump());
  }
  RunResult good(const std::vector<std::string>& arguments) const {
    RunResult result = run(arguments);
    EXPECT_EQ(result.exit.code, 0) << result.output;
    return result;
  }
};

TEST_F(Tracking, ImportedRunsAreComparedAndFollowed) {
  for (int day = 1; day <= 9; ++day) {
    const std::string file = "sort" + std::to_string(day) + ".json";
    write_times(file, day < 5 ? 0.2 : 0.22);
    good({"import", file, "--date", "2026-11-0" + std::to_string(day), "--host", "node1", "--revision",
          std::string(40, day < 5 ? 'a' : 'b')});
  }
  const RunResult table = good({"table", "results/hyperfine"});
  EXPECT_PRED2(contains, table.output, "220.2");
  const RunResult compared = good({"compare", "results/hyperfine", "--states", "0"});
  EXPECT_PRED2(contains, compared.output, "slower");
  const RunResult history = good({"history", "hyperfine"});
  EXPECT_PRED2(contains, history.output, "10.0% slower since 2026-11-05");
  EXPECT_PRED2(contains, history.output, "revision aaaaaaaaaa -> bbbbbbbbbb");
  EXPECT_TRUE(fs::exists(folder() / "cache/history.sqlite"));
  const std::string told = good({"history", "--json"}).output;
  good({"clean", "caches", "--yes"});
  EXPECT_FALSE(fs::exists(folder() / "cache/history.sqlite"));
  EXPECT_EQ(good({"history", "--json"}).output, told) << "rebuilt";
}

TEST_F(Tracking, WhatCannotBeImportedIsSaidAndLeavesNothing) {
  write("hello.txt", "hello");
  const RunResult refused = run({"import", "hello.txt"});
  EXPECT_EQ(refused.exit.code, 2);
  EXPECT_PRED2(contains, refused.output,
               "hello.txt: its format was not recognised; name it with --format, as one of nccl-tests");
  EXPECT_EQ(run({"import", "hello.txt", "--format", "nvbench"}).exit.code, 2);
  EXPECT_NE(run({"import", "nowhere.json"}).exit.code, 0);
  write("a\nname.txt", "hello");
  EXPECT_PRED2(contains, run({"import", "a\nname.txt"}).output, "a name.txt: its format was not recognised")
      << "in one line";
  EXPECT_FALSE(fs::exists(folder() / "results"));
}

TEST_F(Tracking, HistorySaysWhatThereIs) {
  EXPECT_PRED2(contains, run({"history"}).output, "results is no folder");
  write_times("sort.json", 0.2);
  good({"import", "sort.json"});
  const RunResult unknown = run({"history", "hyperfin"});
  EXPECT_EQ(unknown.exit.code, 2);
  EXPECT_PRED2(contains, unknown.output, "did you mean 'hyperfine'?");
  EXPECT_PRED2(contains, run({"history", "--metric", "steep"}).output,
               "no record has 'steep'; did you mean 'step'? There are ");
  EXPECT_PRED2(contains, run({"history", "--since", "soon"}).output, "--since is 'soon'; expected a day");
}

TEST_F(Tracking, CleaningIsDryUnlessAskedFor) {
  fs::create_directories(folder() / "results/x/run1/files");
  write("results/x/run1/cases.jsonl", "{}\n");
  write("results/x/run1/files/libx.so", std::string(300'000, 'l'));
  const RunResult dry = good({"clean"});
  EXPECT_PRED2(contains, dry.output, "0.3 MiB");
  EXPECT_PRED2(contains, dry.output, "nothing is removed without --yes");
  EXPECT_TRUE(fs::exists(folder() / "results/x/run1/files/libx.so"));
  EXPECT_PRED2(contains, good({"clean", "runs", "--yes"}).output, "removed: 0.3 MiB");
  EXPECT_FALSE(fs::exists(folder() / "results/x/run1/files"));
  EXPECT_TRUE(fs::exists(folder() / "results/x/run1/cases.jsonl"));
  EXPECT_PRED2(contains, run({"clean", "cache"}).output, "did you mean 'caches'?");
}

// What bash would offer after these words, of which the last one is at hand.
TEST_F(Tracking, ShellsCompleteCommandsAndOptions) {
  write("assay.bash", good({"completion", "bash"}).output);
  write("here.toml", "");
  const auto offered = [this](const std::string& words) {
    write("ask.bash", "source ./assay.bash\ncompopt() { :; }\nCOMP_WORDS=(" + words +
                          ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_assay\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
    const std::string command = "cd '" + folder().string() + "' && bash ask.bash > offered.txt 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return text_of(folder() / "offered.txt");
  };
  EXPECT_EQ(offered("assay des"), "describe\ndescribe-device\n");
  EXPECT_EQ(offered("assay run --res"), "--resume\n");
  EXPECT_EQ(offered("assay run here"), "here.toml\n");
  EXPECT_EQ(offered("assay run --output here"), "here.toml\n") << "its value";
  EXPECT_EQ(offered("assay history --met"), "--metric\n");
  const std::string fish = good({"completion", "fish"}).output;
  EXPECT_PRED2(contains, fish, "complete -c assay -n '__fish_seen_subcommand_from history' -l metric -r -d ");
  EXPECT_PRED2(contains, good({"completion", "zsh"}).output, "'*--yes[remove what is listed]'");
  EXPECT_PRED2(contains, run({"completion", "bsh"}).output, "did you mean 'bash'?");
  EXPECT_EQ(run({"completion"}).exit.code, 2);
}

}  // namespace
}  // namespace assay::test
