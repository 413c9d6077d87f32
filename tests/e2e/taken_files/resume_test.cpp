// What --resume continues, what it refuses, and what it runs again.
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "e2e/taken_files/builds.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;

class Resume : public Builds {
 protected:
  void run_whole(const ExperimentText& text) {
    write_experiment(text);
    const RunResult result = run(run_arguments());
    ASSERT_EQ(result.exit.code, 0) << result.output;
  }
  RunResult resume(std::vector<std::string> more = {}) {
    more.insert(more.begin(), "--resume");
    return run(run_arguments(more));
  }
};

TEST_F(Resume, ADeviceBackendThatWasRebuiltRunsItsCasesAgainAndNoOthers) {
  install_other_device(1);
  ExperimentText text = sweep_of_four();
  text.sweep = "\"run.device\" = [\"cpu\", \"cuda\"]\ni = [0, 1]";
  run_whole(text);
  ASSERT_EQ(cases().size(), 4u);
  install_other_device(2);
  const RunResult result = resume();
  EXPECT_EQ(result.exit.code, 0) << result.output;
  EXPECT_PRED2(contains, result.output, "2 finished cases run again: device: SHA-256 ");
  const std::vector<nlohmann::json> all = cases();
  ASSERT_EQ(all.size(), 8u);
  for (std::size_t i = 4; i < 8; ++i) EXPECT_EQ(all[i]["axes"]["run.device"], "cuda") << all[i];
  EXPECT_NE(all[7]["files"]["device"], all[0]["files"]["device"]);
  EXPECT_EQ(all[7]["files"]["host"], all[0]["files"]["host"]);
  // Nothing is left to do.
  EXPECT_EQ(resume().exit.code, 0);
  EXPECT_EQ(cases().size(), 8u);
}

TEST_F(Resume, AnExperimentMayGrowByValuesOfAnAxis) {
  run_whole(sweep_of_four());
  ExperimentText text = sweep_of_four();
  text.sweep = "i = [3, 2, 4]";
  write_experiment(text);
  const RunResult shown = resume({"--dry-run"});
  EXPECT_EQ(shown.exit.code, 0) << shown.output;
  EXPECT_PRED2(contains, shown.output, "x: 3 cases, 2 done; resumes ");
  EXPECT_PRED2(contains, shown.output, "  1  done     i=3\n    2  done     i=2\n    3  pending  i=4\n");
  EXPECT_PRED2(contains, shown.output, "expected: time not known, since no earlier run has these cases");
  const RunResult whole = run(run_arguments({"--dry-run"}));
  EXPECT_PRED2(contains, whole.output, "expected: about 0:0");
  EXPECT_PRED2(contains, whole.output, " for 2 of 3 cases, as in out/x/");
  EXPECT_PRED2(contains, whole.output, "; no earlier run has the other one\n");
  const auto reported = nlohmann::json::parse(resume({"--dry-run", "--json"}).output);
  EXPECT_EQ(reported["states"][1]["state"], "done");
  EXPECT_EQ(reported["states"][2]["state"], "pending");
  EXPECT_EQ(reported["plan"]["cases"].size(), 3u);
  EXPECT_EQ(reported["estimate"]["cases"], 1) << "the one that is left";
  EXPECT_EQ(reported["estimate"]["known"], 0);
  EXPECT_EQ(cases().size(), 4u) << "a dry run runs nothing";
  EXPECT_EQ(resume().exit.code, 0);
  EXPECT_EQ(cases().size(), 5u);
}

TEST_F(Resume, WhateverElseDiffersIsListedAndRefused) {
  run_whole(sweep_of_four());
  const auto lines = case_lines();
  for (const auto& [set, line] :
       std::vector<std::pair<std::string, std::string>>{{"nap_ms=1", "workload.params.nap_ms: 0 in the run, 1 now"},
                                                        {"measure.steps=4", "measure.steps: 3 in the run, 4 now"},
                                                        {"run.seed=5", "run.seed: 1234 in the run, 5 now"}}) {
    for (const bool dry : {true, false}) {
      const RunResult result =
          resume(dry ? std::vector<std::string>{"--set", set, "--dry-run"} : std::vector<std::string>{"--set", set});
      EXPECT_EQ(result.exit.code, 2) << result.output;
      EXPECT_PRED2(contains, result.output, line);
      EXPECT_PRED2(contains, result.output, "start a new run with --resume --new");
    }
  }
  EXPECT_EQ(case_lines(), lines);
  EXPECT_EQ(run_folders().size(), 1u);
  // What changes no figure may differ.
  EXPECT_EQ(resume({"--set", "measure.timeout=30s"}).exit.code, 0);
  EXPECT_EQ(case_lines(), lines);
}

TEST_F(Resume, WithNewADifferentExperimentStartsARunOfItsOwn) {
  run_whole(sweep_of_four());
  const RunResult result = resume({"--new", "--set", "nap_ms=1"});
  EXPECT_EQ(result.exit.code, 0) << result.output;
  EXPECT_PRED2(contains, result.output, "a new run, since ");
  EXPECT_EQ(run_folders().size(), 2u);
  EXPECT_EQ(run(run_arguments({"--new"})).exit.code, 2);
}

TEST_F(Resume, AnotherAxisIsNoGrowth) {
  run_whole(sweep_of_four());
  const RunResult result = resume({"--set", "sweep.nap_ms=[0,1]"});
  EXPECT_EQ(result.exit.code, 2) << result.output;
  EXPECT_PRED2(contains, result.output, "workload.params.nap_ms: 0 in the run, swept now");
}

TEST_F(Resume, WhatAnotherMachineHasMadeRunsAgainUnlessToldOtherwise) {
  run_whole(sweep_of_four());
  const fs::path file = run_folder() / "cases.jsonl";
  std::string text = text_of(file);
  const std::string own = "\"host\":" + cases().front()["host"].dump();
  for (std::size_t at = text.find(own); at != std::string::npos; at = text.find(own, at))
    text.replace(at, own.size(), "\"host\":\"elsewhere\"");
  {
    std::ofstream out(file);
    out << text;
  }
  EXPECT_EQ(resume({"--any-machine"}).exit.code, 0);
  EXPECT_EQ(cases().size(), 4u);
  const RunResult result = resume();
  EXPECT_EQ(result.exit.code, 0) << result.output;
  EXPECT_PRED2(contains, result.output, "4 finished cases run again: machine: elsewhere then, ");
  EXPECT_EQ(cases().size(), 12u);
}

// An interruption before new code has made its case leaves no figure of the old one in the tables.
TEST_F(Resume, WhatIsOutdatedHasNoFiguresInTheTables) {
  const ExperimentText text = gated_sweep_of_four();
  open_gates();
  run_whole(text);
  close_gates();
  install(2);
  HostProcess host = start(run_arguments({"--resume"}));
  ASSERT_TRUE(wait_until([&] { return case_lines().size() >= 9; })) << output();
  host.send(SIGINT);
  const std::optional<HostExit> exit = host.wait();
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 130) << output();
  const std::string table = text_of(run_folder() / "table.csv");
  std::istringstream rows(table);
  int outdated = 0;
  for (std::string row; std::getline(rows, row);)
    if (row.find(",outdated") != std::string::npos) {
      ++outdated;
      EXPECT_EQ(row.substr(1, 2), ",,") << "figures: " << row;
    }
  EXPECT_GE(outdated, 1) << table;
  const nlohmann::json last = cases().back();
  EXPECT_EQ(metric(last, "build"), 2) << last;
}

// Their figures would stand beside those of the new code.
TEST_F(Resume, WhatAFilterOrTheExperimentLeavesOutIsOutdatedToo) {
  run_whole(sweep_of_four());
  install(2);
  ExperimentText text = sweep_of_four();
  text.sweep = "i = [0, 1, 2]";
  write_experiment(text);
  const RunResult result = resume({"--filter", "i=1"});
  EXPECT_EQ(result.exit.code, 0) << result.output;
  EXPECT_PRED2(contains, result.output, "1 finished case runs again: plugin: SHA-256 ");
  EXPECT_PRED2(contains, result.output, "3 finished cases that this command leaves out are outdated: plugin: SHA-256 ");
  const std::vector<nlohmann::json> all = cases();
  ASSERT_EQ(all.size(), 9u);
  EXPECT_EQ(metric(all.back(), "build"), 2);
  for (std::size_t i = 4; i < 8; ++i) EXPECT_EQ(all[i]["status"], "outdated") << all[i];
  const RunResult rest = resume();
  EXPECT_EQ(rest.exit.code, 0) << rest.output;
  EXPECT_EQ(cases().size(), 11u) << "the two that were left out, and not the one that the experiment has no more";
}

TEST_F(Resume, ARunWithoutARecordIsNobodysLatest) {
  run_whole(sweep_of_four());
  const std::string whole = fs::read_symlink(run_folder().parent_path() / "latest");
  write_experiment(sweep_of_four("10000"));
  HostProcess host = start(run_arguments());
  ASSERT_TRUE(wait_until([&] { return run_folders().size() == 2; })) << output();
  host.send(SIGINT);
  ASSERT_TRUE(host.wait().has_value());
  EXPECT_EQ(fs::read_symlink(run_folder().parent_path() / "latest"), whole);
  write_experiment(sweep_of_four());
  const RunResult result = resume();
  EXPECT_EQ(result.exit.code, 0) << result.output;
  EXPECT_PRED2(contains, result.output, whole);
}

}  // namespace
}  // namespace assay::test
