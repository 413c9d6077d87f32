// What a workload leaves running (of another session, orphaned, with its own environment) ends with its case, and
// with the host, however that ends.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "bad_plugin_sandbox.hpp"

namespace assay::test {
namespace {

class LeftProcesses : public BadPluginSandbox {
 protected:
  static bool is_alive(pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(stat, text);
    const std::size_t name_end = text.rfind(')');
    return name_end != std::string::npos && text.substr(name_end + 2, 1) != "Z";
  }
  // What the newest run's log says was left; 0 while it has no such line.
  pid_t left_behind() const {
    if (run_folders().empty()) return 0;
    const std::string log = text_of(run_folders().back() / "logs/case-0001.log");
    const std::size_t at = log.find("left behind: ");
    return at == std::string::npos || log.find('\n', at) == std::string::npos ? 0 : std::atoi(log.c_str() + at + 13);
  }
};

constexpr const char* left_one = "the workload left a process running, which was ended with the case: sleep";

TEST_F(LeftProcesses, EndWithTheCaseAndAreNoted) {
  const RunResult result = run_experiment({.plugin = "bad_leaves_processes", .params = "step_ms = 100"});
  EXPECT_EQ(result.exit.code, 0) << result.output;
  const auto records = cases();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].value("status", ""), "ok") << records[0].dump(2);
  EXPECT_PRED2(contains, records[0]["notes"].dump(), left_one);
  ASSERT_GT(left_behind(), 0);
  EXPECT_FALSE(is_alive(left_behind()));
}

TEST_F(LeftProcesses, EndWithATimeout) {
  const RunResult result = run_experiment({.plugin = "bad_leaves_processes",
                                           .params = "step_ms = 60000",
                                           .measure = "warmup = 0\nsteps = 3\ntimeout = \"3s\""});
  const auto records = cases();
  ASSERT_EQ(records.size(), 1u) << result.output;
  EXPECT_EQ(records[0].value("status", ""), "timeout") << records[0].dump(2);
  EXPECT_PRED2(contains, records[0]["notes"].dump(), left_one);
  EXPECT_FALSE(is_alive(left_behind()));
}

TEST_F(LeftProcesses, EndWithTheHostWhateverEndsIt) {
  for (const int signal : {SIGKILL, SIGINT, SIGSEGV}) {
    std::filesystem::remove_all(folder() / "out");
    write_experiment({.plugin = "bad_leaves_processes", .params = "step_ms = 60000"});
    HostProcess host = start(run_arguments());
    ASSERT_TRUE(wait_until([&] { return left_behind() > 0; })) << output();
    const pid_t left = left_behind();
    EXPECT_TRUE(is_alive(left));
    host.send(signal);
    host.wait();
    EXPECT_TRUE(wait_until([&] { return !is_alive(left); })) << "a process of the workload outlived the host";
    EXPECT_TRUE(all_descendants_are_gone());
  }
}

}  // namespace
}  // namespace assay::test
