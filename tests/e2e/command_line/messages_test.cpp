// Wrong command lines, and runs that are none: what a message names, and what it asks for.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;

class Messages : public Sandbox {
 protected:
  Messages() : Sandbox(PLUGINS) {
    write_experiment({.plugin = "napping_work", .measure = "warmup = 0\nsteps = 2", .sweep = "heads = [1, 2]"});
    fs::create_directories(folder() / "dir");
    fs::create_directories(folder() / "unfinished");
    std::ofstream(folder() / "unfinished/cases.jsonl");
    std::ofstream(folder() / "file.txt") << "hello\n";
  }
  // The folder of a run with two cases.
  std::string a_run() {
    const RunResult result = run(run_arguments());
    EXPECT_EQ(result.exit.code, 0) << result.output;
    return run_folder().string();
  }
  void refused(const std::vector<std::string>& arguments, const std::vector<std::string>& parts) {
    const RunResult result = run(arguments);
    EXPECT_EQ(result.exit.code, 2) << result.output;
    for (const std::string& part : parts) EXPECT_PRED2(contains, result.output, part) << arguments.front();
  }
};

TEST_F(Messages, OptionsNameThemselvesAndWhatTheyTake) {
  refused({"compare", "a", "b", "--metric"}, {"--metric needs a value, and none follows; see 'assay compare --help'"});
  refused({"compare", "a", "b", "--metric="}, {"--metric needs a value, and none stands behind '='"});
  refused({"compare", "a", "b", "-metric", "step"}, {"unknown option '-metric'; did you mean '--metric'?"});
  refused({"compare", "a", "b", "--metrics", "step"}, {"unknown option '--metrics'; did you mean '--metric'?"});
  refused({"compare", "a", "b", "--threshold", "x"}, {"--threshold is 'x'; expected a number"});
  refused({"compare", "a", "b", "--threshold", "1", "--threshold", "2"},
          {"--threshold is given more than once; expected one value"});
  refused({"compare", "a", "b", "--json=yes"}, {"--json takes no value; expected --json alone"});
  refused({"compare", "a", "b", "--by", "-m"}, {"--by needs a value, and -m stands in its place"});
  refused({"time", "--runs", "1.5", "--", "true"}, {"--runs is '1.5'; expected a whole number"});
  refused({"time", "--runs", "99999999999999999999", "--", "true"},
          {"'99999999999999999999'; expected a whole number"});
  refused({"time", "--runs", "--", "true"}, {"--runs needs a value, and -- stands in its place"});
  refused({"plan", "x.toml", "y.toml"}, {"'y.toml' is one argument too many; expected: assay plan EXPERIMENT.toml"});
  refused({"list", "decoder"}, {"'decoder' is one argument too many; expected: assay list"});
  refused({"list", "--argument", "decoder"}, {"unknown option '--argument'"});
  EXPECT_EQ(run({"plan", "x.toml", "y.toml", "--help"}).exit.code, 0);
  EXPECT_EQ(run({"time", "--runs", "1", "--warmup", "0", "--output", "timed", "--", "true", "-runs"}).exit.code, 0)
      << "of the program";
}

TEST_F(Messages, ChoicesThatAreNearAreMeant) {
  refused({"compare", "a", "b", "--format", "markdwn"}, {"--format is 'markdwn'; did you mean 'markdown'?"});
  refused({"compare", "a", "b", "--statistic", "mdian"}, {"--statistic is 'mdian'; did you mean 'median'?"});
  refused({"compare", "a", "b", "--fail-if", "slowr"}, {"--fail-if is 'slowr'; did you mean 'slower'?"});
  refused({"export", "a", "--format", "tensorbord"}, {"--format is 'tensorbord'; did you mean 'tensorboard'?"});
}

TEST_F(Messages, RunsWithoutRecordsAreNoRuns) {
  const std::string one = a_run();
  refused({"compare", one, "unfinished"},
          {"unfinished: no case has finished there", "nothing can be compared: unfinished has no record"});
  refused({"compare", "unfinished", one}, {"nothing can be compared: unfinished has no record"});
  refused({"export", "unfinished", "--format", "openmetrics"}, {"nothing is exported: no case of unfinished has"});
  refused({"forecast", "unfinished", "--ranks", "8"}, {"nothing can be expected: no case of unfinished has finished"});
  refused({"plan", "x.toml", "--plugin-path", PLUGINS, "--from", "unfinished"},
          {"--from unfinished: no record of a finished case"});
  refused({"compare", one, "dir"}, {"dir holds no run; expected a run folder"});
}

TEST_F(Messages, InputsThatMayDifferAreInputs) {
  const std::string one = a_run();
  write_experiment(
      {.plugin = "napping_work", .name = "y", .measure = "warmup = 0\nsteps = 2", .sweep = "heads = [3, 4]"});
  const std::string other = a_run();
  refused({"compare", one, other, "--across", "haeds"},
          {"--across haeds: no case has an input of this name; did you mean 'heads'?"});
  EXPECT_EQ(run({"compare", one, other, "--across", "heads,measure.steps"}).exit.code, 0);
}

TEST_F(Messages, AnExportHasAPlace) {
  const std::string one = a_run();
  refused({"export", one, "--format", "openmetrics", "--output", "dir"},
          {"--output is dir, a folder, and openmetrics is one file"});
  refused({"export", one, "--format", "openmetrics", "--output", "nowhere/x.prom"},
          {"--output is nowhere/x.prom, and there is no folder nowhere; make it"});
  refused({"export", one, "--format", "tensorboard", "--output", "file.txt"},
          {"--output is file.txt, a file, and tensorboard is a folder"});
  EXPECT_EQ(run({"export", one, "--format", "openmetrics", "--output", "dir/x.prom"}).exit.code, 0);
}

TEST_F(Messages, AShardIsAPartOrAFolderOfABatch) {
  const auto shard = [this](const std::string& text, const std::string& part) {
    refused(run_arguments({"--shard", text}), {part});
  };
  shard("3/2", "--shard is 3/2; expected K/N with K from 1 to N");
  shard("1:2", "--shard is 1:2; expected K/N, as in 1/4, or the folder of a shard");
  shard("nowhere/0-0001", "there is no such folder");
  shard("file.txt", "there is no such folder");
  shard("dir",
        "--shard is dir; expected K/N, as in 1/4, or the folder of a shard, which `assay submit` has made: this");
  EXPECT_TRUE(fs::is_empty(folder() / "dir")) << "nothing is written where no shard is";
}

TEST_F(Messages, FilesAreNamedWithTheirOption) {
  refused(run_arguments({"--hosts", "nowhere"}),
          {"--hosts: cannot read nowhere", "expected a file with a host a line"});
  refused({"plan", "x.toml", "--device-file", "nowhere"},
          {"--device-file: cannot read nowhere", "as `assay describe-device --output FILE` writes it"});
  refused({"plan", "x.toml", "--device-file", "file.txt"}, {"--device-file: file.txt:1:", "expected a file that"});
  refused({"plan", "x.toml", "--device-file", "x.toml"}, {"--device-file: x.toml: kind: expected a text"});
}

TEST_F(Messages, ProgramsThatCannotBeTimed) {
  const auto not_timed = [this](std::vector<std::string> program, const std::vector<std::string>& parts) {
    program.insert(program.begin(), {"time", "--output", "timed", "--"});
    refused(program, parts);
    EXPECT_FALSE(fs::exists(folder() / "timed"));
  };
  std::ofstream(folder() / "my-script") << "#!/bin/sh\n";
  not_timed({"./my-script"},
            {"'./my-script' may not be executed; chmod +x './my-script' makes it a program", "-- sh './my-script'"});
  not_timed({"my-script"}, {"there is no program 'my-script'", "or give its path: ./my-script"});
  not_timed({"./dir"}, {"'./dir' is a folder; name a program in it"});
  not_timed({"./nowhere"}, {"there is no program './nowhere'; name one on the PATH"});
  refused({"time", "--runs", "0", "--", "true"}, {"--runs is 0; expected a whole number from 1 to 10000000"});
  refused({"time", "--warmup", "-1", "--", "true"}, {"--warmup is -1; expected a whole number from 0"});
}

TEST_F(Messages, FiltersSayWhatIsLeft) {
  refused(run_arguments({"--filter", "heads=1", "--filter", "heads=2"}),
          {"--filter heads=2: no case that is left has this; those have heads = 1"});
}

}  // namespace
}  // namespace assay::test
