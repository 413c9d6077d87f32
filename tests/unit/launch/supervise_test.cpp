#include "launch/supervise.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "launch/launch_error.hpp"
#include "launch/signals.hpp"
#include "temporary_folder.hpp"

namespace assay::host {
namespace {

using namespace std::chrono_literals;

class Supervise : public testing::Test {
 protected:
  WorkerRequest request(std::vector<std::string> arguments) {
    WorkerRequest r;
    r.executable = TEST_WORKER;
    r.arguments = std::move(arguments);
    r.log_file = log_;
    r.spec = "{}";
    r.phase_names = {"forward", "backward"};
    r.timeout = 60s;  // so that a mistake ends the test
    return r;
  }
  WorkerOutcome run(std::vector<std::string> arguments) {
    return supervise(request(std::move(arguments)), {}, nullptr);
  }
  std::string log_suffix() const { return "; log: " + log_.string(); }

  TemporaryFolder folder_;
  std::filesystem::path log_ = folder_ / "log";
};

TEST_F(Supervise, FinishesWithTheResult) {
  const WorkerOutcome outcome = run({"ok"});
  EXPECT_EQ(outcome.status, WorkerStatus::finished);
  EXPECT_EQ(outcome.reason, "");
  EXPECT_EQ(outcome.events.result, R"({"event":"result","status":"ok"})");
  ASSERT_EQ(outcome.events.others.size(), 1u);
  EXPECT_GT(outcome.wall_s, 0);
  EXPECT_GT(outcome.peak_rss_bytes, 0u);
}

// As under a profiler: a program between host and worker keeps the descriptors, and has its own at their numbers.
TEST_F(Supervise, AWorkerWhoseParentKeepsTheDescriptorsFetchesThem) {
  for (const char* own : {"3>&- 4>&- 5>&-", "3</dev/null 4</dev/null 5>&-"}) {
    const std::string between = std::string("(exec ") + own + "; \"$0\" ok); exit $?";
    WorkerRequest r = request({"-c", between, TEST_WORKER});
    r.executable = "/bin/sh";
    const WorkerOutcome outcome = supervise(r, {}, nullptr);
    EXPECT_EQ(outcome.status, WorkerStatus::finished) << outcome.reason << ::testing::PrintToString(outcome.log_tail);
    EXPECT_EQ(outcome.events.result, R"({"event":"result","status":"ok"})");
  }
}

TEST_F(Supervise, AnExitWithoutAResultIsACrashEvenWithCodeZero) {
  EXPECT_EQ(run({"exit", "3"}).reason, "exited with code 3 before it reported a result, in stage load" + log_suffix());
  const WorkerOutcome outcome = run({"exit", "0"});
  EXPECT_EQ(outcome.status, WorkerStatus::crashed);
  EXPECT_EQ(outcome.reason, "exited with code 0 before it reported a result, in stage load" + log_suffix());
}

TEST_F(Supervise, AResultDoesNotHideABadExit) {
  const WorkerOutcome outcome = run({"exit_after_result", "4"});
  EXPECT_EQ(outcome.status, WorkerStatus::crashed);
  EXPECT_EQ(outcome.reason, "exited with code 4 after it reported a result, in stage load" + log_suffix());
  EXPECT_TRUE(outcome.events.result.has_value());
}

TEST_F(Supervise, ASignalIsNamedWithItsPlace) {
  const WorkerOutcome outcome = run({"signal", std::to_string(SIGSEGV)});
  EXPECT_EQ(outcome.status, WorkerStatus::crashed);
  EXPECT_EQ(outcome.reason,
            "killed by SIGSEGV (invalid memory access) in stage measure, phase backward, step 4" + log_suffix());
  EXPECT_EQ(outcome.phase, "backward");
  EXPECT_EQ(outcome.where.total_steps, 10u);
}

TEST_F(Supervise, AKillFromOutsideIsNoOomUnlessTheKernelCountedOne) {
  const WorkerOutcome outcome = run({"signal", std::to_string(SIGKILL)});
  EXPECT_EQ(outcome.status, WorkerStatus::crashed);
  EXPECT_EQ(outcome.reason.find("killed by SIGKILL (killed from outside) in stage measure"), 0u) << outcome.reason;
}

TEST_F(Supervise, TheTimeoutSaysWhereItWas) {
  WorkerRequest r = request({"hang"});
  r.timeout = 300ms;
  const WorkerOutcome outcome = supervise(r, {}, nullptr);
  EXPECT_EQ(outcome.status, WorkerStatus::timeout);
  EXPECT_EQ(
      outcome.reason.find("no result after 0.3 s ([measure] timeout): in stage measure, phase backward, step 4; "), 0u)
      << outcome.reason;
}

TEST_F(Supervise, TheTimeoutAlsoEndsAWorkerThatIgnoresSigterm) {
  WorkerRequest r = request({"hang_deaf"});
  r.timeout = 300ms;
  const WorkerOutcome outcome = supervise(r, {}, nullptr);
  EXPECT_EQ(outcome.status, WorkerStatus::timeout);
}

TEST_F(Supervise, AWorkerThatHangsAfterItsResultIsATimeout) {
  WorkerRequest r = request({"hang_after_result"});
  r.timeout = 300ms;
  const WorkerOutcome outcome = supervise(r, {}, nullptr);
  EXPECT_EQ(outcome.status, WorkerStatus::timeout);
  EXPECT_EQ(outcome.reason.find("it reported a result but did not end within 0.3 s"), 0u) << outcome.reason;
  EXPECT_EQ(outcome.where.stage, Stage::destroy);
}

TEST_F(Supervise, AClosedPipeDoesNotEndTheWatch) {
  WorkerRequest r = request({"close_pipe"});
  r.timeout = 300ms;
  EXPECT_EQ(supervise(r, {}, nullptr).status, WorkerStatus::timeout);
}

TEST_F(Supervise, TheMemoryLimitSaysWhatWasHeld) {
  WorkerRequest r = request({"grow"});
  r.memory_limit_bytes = 200 << 20;
  const WorkerOutcome outcome = supervise(r, {}, nullptr);
  EXPECT_EQ(outcome.status, WorkerStatus::oom);
  EXPECT_NE(outcome.reason.find("is above [run] memory_limit 200 MiB in stage setup; held by kind: activations "),
            std::string::npos)
      << outcome.reason;
  EXPECT_NE(outcome.reason.find("asked for last: 16 MiB for 'block'"), std::string::npos) << outcome.reason;
  EXPECT_GT(outcome.peak_rss_bytes, 200u << 20);
}

TEST_F(Supervise, ATornLineIsNoResult) {
  const WorkerOutcome outcome = run({"torn"});
  EXPECT_EQ(outcome.status, WorkerStatus::crashed);
  EXPECT_EQ(outcome.events.others.size(), 1u);
  EXPECT_EQ(outcome.events.torn, R"({"event":"result","sta)");
}

TEST_F(Supervise, MalformedLinesAreKeptApart) {
  const WorkerOutcome outcome = run({"malformed"});
  EXPECT_EQ(outcome.status, WorkerStatus::finished);
  EXPECT_EQ(outcome.events.malformed, (std::vector<std::string>{"not json", "[1,2]"}));
}

TEST_F(Supervise, APluginThatClosesAndWritesEverywhereDoesNotReachTheChannel) {
  const WorkerOutcome outcome = run({"vandal"});
  EXPECT_EQ(outcome.status, WorkerStatus::finished) << outcome.reason;
  EXPECT_TRUE(outcome.events.malformed.empty());
}

TEST_F(Supervise, KeepsTheEndOfTheLogOfThisWorkerAlone) {
  std::ofstream(log_) << "of an earlier worker\n";
  const WorkerOutcome outcome = run({"noisy"});
  ASSERT_EQ(outcome.log_tail.size(), 20u);
  EXPECT_EQ(outcome.log_tail.front(), "line 12");
  EXPECT_EQ(outcome.log_tail.back(), "?? binary");
  EXPECT_EQ(run({"ok"}).log_tail, std::vector<std::string>{});
}

TEST_F(Supervise, KeepsBeginningAndEndOfALogThatIsTooLong) {
  WorkerRequest r = request({"flood", "300"});
  r.log_limit_bytes = 1 << 20;
  const WorkerOutcome outcome = supervise(r, {}, nullptr);
  EXPECT_EQ(outcome.signal, SIGKILL) << outcome.reason;
  EXPECT_EQ(outcome.log_tail.back(), "the very last line");
  EXPECT_LE(std::filesystem::file_size(log_), r.log_limit_bytes + 256);
  EXPECT_GT(std::filesystem::file_size(log_), r.log_limit_bytes - 8192);
  EXPECT_EQ(outcome.log_note.find("the log was cut: 31352"), 0u) << outcome.log_note;
  EXPECT_NE(outcome.log_note.find("it passed [run] log_limit (1 MiB)"), std::string::npos) << outcome.log_note;
  EXPECT_EQ(run({"noisy"}).log_note, "");
}

TEST_F(Supervise, LeavesNoChildBehindInsideOrOutsideTheGroup) {
  const WorkerOutcome outcome = run({"children"});
  EXPECT_EQ(outcome.status, WorkerStatus::finished) << outcome.reason;
  ASSERT_EQ(outcome.events.others.size(), 1u);
  const auto children = nlohmann::json::parse(outcome.events.others[0]);
  for (const char* which : {"inside", "outside"}) {
    EXPECT_EQ(kill(children[which].get<pid_t>(), 0), -1) << which;
    EXPECT_EQ(errno, ESRCH) << which;
  }
}

TEST_F(Supervise, AnInterruptEndsTheWorker) {
  const InterruptHandler interrupts;
  WorkerRequest r = request({"hang"});
  r.wake_fd = interrupts.wake_fd();
  const WorkerOutcome outcome = supervise(
      r,
      [sent = false](const BoardView& view) mutable {
        if (view.stage == Stage::measure && !std::exchange(sent, true)) raise(SIGINT);
      },
      interrupts.count());
  EXPECT_EQ(outcome.status, WorkerStatus::interrupted);
  EXPECT_EQ(outcome.reason, "the run was interrupted in stage measure, phase backward, step 4");
}

TEST_F(Supervise, ASecondInterruptDoesNotWaitForADeafWorker) {
  const InterruptHandler interrupts;
  const WorkerOutcome outcome = supervise(
      request({"hang_deaf"}),
      [sent = false](const BoardView& view) mutable {
        if (view.stage != Stage::measure || std::exchange(sent, true)) return;
        raise(SIGINT);
        raise(SIGINT);
      },
      interrupts.count());
  EXPECT_EQ(outcome.status, WorkerStatus::interrupted);
}

TEST_F(Supervise, ACallbackThatThrowsLeavesNoWorker) {
  // The exception passes through, so the worker's end shows in the test program's having no child.
  EXPECT_THROW(supervise(
                   request({"hang_deaf"}), [](const BoardView&) { throw std::runtime_error("stop"); }, nullptr),
               std::runtime_error);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(Supervise, ThrowsWhenTheWorkerCannotBeStarted) {
  WorkerRequest r = request({});
  r.executable = folder_ / "none";
  EXPECT_THROW(supervise(r, {}, nullptr), LaunchError);
}

}  // namespace
}  // namespace assay::host
