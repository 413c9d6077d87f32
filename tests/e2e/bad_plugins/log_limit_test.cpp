// Workers that write to their logs without end: the sweep goes on, and the disk is not filled.
#include <fstream>

#include "bad_plugin_sandbox.hpp"

namespace assay::test {
namespace {

constexpr std::uintmax_t marker_bytes_max = 256;

class LogLimit : public BadPluginSandbox {
 protected:
  std::string log(const std::string& name) const { return text_of(run_folders().back() / "logs" / name); }
};

TEST_F(LogLimit, ACaseThatLogsWithoutEndIsCutAndTheSweepEndsWhole) {
  const RunResult result = run_experiment({.plugin = "bad_logs_without_end",
                                           .params = "bad_at = 1",
                                           .run = "log_limit = \"256KiB\"",
                                           .sweep = "i = [0, 1, 2]"});
  EXPECT_EQ(result.exit.code, 1) << result.output;
  const auto records = cases();
  ASSERT_EQ(records.size(), 3u) << result.output;
  for (const auto& record : records) {
    const bool crashes = record["axes"]["i"] == 1;
    EXPECT_EQ(record.value("status", ""), crashes ? "crashed" : "ok") << record.dump(2);
    EXPECT_EQ(record["settings"]["run.log_limit"], "256KiB");
    EXPECT_PRED2(contains, record["notes"].dump(), "the log was cut: ");
    const std::string text = log("case-000" + std::to_string(record["index"].get<int>() + 1) + ".log");
    EXPECT_LE(text.size(), 256 * 1024 + marker_bytes_max);
    EXPECT_TRUE(text.starts_with("the first line\n"));
    EXPECT_PRED2(contains, text, "\n[assay: the log is cut here, at its limit of 256 KiB ([run] log_limit); ");
    EXPECT_PRED2(contains, text, " bytes were dropped, and its end follows]\nand another line that nobody asked for\n");
    if (crashes) {
      EXPECT_PRED2(contains, record["log_tail"].dump(), "and another line that nobody asked for");
    }
  }
  EXPECT_PRED2(contains, result.output, "note: the log was cut: ");
}

TEST_F(LogLimit, IsForEachRank) {
  const RunResult result = run_experiment({.plugin = "bad_logs_without_end",
                                           .params = "bad_at = -1",
                                           .run = "ranks = 2\ncopies = true\nlog_limit = \"4KiB\""});
  EXPECT_EQ(result.exit.code, 0) << result.output;
  EXPECT_EQ(cases().at(0).value("status", ""), "ok") << cases().at(0).dump(2);
  EXPECT_PRED2(contains, cases().at(0)["notes"].dump(), "the log was cut: ");
  for (const char* name : {"case-0001.rank0.log", "case-0001.rank1.log"}) {
    EXPECT_LE(log(name).size(), 4096 + marker_bytes_max) << name;
    EXPECT_PRED2(contains, log(name), "; ") << name;
  }
}

TEST_F(LogLimit, AWorkerThatLogsDiesWithAKilledHost) {
  write_experiment(
      {.plugin = "bad_logs_without_end", .params = "bad_at = -1\nstep_ms = 60000", .run = "log_limit = \"256KiB\""});
  HostProcess host = start(run_arguments());
  EXPECT_TRUE(wait_until([&] { return !run_folders().empty() && contains(log("case-0001.log"), "[assay: "); }));
  host.send(SIGKILL);
  host.wait();
  EXPECT_TRUE(all_descendants_are_gone()) << "a worker outlived the host";
}

TEST_F(LogLimit, TooSmallALimitIsAMistake) {
  const RunResult result = run_experiment({.plugin = "bad_logs_without_end", .run = "log_limit = \"1KiB\""});
  EXPECT_EQ(result.exit.code, 2);
  EXPECT_PRED2(contains, result.output, R"([run] log_limit is "1KiB"; expected a size >= 4KiB: )");
}

}  // namespace
}  // namespace assay::test
