// A worker that stands alone: a group of one, in which no reason names a rank.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "launch/launch_error.hpp"
#include "launch/signals.hpp"
#include "launch/supervise_group.hpp"
#include "temporary_folder.hpp"

namespace assay::host::launch {
namespace {

using namespace std::chrono_literals;

class SuperviseAlone : public testing::Test {
 protected:
  GroupRequest request(std::vector<std::string> arguments) {
    WorkerRequest worker;
    worker.executable = TEST_WORKER;
    worker.arguments = std::move(arguments);
    worker.log_file = log_;
    worker.spec = "{}";
    worker.phase_names = {"forward", "backward"};
    GroupRequest r;
    r.workers = {std::move(worker)};
    r.ranks = {0};
    r.timeout = 60s;  // so that a mistake ends the test
    return r;
  }
  static WorkerOutcome run(const GroupRequest& request, const std::function<void(const BoardView&)>& on_progress = {},
                           const std::atomic<int>* interrupted = nullptr) {
    GroupProgress progress;
    if (on_progress) progress = [&](std::int32_t, const BoardView& view) { on_progress(view); };
    GroupOutcome outcome = supervise_group(request, progress, interrupted);
    EXPECT_EQ(outcome.workers.size(), 1u);
    const WorkerStatus status = outcome.workers.front().status;
    EXPECT_EQ(outcome.interrupted, status == WorkerStatus::interrupted);
    EXPECT_EQ(outcome.failure.has_value(), status != WorkerStatus::finished && status != WorkerStatus::interrupted);
    return std::move(outcome.workers.front());
  }
  WorkerOutcome run(std::vector<std::string> arguments) { return run(request(std::move(arguments))); }
  std::string log_suffix() const { return "; log: " + log_.string(); }

  TemporaryFolder folder_;
  std::filesystem::path log_ = folder_ / "log";
};

TEST_F(SuperviseAlone, FinishesWithTheResult) {
  const WorkerOutcome outcome = run({"ok"});
  EXPECT_EQ(outcome.status, WorkerStatus::finished);
  EXPECT_EQ(outcome.reason, "");
  EXPECT_EQ(outcome.events.result, R"({"event":"result","status":"ok"})");
  ASSERT_EQ(outcome.events.others.size(), 1u);
  EXPECT_GT(outcome.wall_s, 0);
  EXPECT_GT(outcome.peak_rss_bytes, 0u);
}

// As under a profiler: a program between host and worker keeps the descriptors, and has its own at their numbers.
TEST_F(SuperviseAlone, AWorkerWhoseParentKeepsTheDescriptorsFetchesThem) {
  for (const char* own : {"3>&- 4>&- 5>&-", "3</dev/null 4</dev/null 5>&-"}) {
    const std::string between = std::string("(exec ") + own + "; \"$0\" ok); exit $?";
    GroupRequest r = request({"-c", between, TEST_WORKER});
    r.workers[0].executable = "/bin/sh";
    const WorkerOutcome outcome = run(r);
    EXPECT_EQ(outcome.status, WorkerStatus::finished) << outcome.reason << ::testing::PrintToString(outcome.log_tail);
    EXPECT_EQ(outcome.events.result, R"({"event":"result","status":"ok"})");
  }
}

TEST_F(SuperviseAlone, AnExitWithoutAResultIsACrashEvenWithCodeZero) {
  EXPECT_EQ(run({"exit", "3"}).reason, "exited with code 3 before it reported a result, in stage load" + log_suffix());
  const WorkerOutcome outcome = run({"exit", "0"});
  EXPECT_EQ(outcome.status, WorkerStatus::crashed);
  EXPECT_EQ(outcome.reason, "exited with code 0 before it reported a result, in stage load" + log_suffix());
}

TEST_F(SuperviseAlone, AResultDoesNotHideABadExit) {
  const WorkerOutcome outcome = run({"exit_after_result", "4"});
  EXPECT_EQ(outcome.status, WorkerStatus::crashed);
  EXPECT_EQ(outcome.reason, "exited with code 4 after it reported a result, in stage load" + log_suffix());
  EXPECT_TRUE(outcome.events.result.has_value());
}

TEST_F(SuperviseAlone, ASignalIsNamedWithItsPlace) {
  const WorkerOutcome outcome = run({"signal", std::to_string(SIGSEGV)});
  EXPECT_EQ(outcome.status, WorkerStatus::crashed);
  EXPECT_EQ(outcome.reason,
            "killed by SIGSEGV (invalid memory access) in stage measure, phase backward, step 4" + log_suffix());
  EXPECT_EQ(outcome.phase, "backward");
  EXPECT_EQ(outcome.where.total_steps, 10u);
}

TEST_F(SuperviseAlone, AKillFromOutsideIsNoOomUnlessTheKernelCountedOne) {
  const WorkerOutcome outcome = run({"signal", std::to_string(SIGKILL)});
  EXPECT_EQ(outcome.status, WorkerStatus::crashed);
  EXPECT_EQ(outcome.reason.find("killed by SIGKILL (killed from outside) in stage measure"), 0u) << outcome.reason;
}

TEST_F(SuperviseAlone, TheTimeoutSaysWhereItWas) {
  GroupRequest r = request({"hang"});
  r.timeout = 300ms;
  const WorkerOutcome outcome = run(r);
  EXPECT_EQ(outcome.status, WorkerStatus::timeout);
  EXPECT_EQ(
      outcome.reason.find("no result after 0.3 s ([measure] timeout): in stage measure, phase backward, step 4; "), 0u)
      << outcome.reason;
}

TEST_F(SuperviseAlone, TheTimeoutAlsoEndsAWorkerThatIgnoresSigterm) {
  GroupRequest r = request({"hang_deaf"});
  r.timeout = 300ms;
  const WorkerOutcome outcome = run(r);
  EXPECT_EQ(outcome.status, WorkerStatus::timeout);
}

TEST_F(SuperviseAlone, AWorkerThatHangsAfterItsResultIsATimeout) {
  GroupRequest r = request({"hang_after_result"});
  r.timeout = 300ms;
  const WorkerOutcome outcome = run(r);
  EXPECT_EQ(outcome.status, WorkerStatus::timeout);
  EXPECT_EQ(outcome.reason.find("it reported a result but did not end within 0.3 s"), 0u) << outcome.reason;
  EXPECT_EQ(outcome.where.stage, Stage::destroy);
}

TEST_F(SuperviseAlone, AClosedPipeDoesNotEndTheWatch) {
  GroupRequest r = request({"close_pipe"});
  r.timeout = 300ms;
  EXPECT_EQ(run(r).status, WorkerStatus::timeout);
}

TEST_F(SuperviseAlone, TheMemoryLimitSaysWhatWasHeld) {
  GroupRequest r = request({"grow"});
  r.workers[0].memory_limit_bytes = 200 << 20;
  const WorkerOutcome outcome = run(r);
  EXPECT_EQ(outcome.status, WorkerStatus::oom);
  EXPECT_NE(outcome.reason.find("is above [run] memory_limit 200 MiB in stage setup; held by kind: activations "),
            std::string::npos)
      << outcome.reason;
  EXPECT_NE(outcome.reason.find("asked for last: 16 MiB for 'block'"), std::string::npos) << outcome.reason;
  EXPECT_GT(outcome.peak_rss_bytes, 200u << 20);
}

TEST_F(SuperviseAlone, ATornLineIsNoResult) {
  const WorkerOutcome outcome = run({"torn"});
  EXPECT_EQ(outcome.status, WorkerStatus::crashed);
  EXPECT_EQ(outcome.events.others.size(), 1u);
  EXPECT_EQ(outcome.events.torn, R"({"event":"result","sta)");
}

TEST_F(SuperviseAlone, MalformedLinesAreKeptApart) {
  const WorkerOutcome outcome = run({"malformed"});
  EXPECT_EQ(outcome.status, WorkerStatus::finished);
  EXPECT_EQ(outcome.events.malformed, (std::vector<std::string>{"not json", "[1,2]"}));
}

TEST_F(SuperviseAlone, APluginThatClosesAndWritesEverywhereDoesNotReachTheChannel) {
  const WorkerOutcome outcome = run({"vandal"});
  EXPECT_EQ(outcome.status, WorkerStatus::finished) << outcome.reason;
  EXPECT_TRUE(outcome.events.malformed.empty());
}

TEST_F(SuperviseAlone, KeepsTheEndOfTheLogOfThisWorkerAlone) {
  std::ofstream(log_) << "of an earlier worker\n";
  const WorkerOutcome outcome = run({"noisy"});
  ASSERT_EQ(outcome.log_tail.size(), 20u);
  EXPECT_EQ(outcome.log_tail.front(), "line 12");
  EXPECT_EQ(outcome.log_tail.back(), "?? binary");
  EXPECT_EQ(run({"ok"}).log_tail, std::vector<std::string>{});
}

TEST_F(SuperviseAlone, KeepsBeginningAndEndOfALogThatIsTooLong) {
  GroupRequest r = request({"flood", "300"});
  const std::uint64_t limit_bytes = r.workers.front().log_limit_bytes = 1 << 20;
  const WorkerOutcome outcome = run(r);
  EXPECT_EQ(outcome.signal, SIGKILL) << outcome.reason;
  EXPECT_EQ(outcome.log_tail.back(), "the very last line");
  EXPECT_LE(std::filesystem::file_size(log_), limit_bytes + 256);
  EXPECT_GT(std::filesystem::file_size(log_), limit_bytes - 8192);
  EXPECT_EQ(outcome.log_note.find("the log was cut: 31352"), 0u) << outcome.log_note;
  EXPECT_NE(outcome.log_note.find("it passed [run] log_limit (1 MiB)"), std::string::npos) << outcome.log_note;
  EXPECT_EQ(run({"noisy"}).log_note, "");
}

TEST_F(SuperviseAlone, LeavesNoChildBehindInsideOrOutsideTheGroup) {
  const WorkerOutcome outcome = run({"children"});
  EXPECT_EQ(outcome.status, WorkerStatus::finished) << outcome.reason;
  ASSERT_EQ(outcome.events.others.size(), 1u);
  const auto children = nlohmann::json::parse(outcome.events.others[0]);
  for (const char* which : {"inside", "outside"}) {
    EXPECT_EQ(kill(children[which].get<pid_t>(), 0), -1) << which;
    EXPECT_EQ(errno, ESRCH) << which;
  }
}

TEST_F(SuperviseAlone, AnInterruptEndsTheWorker) {
  const InterruptHandler interrupts;
  GroupRequest r = request({"hang"});
  r.wake_fd = interrupts.wake_fd();
  const WorkerOutcome outcome = run(
      r,
      [sent = false](const BoardView& view) mutable {
        if (view.stage == Stage::measure && !std::exchange(sent, true)) raise(SIGINT);
      },
      interrupts.count());
  EXPECT_EQ(outcome.status, WorkerStatus::interrupted);
  EXPECT_EQ(outcome.reason, "the run was interrupted in stage measure, phase backward, step 4");
}

TEST_F(SuperviseAlone, ASecondInterruptDoesNotWaitForADeafWorker) {
  const InterruptHandler interrupts;
  const WorkerOutcome outcome = run(
      request({"hang_deaf"}),
      [sent = false](const BoardView& view) mutable {
        if (view.stage != Stage::measure || std::exchange(sent, true)) return;
        raise(SIGINT);
        raise(SIGINT);
      },
      interrupts.count());
  EXPECT_EQ(outcome.status, WorkerStatus::interrupted);
}

TEST_F(SuperviseAlone, ACallbackThatThrowsLeavesNoWorker) {
  // A grandchild that an earlier test's worker left and that had ended by itself has no tag to be found by any more.
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  // The exception passes through, so the worker's end shows in the test program's having no child.
  EXPECT_THROW(run(request({"hang_deaf"}), [](const BoardView&) { throw std::runtime_error("stop"); }),
               std::runtime_error);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(SuperviseAlone, ThrowsWhenTheWorkerCannotBeStarted) {
  GroupRequest r = request({});
  r.workers[0].executable = folder_ / "none";
  EXPECT_THROW(run(r), LaunchError);
}

}  // namespace
}  // namespace assay::host::launch
