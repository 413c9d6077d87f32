// Runs on one rank: what ends well, what crashes, what is interrupted and resumed.
#include <signal.h>

#include <algorithm>
#include <fstream>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

class SanitizedRuns : public Sandbox {
 protected:
  SanitizedRuns() : Sandbox(BAD_PLUGINS) {}

  // The statuses of the records, in their order.
  std::vector<std::string> statuses() const {
    std::vector<std::string> found;
    for (const auto& record : cases()) found.push_back(record.value("status", ""));
    return found;
  }
  void expect_views() const {
    for (const char* name : {"table.csv", "table.md", "environment.json", "experiment.toml"})
      EXPECT_TRUE(std::filesystem::exists(run_folder() / name)) << name;
  }
};

using Texts = std::vector<std::string>;

TEST_F(SanitizedRuns, ASweepOfEmptyCases) {
  const auto records =
      records_of({.plugin = EMPTY_PLUGIN,
                  .measure = "warmup = 1\nuntil = { relative_error = 0.5, min_steps = 3, max_steps = 9 }",
                  .run = "allow = [\"unsupported\"]\n[profile]\nkernels = true\nmemory_snapshot = true",
                  .sweep = "i = { min = 0, max = 2, step = 1 }\n\"measure.sync\" = [true, false]"});
  EXPECT_EQ(records.size(), 6u);
  EXPECT_EQ(statuses(), Texts(6, "ok"));
  expect_views();
}

TEST_F(SanitizedRuns, AProgramThatReports) {
  std::ofstream(folder() / "steps.sh") << "echo assay 1 >&3\n"
                                          "while echo step >&3; read kind number <&3; [ \"$kind\" != end ]; do\n"
                                          "  echo begin half >&3; echo end half >&3; echo \"metric x $number\" >&3\n"
                                          "done\n";
  records_of(
      {.plugin = COMMAND_PLUGIN, .params = "command = \"sh steps.sh\"", .sweep = "waiting = [\"asleep\", \"busy\"]"});
  EXPECT_EQ(statuses(), Texts(2, "ok"));
}

TEST_F(SanitizedRuns, InOneProcess) {
  EXPECT_EQ(records_of({.plugin = EMPTY_PLUGIN, .sweep = "i = [0, 1]"}, 0, {"--in-process"}).size(), 2u);
  EXPECT_EQ(statuses(), Texts(2, "ok"));
}

TEST_F(SanitizedRuns, OnTheDeviceThatIsThere) {
  EXPECT_EQ(records_of({.plugin = EMPTY_PLUGIN, .device = "auto"}, 0, {"--json"}).size(), 1u);
  EXPECT_EQ(statuses(), Texts{"ok"});
  EXPECT_PRED2(contains, output(), "\"event\":\"run_finished\"");
}

TEST_F(SanitizedRuns, ACrashLeavesTheOtherCases) {
  const auto records = records_of({.plugin = "bad_sometimes_bad", .params = "bad_at = 1", .sweep = "i = [0, 1, 2]"}, 1);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(statuses(), (Texts{"ok", "crashed", "ok"}));
  EXPECT_PRED2(contains, records[1].value("reason", ""), "SIGSEGV");
  expect_views();
}

TEST_F(SanitizedRuns, EachWayToFailIsARow) {
  const std::pair<const char*, const char*> expected[] = {
      {"bad_throws_in_create", "failed"},   {"bad_throws_non_std", "failed"},   {"bad_exits", "crashed"},
      {"bad_wrong_result", "wrong_result"}, {"bad_unsupported", "unsupported"}, {"bad_no_such_word", "failed"}};
  for (const auto& [plugin, status] : expected) {
    SCOPED_TRACE(plugin);
    EXPECT_EQ(records_of({.plugin = plugin}, 1).size(), 1u) << output();
    EXPECT_EQ(statuses(), Texts{status});
  }
}

TEST_F(SanitizedRuns, ATimeout) {
  EXPECT_EQ(records_of({.plugin = "bad_hangs", .measure = "warmup = 0\nsteps = 1\ntimeout = \"3s\""}, 1).size(), 1u);
  EXPECT_EQ(statuses(), Texts{"timeout"});
}

TEST_F(SanitizedRuns, MisuseIsNoted) {
  for (const char* plugin : {"bad_unbalanced_phases", "bad_nan_metric", "bad_garbage_on_stdout"}) {
    EXPECT_EQ(records_of({.plugin = plugin}).size(), 1u) << output();
    EXPECT_EQ(statuses(), Texts{"ok"}) << plugin;
  }
}

TEST_F(SanitizedRuns, WhatIsInterruptedIsResumed) {
  for (const int signal : {SIGKILL, SIGINT}) {
    std::filesystem::remove_all(folder() / "out");
    write_experiment(
        {.plugin = "bad_sometimes_bad", .params = "bad_at = -1\nstep_ms = 20", .sweep = "i = [0, 1, 2, 3]"});
    {
      HostProcess host = start(run_arguments());
      EXPECT_TRUE(wait_until([&] { return case_lines().size() >= 1; })) << output();
      host.send(signal);
      const std::optional<HostExit> exit = host.wait();
      ASSERT_TRUE(exit.has_value()) << output();
      if (signal == SIGKILL)
        EXPECT_EQ(exit->signal, SIGKILL);
      else
        EXPECT_EQ(exit->code, 130) << output();
      EXPECT_TRUE(all_descendants_are_gone()) << "a worker outlived the host";
    }
    const std::vector<std::string> finished = case_lines();
    ASSERT_LT(finished.size(), 4u) << "the sweep was over before it could be interrupted";
    EXPECT_EQ(run(run_arguments({"--resume"})).exit.code, 0) << output();
    const std::vector<std::string> lines = case_lines();
    EXPECT_EQ(lines.size(), 4u);
    EXPECT_TRUE(std::equal(finished.begin(), finished.end(), lines.begin())) << "a finished line was changed";
    EXPECT_EQ(statuses(), Texts(4, "ok"));
    expect_views();
  }
}

// Without these, a build that finds nothing would look like one that has nothing to find.
class SanitizersAreOn : public SanitizedRuns {
 protected:
  void SetUp() override {
#ifndef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "built without sanitizers";
#endif
  }
};

TEST_F(SanitizersAreOn, MemoryThatIsReadAfterItWasFreedIsAFinding) {
  run_experiment({.plugin = "bad_reads_freed_memory"});
  const std::vector<std::string> findings = take_findings();
  ASSERT_EQ(findings.size(), 1u) << output();
  EXPECT_PRED2(contains, findings[0], "heap-use-after-free");
}

TEST_F(SanitizersAreOn, AnIntegerThatOverflowsIsAFinding) {
  run_experiment({.plugin = "bad_overflows_an_integer"});
  const std::vector<std::string> findings = take_findings();
  ASSERT_EQ(findings.size(), 1u) << output();
  EXPECT_PRED2(contains, findings[0], "signed integer overflow");
}

}  // namespace
}  // namespace assay::test
