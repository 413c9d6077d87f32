// Groups of test workers that play scripts, and a look at what they leave behind.
#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "launch/process.hpp"
#include "launch/supervise_group.hpp"
#include "temporary_folder.hpp"

namespace assay::host::launch {

using Script = std::vector<std::string>;  // see play() in test_worker.cpp

class SuperviseGroup : public testing::Test {
 protected:
  // After the body of each test: no process with this host's tag, no child, no further descriptor.
  void TearDown() override {
    EXPECT_EQ(tagged_processes(), std::vector<std::string>{});
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
    EXPECT_EQ(open_descriptors(), descriptors_before_);
  }

  WorkerRequest worker(std::int32_t rank, Script script) {
    WorkerRequest r;
    r.executable = TEST_WORKER;
    r.arguments = std::move(script);
    r.arguments.insert(r.arguments.begin(), "play");
    r.log_file = log_of(rank);
    r.spec = "{}";
    r.phase_names = {"forward", "backward"};
    return r;
  }
  // Ranks 0, 1, ... with a judge that takes "failed" and "victim" from the status. The time to settle is long: in these
  // tests it ends when all have ended by themselves. Those where it must pass set it.
  GroupRequest group(const std::vector<Script>& scripts) {
    GroupRequest request;
    for (const Script& script : scripts) {
      request.ranks.push_back(static_cast<std::int32_t>(request.ranks.size()));
      request.workers.push_back(worker(request.ranks.back(), script));
    }
    request.timeout = std::chrono::seconds(100);  // so that a mistake ends the test
    request.settle = std::chrono::seconds(50);
    request.judge_result = [](const std::string& line) -> ResultVerdict {
      if (line.find("victim") != std::string::npos) return {ResultVerdict::Kind::victim, "lost a rank"};
      if (line.find("failed") != std::string::npos) return {ResultVerdict::Kind::failed, "loss is not finite"};
      return {};
    };
    request.on_failure = [this](const GroupFailure& failure) { told_.push_back(failure.for_others); };
    return request;
  }
  GroupOutcome run(const GroupRequest& request) { return supervise_group(request, {}, nullptr); }

  std::filesystem::path log_of(std::int32_t rank) const { return folder_ / ("rank-" + std::to_string(rank)); }
  std::string suffix(std::int32_t rank) const { return "; log: " + log_of(rank).string(); }
  // A script waits for this file, and the test makes it.
  std::string wait_for_go() const { return "wait:" + go_.string(); }
  void go() const { std::ofstream(go_) << ""; }

  static std::vector<WorkerStatus> statuses(const GroupOutcome& outcome) {
    std::vector<WorkerStatus> found;
    for (const WorkerOutcome& worker : outcome.workers) found.push_back(worker.status);
    return found;
  }
  static std::vector<std::string> tagged_processes() {
    const std::string entry = std::string(worker_tag_variable) + "=" + std::to_string(getpid()) + "-";
    std::vector<std::string> found;
    for (const auto& process : std::filesystem::directory_iterator("/proc"))
      if (text_of(process.path() / "environ").find(entry) != std::string::npos)
        found.push_back(process.path().filename());
    return found;
  }
  static std::set<std::string> open_descriptors() {
    std::set<std::string> found;
    for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;  // the one that lists the folder
      const auto target = std::filesystem::read_symlink(fd.path(), gone);
      if (target.string().find("/fd") == std::string::npos) found.insert(fd.path().filename());
    }
    return found;
  }

  TemporaryFolder folder_;
  std::filesystem::path go_ = folder_ / "go";
  std::vector<std::string> told_;  // to on_failure
  std::set<std::string> descriptors_before_ = open_descriptors();
};

}  // namespace assay::host::launch
