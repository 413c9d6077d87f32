// What a user of other tools types first, and where results go that a file is named for.
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;

class CommandLine : public Sandbox {
 protected:
  CommandLine() : Sandbox(PLUGINS) { write_experiment(short_run()); }

  static ExperimentText short_run() { return {.plugin = "napping_work", .measure = "warmup = 0\nsteps = 2"}; }

  // The last line that `assay run x.toml` says of a mistake, having started nothing.
  std::string refusal(const std::vector<std::string>& more) {
    const RunResult result = run(run_arguments(more));
    EXPECT_EQ(result.exit.code, 2) << result.output;
    EXPECT_FALSE(fs::exists(folder() / "out"));
    EXPECT_FALSE(fs::exists(folder() / "results"));
    return result.output;
  }
  void expect_refusal(const std::vector<std::string>& more, const std::string& text) {
    EXPECT_PRED2(contains, refusal(more), text);
  }
  // With the default place of results, and none of the sandbox.
  RunResult run_here(const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"run", "x.toml", "--plugin-path", PLUGINS};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
};

const std::string set_with = "parameters and settings are set with --set";

// As those of a worker are; what the first case finds counts for all.
TEST_F(CommandLine, ThreadsOfCasesInThisProcessAreInTheRecord) {
  ExperimentText text = short_run();
  text.run = "threads = 2";
  text.sweep = "\"measure.warmup\" = [0, 1]";
  for (const nlohmann::json& record : records_of(text, 0, {"--in-process"})) {
    EXPECT_EQ(record["threads"]["count"], 2) << record;
    EXPECT_GT(record["threads"]["spin_count"], 0) << record;
  }
  text.run = "threads = 1";
  for (const nlohmann::json& record : records_of(text, 0, {"--in-process"}))
    EXPECT_NE(record["device"]["libraries"].get<std::string>().find(", 1 thread;"), std::string::npos) << record;
  set_variable("OMP_WAIT_POLICY", "passive");
  for (const nlohmann::json& record : records_of(text, 0, {"--in-process"}))
    EXPECT_EQ(record["threads"]["waiting"], "OMP_WAIT_POLICY=passive") << record;
}

TEST_F(CommandLine, AnOptionTakesNoOptionForItsValue) {
  const RunResult result = run({"run", "x.toml", "--plugin-path", PLUGINS, "--output", "--dry-run"});
  EXPECT_EQ(result.exit.code, 2) << result.output;
  EXPECT_PRED2(contains, result.output, "--output needs a value, and --dry-run stands in its place");
  EXPECT_FALSE(fs::exists(folder() / "--dry-run"));
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"ab", "x.toml", "--b", "--dry-run"}, {"compare", "a", "b", "-m", "--any"}}) {
    const RunResult other = run(arguments);
    EXPECT_EQ(other.exit.code, 2) << other.output;
    EXPECT_PRED2(contains, other.output, "stands in its place") << arguments[0];
  }
}

TEST_F(CommandLine, AWorkloadNeedsNoFile) {
  const RunResult result = run({"run", "napping_work", "--plugin-path", PLUGINS, "--set", "measure.steps=2", "--set",
                                "measure.warmup=0", "--output", "out"});
  EXPECT_EQ(result.exit.code, 0) << result.output;
  EXPECT_TRUE(fs::exists(folder() / "out/napping_work/latest/cases.jsonl")) << result.output;
  const RunResult odd = run({"run", "napping_work", "--plugin-path", PLUGINS, "--set", "measure.steps=2", "--output",
                             "a\x01\"b\"\nc", "--dry-run"});
  EXPECT_EQ(odd.exit.code, 0) << odd.output;
  const RunResult unknown = run({"run", "naping_work", "--plugin-path", PLUGINS});
  EXPECT_EQ(unknown.exit.code, 2);
  EXPECT_PRED2(contains, unknown.output, "naping_work: no experiment file, and no plugin 'naping_work'");
  EXPECT_PRED2(contains, unknown.output, "did you mean 'napping_work'?");
}

TEST_F(CommandLine, JsonIsAskedForAlike) {
  for (const char* command : {"table", "compare", "kernels"}) {
    const RunResult help = run({command, "--help"});
    EXPECT_PRED2(contains, help.output, "--json") << command;
    const RunResult both = run({command, "run", "--json", "--format", "csv"});
    EXPECT_EQ(both.exit.code, 2) << both.output;
    EXPECT_PRED2(contains, both.output, "--json and --format csv are two forms") << command;
  }
}

TEST_F(CommandLine, AParameterIsNoOption) {
  expect_refusal({"--nhead", "16"}, "unknown option '--nhead'; " + set_with + ": --set heads=16; see");
  expect_refusal({"--num-heads=8"}, set_with + ": --set heads=8");
  expect_refusal({"--nap-ms", "3"}, set_with + ": --set nap_ms=3");
  expect_refusal({"--epochs", "5"}, set_with + ": --set measure.steps=5");
  expect_refusal({"--warmup-epochs", "0"}, set_with + ": --set measure.warmup=0");
  expect_refusal({"--device", "mps"}, set_with + ": --set run.device=mps");
  expect_refusal({"--heads"}, set_with + ": --set heads=VALUE");
  expect_refusal({"--heads", "--quiet"}, set_with + ": --set heads=VALUE, an integer >= 1 (default 1); see");
  expect_refusal({"--no-sync"}, set_with + ": --set measure.sync=false; see");
  expect_refusal({"--single"}, set_with + ": --set run.ranks=1; see");
  expect_refusal({"--num-heads", "4", "8"}, "several values are an axis: --set 'sweep.heads=[4,8]'");
  expect_refusal({"--device", "cpu", "cuda"}, "--set 'sweep.run.device=[\"cpu\",\"cuda\"]'");
  expect_refusal({"--bogus", "1"}, set_with + " KEY=VALUE; none is called 'bogus'");
}

TEST_F(CommandLine, AnOptionThatIsNearIsMeant) {
  expect_refusal({"--dryrun"}, "unknown option '--dryrun'; did you mean '--dry-run'?");
  expect_refusal({"--filters", "heads=1"}, "did you mean '--filter'?");
  const RunResult other = run({"list", "--nhead", "16"});
  EXPECT_EQ(other.exit.code, 2);
  EXPECT_PRED2(contains, other.output, "unknown option '--nhead'; see");
}

TEST_F(CommandLine, ACommandThatIsNearIsMeant) {
  const auto answer = [this](const std::vector<std::string>& arguments) {
    const RunResult result = run(arguments);
    EXPECT_EQ(result.exit.code, 2);
    return result.output;
  };
  EXPECT_PRED2(contains, answer({"rnu", "x.toml"}), "unknown command 'rnu'; did you mean 'run'?");
  EXPECT_PRED2(contains, answer({"compaer"}), "did you mean 'compare'?");
  EXPECT_PRED2(contains, answer({"doc"}), "did you mean 'doctor'?");
  EXPECT_PRED2(contains, answer({"hist"}), "did you mean 'history'? See also 'assay --help'") << "and not 'list'";
  EXPECT_PRED2(contains, answer({"--verison"}), "did you mean '--version'?");
  EXPECT_PRED2(contains, answer({"x.toml"}), "did you mean 'assay run x.toml'?");
  EXPECT_PRED2(contains, answer({"list", "--plugin-path", "/nope"}), "--plugin-path is /nope, which is no folder");
  EXPECT_PRED2(contains, answer({"zzz"}), "unknown command 'zzz'; expected run, time");
  EXPECT_PRED2(contains, run({"help", "table"}).output, "Usage: assay table");
}

TEST_F(CommandLine, QuietTellsErrorsAndNothingElse) {
  EXPECT_EQ(run_here({"--quiet"}).output, "");
  const RunResult slow = run_here({"--quiet", "--set", "nap_ms=20000", "--set", "measure.timeout=1s"});
  EXPECT_EQ(slow.exit.code, 1);
  EXPECT_PRED2(contains, slow.output, "assay: case 1: timeout: ");
  EXPECT_PRED2(contains, slow.output, "assay: logs and records: results/x/");
  const RunResult allowed =
      run_here({"--quiet", "--set", "nap_ms=20000", "--set", "measure.timeout=1s", "--set", "run.allow=[\"timeout\"]"});
  EXPECT_EQ(allowed.exit.code, 0);
  EXPECT_EQ(allowed.output, "") << "it is expected";
}

TEST_F(CommandLine, EventsHaveTimeCaseAndStep) {
  const RunResult result = run_here({"--json", "--set", "nap_ms=700", "--set", "sweep.heads=[1,2]"});
  ASSERT_EQ(result.exit.code, 0) << result.output;
  std::istringstream lines(result.output);
  std::map<std::string, std::vector<nlohmann::json>> events;
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line);
    EXPECT_EQ(event["time"].get<std::string>().size(), std::string("2026-11-20T12:00:00.042Z").size()) << line;
    events[event["event"]].push_back(event);
  }
  EXPECT_EQ(events["estimate"].at(0)["known"], 0) << "the first run of its kind";
  ASSERT_EQ(events["case_finished"].size(), 2u);
  EXPECT_EQ(events["case_started"][1]["index"], 1);
  EXPECT_EQ(events["case_finished"][1]["index"], 1);
  EXPECT_FALSE(events["run_finished"][0].contains("index"));
  ASSERT_FALSE(events["progress"].empty()) << "steps of 1.4 s";
  for (const char* key : {"index", "stage", "step"}) EXPECT_TRUE(events["progress"][0].contains(key)) << key;
}

TEST_F(CommandLine, TheDoctorLooksAtThisMachine) {
  const RunResult result = run({"doctor", "--json", "--plugin-path", PLUGINS});
  EXPECT_LE(result.exit.code, 1) << "what is found depends on the machine";
  const auto json = nlohmann::json::parse(result.output);
  EXPECT_FALSE(json["use"]["device"].get<std::string>().empty()) << json["devices"];
  EXPECT_GT(json["use"]["plugins"], 0);
  bool is_spoilt = false;
  for (const auto& finding : json["findings"]) is_spoilt |= finding["severity"] != "note";
  EXPECT_EQ(result.exit.code, is_spoilt ? 1 : 0);
  EXPECT_EQ(run({"doctor", "--root", "nowhere"}).exit.code, 2);
  const fs::path governor = folder() / "played/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
  fs::create_directories(folder() / "played/proc");
  fs::create_directories(governor.parent_path());
  std::ofstream(governor) << "powersave\n";
  const RunResult played = run({"doctor", "--root", "played"});
  EXPECT_EQ(played.exit.code, 1);
  EXPECT_PRED2(contains, played.output, "cpu.governor: 1 of 1 processors is governed by 'powersave'");
  std::ofstream(governor) << "performance\n";
  EXPECT_EQ(run({"doctor", "--root", "played"}).exit.code, 0);
}

TEST_F(CommandLine, WithoutAnExperimentTheOptionsOwnNameIsTold) {
  const RunResult result = run({"run", "--d-model", "1024"});
  EXPECT_EQ(result.exit.code, 2);
  EXPECT_PRED2(contains, result.output, "unknown option '--d-model'; " + set_with + ": --set d_model=1024");
  std::ofstream(folder() / "x.toml") << "schema = 1\n[workload]\nplugin = \"nobody\"\n";
  expect_refusal({"--nhead", "16"}, set_with + ": --set nhead=16");
}

TEST_F(CommandLine, AFileForTheTable) {
  const RunResult result = run_here({"--output", "mine/x.csv"});
  EXPECT_EQ(result.exit.code, 0) << result.output;
  EXPECT_PRED2(contains, result.output, "written: mine/x.csv");
  const fs::path latest = folder() / "results/x/latest";
  EXPECT_TRUE(fs::exists(latest / "cases.jsonl"));
  EXPECT_EQ(text_of(folder() / "mine/x.csv"), text_of(latest / "table.csv"));
  EXPECT_FALSE(text_of(folder() / "mine/x.csv").empty());
  // A second run replaces it, and so may another form.
  EXPECT_EQ(run_here({"--output", "mine/x.csv", "--set", "measure.steps=3"}).exit.code, 0);
  EXPECT_EQ(run_here({"--output", "x.md"}).exit.code, 0);
  EXPECT_EQ(text_of(folder() / "x.md"), text_of(latest / "table.md"));
  EXPECT_EQ(run_here({"--output", "x.json", "--quiet"}).exit.code, 0);
  EXPECT_EQ(nlohmann::json::parse(text_of(folder() / "x.json"))["cases"].size(), 1u);
}

TEST_F(CommandLine, OneOfTwoFilesWithAWorkloadIsHiddenAndTheListSaysSo) {
  fs::create_directories(folder() / "mine");
  fs::copy_file(fs::path(PLUGINS) / "napping_work.so", folder() / "mine/napping_work.so");
  const RunResult result = run({"list", "--plugin-path", "mine", "--plugin-path", PLUGINS});
  EXPECT_PRED2(contains, result.output, "hidden: an experiment that names it gets that of mine/napping_work.so");
  EXPECT_EQ(run({"list", "--plugin-path", "mine"}).output.find("hidden"), std::string::npos);
}

TEST_F(CommandLine, AFolderMayHaveADotInItsName) {
  EXPECT_EQ(run_here({"--output", "v1.5"}).exit.code, 0);
  EXPECT_TRUE(fs::is_directory(folder() / "v1.5/x/latest"));
  EXPECT_PRED2(contains, text_of(folder() / "v1.5/x/latest/experiment.toml"), "dir = \"v1.5\"");
  EXPECT_EQ(run_here({"--output", "x.csv/"}).exit.code, 0);
  EXPECT_TRUE(fs::is_directory(folder() / "x.csv/x/latest"));
  EXPECT_EQ(run_here({"--output", "x.csv"}).exit.code, 0) << "it is there";
  EXPECT_FALSE(fs::exists(folder() / "results"));
}

TEST_F(CommandLine, WhatCannotBeWrittenIsSaidBeforeAnythingRuns) {
  expect_refusal({"--output", "x.toml/x.csv"}, "--output: x.toml/x.csv cannot be written: Not a directory");
  expect_refusal({"--output", std::string(300, 'x') + ".csv"}, "cannot be written: File name too long");
  expect_refusal({"--output", "/proc/x.csv"}, "--output: /proc/x.csv cannot be written");
  expect_refusal({"--output", "x.xlsx"},
                 "a run writes no .xlsx file: expected one that ends in .csv, .md or .json, or a "
                 "folder (x.xlsx/ for one of this name)");
  expect_refusal({"--output", "x.jsonl"}, "cases.jsonl");
  expect_refusal({"--output", ""}, "--output is \"\"");
  EXPECT_EQ(run_here({"--output", "mine/x.csv", "--dry-run"}).exit.code, 0);
  EXPECT_FALSE(fs::exists(folder() / "mine")) << "a dry run makes nothing";
}

}  // namespace
}  // namespace assay::test
