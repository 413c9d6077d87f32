// A host that is killed or interrupted in the middle of a sweep loses nothing that was finished.
#include <signal.h>

#include <algorithm>
#include <map>

#include "bad_plugin_sandbox.hpp"

namespace assay::test {
namespace {

// Six cases of half a second or so: slow enough to be caught in the middle, with nothing bad in them.
const ExperimentText slow_sweep{
    .plugin = "bad_sometimes_bad", .params = "bad_at = -1\nstep_ms = 30", .sweep = "i = [0, 1, 2, 3, 4, 5]"};

class Interruption : public BadPluginSandbox {
 protected:
  // Starts the sweep, and sends `signal` when three cases are finished.
  std::optional<HostExit> run_and_send(int signal) {
    write_experiment(slow_sweep);
    HostProcess host = start(run_arguments());
    EXPECT_TRUE(wait_until([&] { return case_lines().size() >= 3; })) << output();
    host.send(signal);
    return host.wait();
  }
  // The sweep, resumed after `finished` was on disk, is whole, and holds each of those lines unchanged.
  void expect_resume_completes(const std::vector<std::string>& finished) {
    const RunResult result = run(run_arguments({"--resume"}));
    EXPECT_EQ(result.exit.code, 0) << result.output;
    const std::vector<std::string> lines = case_lines();
    for (const std::string& line : finished)
      EXPECT_EQ(std::count(lines.begin(), lines.end(), line), 1) << "run again or lost: " << line;
    std::map<int, int> rows_of;
    for (const auto& record : cases()) {
      EXPECT_EQ(record.value("status", ""), "ok") << record.dump(2);
      ++rows_of[record["axes"]["i"].get<int>()];
    }
    EXPECT_EQ(rows_of.size(), 6u);
    for (const auto& [i, rows] : rows_of) EXPECT_EQ(rows, 1) << "i = " << i;
    const std::string table = text_of(run_folders().back() / "table.csv");
    EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 7) << table;
  }
};

TEST_F(Interruption, AKilledHostIsResumed) {
  const std::optional<HostExit> exit = run_and_send(SIGKILL);
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->signal, SIGKILL);
  EXPECT_TRUE(all_descendants_are_gone()) << "a worker outlived the host";
  const std::vector<std::string> finished = case_lines();
  ASSERT_GE(finished.size(), 3u);
  ASSERT_LT(finished.size(), 6u);
  expect_resume_completes(finished);
}

TEST_F(Interruption, AHalfWrittenLastLineIsRunAgain) {
  const std::optional<HostExit> exit = run_and_send(SIGKILL);
  ASSERT_TRUE(exit.has_value());
  EXPECT_TRUE(all_descendants_are_gone());
  const std::filesystem::path file = run_folders().back() / "cases.jsonl";
  std::vector<std::string> finished = case_lines();
  ASSERT_GE(finished.size(), 3u);
  ASSERT_LT(finished.size(), 6u);
  std::uintmax_t whole_bytes = 0;
  for (const std::string& line : finished) whole_bytes += line.size() + 1;
  std::filesystem::resize_file(file, whole_bytes - 10);
  finished.pop_back();
  expect_resume_completes(finished);
}

TEST_F(Interruption, SigintKeepsWhatIsFinished) {
  for (const int signal : {SIGINT, SIGTERM}) {
    std::filesystem::remove_all(folder() / "out");
    const std::optional<HostExit> exit = run_and_send(signal);
    ASSERT_TRUE(exit.has_value()) << output();
    EXPECT_EQ(exit->code, 130) << output();
    EXPECT_TRUE(all_descendants_are_gone()) << "a worker outlived the host";
    std::vector<std::string> finished;
    const std::vector<std::string> lines = case_lines();
    const auto records = cases();
    for (std::size_t i = 0; i < records.size(); ++i)
      if (records[i].value("status", "") == "ok") finished.push_back(lines[i]);
    ASSERT_GE(finished.size(), 3u);
    ASSERT_LT(finished.size(), 6u);
    EXPECT_PRED2(contains, output(), "--resume");
    expect_resume_completes(finished);
  }
}

// Of which no byte is stored, and which takes longer to read than anybody waits.
TEST_F(Interruption, SigintEndsTheReadingOfALargeInput) {
  std::ofstream(folder() / "large.safetensors");
  std::filesystem::resize_file(folder() / "large.safetensors", std::uintmax_t{1} << 40);
  write_experiment({.plugin = "decoder", .params = "size = \"tiny\"\ninputs = \"large.safetensors\""});
  HostProcess host = start(run_arguments());
  ASSERT_TRUE(wait_until([&] { return !run_folders().empty(); })) << output();
  host.send(SIGINT);
  const std::optional<HostExit> exit = host.wait();
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 130) << output();
  EXPECT_PRED2(contains, output(), "large.safetensors was stopped");
}

// It hashes inputs to say which cases an earlier run has.
TEST_F(Interruption, SigintEndsTheReadingOfALargeInputByADryRun) {
  std::ofstream(folder() / "large.bin") << "small at first";
  const ExperimentText text{.plugin = "command",
                            .params = "command = \"true {input}\"\nstep_is = \"program\"\ninput = \"large.bin\""};
  ASSERT_EQ(run_experiment(text).exit.code, 0) << output();
  std::filesystem::resize_file(folder() / "large.bin", std::uintmax_t{1} << 40);
  HostProcess host = start(run_arguments({"--resume", "--dry-run"}));
  ASSERT_TRUE(wait_until([&] { return host.has_open("large.bin"); })) << output();
  host.send(SIGINT);
  const std::optional<HostExit> exit = host.wait();
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 130) << output();
  EXPECT_PRED2(contains, output(), "large.bin was stopped");
}

TEST_F(Interruption, SigintEndsAWorkerThatHangs) {
  write_experiment({.plugin = "bad_hangs"});
  HostProcess host = start(run_arguments());
  ASSERT_TRUE(wait_until([&] {
    const auto folders = run_folders();
    return !folders.empty() && contains(text_of(folders.back() / "logs/case-0001.log"), "hanging");
  })) << output();
  host.send(SIGINT);
  const std::optional<HostExit> exit = host.wait();
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 130) << output();
  EXPECT_TRUE(all_descendants_are_gone());
}

}  // namespace
}  // namespace assay::test
