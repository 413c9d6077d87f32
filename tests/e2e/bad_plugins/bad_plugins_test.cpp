// Each bad plugin fails for its own reason, in words that name it, and the host survives every one.
#include "bad_plugin_sandbox.hpp"

#include <algorithm>
#include <ostream>

namespace assay::test {
namespace {

struct Misbehaviour {
  const char* plugin;
  const char* status;
  const char* reason;  // a part of it
  const char* stage;
  const char* measure = nullptr;  // in place of the usual [measure]
  const char* run = "";
};
void PrintTo(const Misbehaviour& m, std::ostream* out) { *out << m.plugin; }

class WhileRunning : public BadPluginSandbox, public testing::WithParamInterface<Misbehaviour> {};

TEST_P(WhileRunning, IsARowWithItsStatusAndReason) {
  const Misbehaviour& expected = GetParam();
  ExperimentText text{.plugin = expected.plugin, .run = expected.run};
  if (expected.measure) text.measure = expected.measure;
  const RunResult result = run_experiment(text);
  EXPECT_EQ(result.exit.code, 1) << result.output;
  const auto records = cases();
  ASSERT_EQ(records.size(), 1u) << result.output;
  EXPECT_EQ(records[0].value("status", ""), expected.status) << records[0].dump(2);
  EXPECT_PRED2(contains, records[0].value("reason", ""), expected.reason);
  EXPECT_EQ(records[0].value("stage", ""), expected.stage) << records[0].dump(2);
  EXPECT_FALSE(records[0].contains("phases")) << "a case that failed has no times";
  EXPECT_PRED2(contains, result.output, expected.status);
}

INSTANTIATE_TEST_SUITE_P(
    BadPlugins, WhileRunning,
    testing::Values(Misbehaviour{"bad_throws_in_create", "failed", "boom from create", "create"},
                    Misbehaviour{"bad_throws_in_setup", "failed", "boom from setup", "setup"},
                    Misbehaviour{"bad_throws_in_run", "failed", "boom from run", "warmup"},
                    Misbehaviour{"bad_throws_in_finish", "failed", "boom from finish", "finish"},
                    Misbehaviour{"bad_throws_in_verify", "failed", "boom from verify", "verify"},
                    Misbehaviour{"bad_throws_in_work", "failed", "boom from work", "create"},
                    Misbehaviour{"bad_throws_non_std", "failed", "something that is not a std::exception", "warmup"},
                    Misbehaviour{"bad_segfaults_in_run", "crashed",
                                 "SIGSEGV (invalid memory access) in stage warmup, phase compute, step 1", "warmup"},
                    Misbehaviour{"bad_exits", "crashed", "exited with code 3 before it reported a result", "warmup"},
                    Misbehaviour{"bad_exits_zero", "crashed", "exited with code 0 before it reported a result",
                                 "warmup"},
                    Misbehaviour{"bad_hangs", "timeout",
                                 "no result after 1.0 s ([measure] timeout): in stage measure, phase compute",
                                 "measure", "warmup = 0\nsteps = 3\ntimeout = \"1s\""},
                    Misbehaviour{"bad_allocates_without_end", "oom", "[run] memory_limit 512 MiB in stage setup",
                                 "setup", nullptr, "memory_limit = \"512MiB\""},
                    Misbehaviour{"bad_holds_memory_in_a_child", "oom",
                                 "of processes that it has started, is above [run] memory_limit 256 MiB", "measure",
                                 "warmup = 0\nsteps = 10000\ntimeout = \"60s\"", "memory_limit = \"256MiB\""},
                    Misbehaviour{"bad_bad_alloc", "oom", "std::bad_alloc", "setup"},
                    Misbehaviour{"bad_wrong_result", "wrong_result", "sum is 41, expected 42 within 0", "verify"},
                    Misbehaviour{"bad_no_such_word", "failed",
                                 "plugin bad_no_such_word.so: the metric 'dtype' is 2, which is no index into its 2 "
                                 "words (fp32, bf16)",
                                 "verify"},
                    Misbehaviour{"bad_unsupported", "unsupported", "needs a device that nobody has", "create"}),
    [](const auto& info) { return std::string(info.param.plugin); });

class Children : public BadPluginSandbox {};

TEST_F(Children, TheirMemoryIsInTheRecordOfACaseThatIsOk) {
  run_experiment({.plugin = "bad_holds_memory_in_a_child", .measure = "warmup = 0\nsteps = 20"});
  const auto records = cases();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].value("status", ""), "ok") << records[0].dump(2);
  EXPECT_GT(records[0].at("memory").at("process_peak_mib"), 400.0);
}

struct Unloadable {
  const char* plugin;
  const char* message;  // a part of it
};
void PrintTo(const Unloadable& u, std::ostream* out) { *out << u.plugin; }

class AtLoading : public BadPluginSandbox, public testing::WithParamInterface<Unloadable> {};

TEST_P(AtLoading, IsRefusedBeforeAnythingStarts) {
  const RunResult result = run_experiment({.plugin = GetParam().plugin});
  EXPECT_EQ(result.exit.code, 2) << result.output;
  EXPECT_PRED2(contains, result.output, std::string(GetParam().plugin) + ".so");
  EXPECT_PRED2(contains, result.output, GetParam().message);
  EXPECT_TRUE(run_folders().empty()) << "a run was begun";
}

INSTANTIATE_TEST_SUITE_P(BadPlugins, AtLoading,
                         testing::Values(Unloadable{"bad_missing_symbol", "does not export 'assay_entry_v1'"},
                                         Unloadable{"bad_newer_major", "does not export 'assay_entry_v1'"},
                                         Unloadable{"bad_newer_major_field", "built for ABI 2."},
                                         Unloadable{"bad_needs_newer_host", "needs a host with ABI 1.99"},
                                         Unloadable{"bad_short_struct", "struct_size 16"},
                                         Unloadable{"bad_undefined_symbol", "assay_test_symbol_that_nobody_defines"},
                                         Unloadable{"bad_null_workloads", "workload 0 of its table is NULL"},
                                         Unloadable{"bad_null_table", "offers no workloads"},
                                         Unloadable{"bad_words_of_a_step", "metric 'dtype' has words and is of a step"},
                                         Unloadable{"bad_duplicate_params", "has the parameter 'n' twice"}),
                         [](const auto& info) { return std::string(info.param.plugin); });

class BadPlugins : public BadPluginSandbox {};

TEST_F(BadPlugins, GarbageOnStandardOutputIsHarmless) {
  const RunResult result = run_experiment({.plugin = "bad_garbage_on_stdout"});
  EXPECT_EQ(result.exit.code, 0) << result.output;
  const auto records = cases();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].value("status", ""), "ok") << records[0].dump(2);
  EXPECT_FALSE(contains(result.output, "\x1b[2J")) << "the plugin's bytes reached the terminal";
}

TEST_F(BadPlugins, MisusedPhasesAreNoted) {
  for (const char* plugin : {"bad_unbalanced_phases", "bad_bad_phase_index"}) {
    std::filesystem::remove_all(folder() / "out");
    const RunResult result = run_experiment({.plugin = plugin});
    const auto records = cases();
    ASSERT_EQ(records.size(), 1u) << plugin << result.output;
    EXPECT_EQ(records[0].value("status", ""), "ok") << plugin;
    EXPECT_PRED2(contains, records[0]["notes"].dump(), "phase") << plugin;
    EXPECT_FALSE(records[0]["phases"].contains("compute")) << plugin << ": a phase that never ended has a time";
  }
}

TEST_F(BadPlugins, AMetricThatIsNotANumberLeavesTheRecordReadable) {
  const RunResult result = run_experiment({.plugin = "bad_nan_metric"});
  const auto records = cases();
  ASSERT_EQ(records.size(), 1u) << result.output;
  EXPECT_EQ(records[0].value("status", ""), "ok") << records[0].dump(2);
  EXPECT_TRUE(records[0]["metrics"].is_object());
}

TEST_F(BadPlugins, OneBadCaseOfTenLeavesNine) {
  const RunResult result = run_experiment(
      {.plugin = "bad_sometimes_bad", .params = "bad_at = 4", .sweep = "i = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"});
  EXPECT_EQ(result.exit.code, 1) << result.output;
  const auto records = cases();
  ASSERT_EQ(records.size(), 10u) << result.output;
  for (const auto& record : records) {
    const bool is_bad = record["axes"]["i"] == 4;
    EXPECT_EQ(record.value("status", ""), is_bad ? "crashed" : "ok") << record.dump(2);
    EXPECT_EQ(record.contains("phases"), !is_bad);
  }
  const std::string table = text_of(run_folders().back() / "table.csv");
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 11) << table;
}

TEST_F(BadPlugins, TextsWithoutEndAreCutAndNoted) {
  const RunResult result =
      run_experiment({.plugin = "bad_floods_texts", .params = "bad_at = 1", .sweep = "i = [0, 1]"});
  const auto records = cases();
  ASSERT_EQ(records.size(), 2u) << result.output.substr(0, 2000);
  EXPECT_EQ(records[0].value("status", ""), "ok");
  EXPECT_EQ(records[1].value("status", ""), "wrong_result");
  for (const std::string& line : case_lines()) EXPECT_LT(line.size(), 1'000'000u);
  EXPECT_LT(result.output.size(), 100'000u);
  for (const auto& record : records) {
    EXPECT_PRED2(contains, record["notes"].dump(),
                 "a message of the workload has 10000004 bytes; the first 4000 are kept");
    EXPECT_PRED2(contains, record["notes"].dump(),
                 "the workload names more moments of its memory than 1000: the first ones are kept");
    EXPECT_EQ(record["memory"]["moments"].size() / 10, 100u) << "and those of the host";
  }
}

TEST_F(BadPlugins, AnAllowedStatusIsNoFailure) {
  const RunResult result = run_experiment({.plugin = "bad_unsupported", .run = "allow = [\"unsupported\"]"});
  EXPECT_EQ(result.exit.code, 0) << result.output;
  EXPECT_EQ(cases().at(0).value("status", ""), "unsupported");
}

TEST_F(BadPlugins, ThatExitInTheHostsOwnProcessAreNoSuccess) {
  const RunResult result = run_experiment({.plugin = "bad_exits_zero"}, {"--in-process"});
  EXPECT_EQ(result.exit.code, 1) << result.output;
  EXPECT_PRED2(contains, result.output, "the plugin has ended the process (exit) in the middle of a case");
}

TEST_F(BadPlugins, AreListedWithTheirProblems) {
  const RunResult result = run({"list", "--plugin-path", BAD_PLUGINS});
  for (const char* plugin : {"bad_undefined_symbol", "bad_short_struct", "bad_throws_in_run"})
    EXPECT_PRED2(contains, result.output, plugin);
  EXPECT_PRED2(contains, result.output, "struct_size 16");
}

}  // namespace
}  // namespace assay::test
