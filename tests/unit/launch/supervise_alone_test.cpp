// A worker that stands alone: a group of one, in which no reason names a rank.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <tuple>

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

constexpr const char* kept = "after it had reported its result, which is kept, the process ";

TEST_F(SuperviseAlone, ABadExitTakesNoResultAway) {
  const WorkerOutcome outcome = run({"exit_after_result", "4"});
  EXPECT_EQ(outcome.status, WorkerStatus::finished);
  EXPECT_EQ(outcome.reason, "");
  EXPECT_EQ(outcome.end_note, std::string(kept) + "exited with code 4, in stage load" + log_suffix());
  EXPECT_TRUE(outcome.events.result.has_value());
}

TEST_F(SuperviseAlone, ADeathAfterTheResultIsNotedWithItsPlace) {
  const std::vector<std::pair<const char*, const char*>> places{{"destroy", "in stage destroy"},
                                                                {"deinit", "in stage deinit"},
                                                                {"done", "at its exit, after destroy and deinit"}};
  for (const auto& [stage, place] : places) {
    const WorkerOutcome outcome =
        run({"play", "result:ok", std::string("enter:") + stage, "signal:" + std::to_string(SIGSEGV)});
    EXPECT_EQ(outcome.status, WorkerStatus::finished) << stage;
    EXPECT_EQ(outcome.end_note,
              std::string(kept) + "was killed by SIGSEGV (invalid memory access), " + place + log_suffix());
  }
}

TEST_F(SuperviseAlone, AnExitOutOfDestroyIsNotedEvenWithCodeZero) {
  EXPECT_EQ(run({"play", "result:ok", "enter:destroy", "exit:0"}).end_note,
            std::string(kept) + "exited with code 0, in stage destroy" + log_suffix());
  EXPECT_EQ(run({"play", "result:ok", "enter:done", "exit:0"}).end_note, "");
}

TEST_F(SuperviseAlone, ASignalIsNamedWithItsPlace) {
  const WorkerOutcome outcome = run({"signal", std::to_string(SIGSEGV)});
  EXPECT_EQ(outcome.status, WorkerStatus::crashed);
  EXPECT_EQ(outcome.reason,
            "killed by SIGSEGV (invalid memory access) in stage measure, phase backward, step 5" + log_suffix());
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
      outcome.reason.find("no result after 0.3 s ([measure] timeout): in stage measure, phase backward, step 5; "), 0u)
      << outcome.reason;
}

TEST_F(SuperviseAlone, TheTimeoutAlsoEndsAWorkerThatIgnoresSigterm) {
  GroupRequest r = request({"hang_deaf"});
  r.timeout = 300ms;
  const WorkerOutcome outcome = run(r);
  EXPECT_EQ(outcome.status, WorkerStatus::timeout);
}

TEST_F(SuperviseAlone, AWorkerThatHangsAfterItsResultIsKilledAndItsResultKept) {
  // The time of the case is for its result: what comes after has its own limit, be it shorter or longer.
  const std::vector<std::tuple<std::chrono::milliseconds, std::chrono::milliseconds, const char*>> limits{
      {60s, 300ms, "0.3 s"}, {2s, 3s, "3.0 s"}};
  for (const auto& [timeout, teardown_timeout, words] : limits) {
    GroupRequest r = request({"play", "result:ok", "enter:destroy", "deaf", "hang"});
    r.timeout = timeout;
    r.workers[0].teardown_timeout = teardown_timeout;
    const WorkerOutcome outcome = run(r);
    EXPECT_EQ(outcome.status, WorkerStatus::finished) << outcome.reason;
    EXPECT_EQ(outcome.end_note, std::string(kept) + "did not end within " + words +
                                    " ([run] teardown_timeout) and was killed, in stage destroy" + log_suffix());
    EXPECT_EQ(outcome.where.stage, Stage::destroy);
    EXPECT_TRUE(outcome.events.result.has_value());
  }
}

// With several ranks it may wait for another one that still verifies.
TEST_F(SuperviseAlone, TheTimeToEndBeginsWithDestroy) {
  GroupRequest r = request({"play", "result:ok", "hang"});
  r.timeout = 2s;
  r.workers[0].teardown_timeout = 10ms;
  const WorkerOutcome outcome = run(r);
  EXPECT_EQ(outcome.status, WorkerStatus::finished);
  EXPECT_NE(outcome.end_note.find("the process did not end within 2.0 s ([measure] timeout): in stage load"),
            std::string::npos)
      << outcome.end_note;
}

TEST_F(SuperviseAlone, AnInterruptAfterTheResultTakesNothingAway) {
  const InterruptHandler interrupts;
  GroupRequest r = request({"play", "result:ok", "enter:destroy", "hang"});
  r.wake_fd = interrupts.wake_fd();
  r.workers[0].on_event = [](const std::string& line) {
    if (line.find("result") != std::string::npos) raise(SIGINT);
  };
  const GroupOutcome outcome = supervise_group(r, {}, interrupts.count());
  EXPECT_TRUE(outcome.interrupted);
  EXPECT_EQ(outcome.workers[0].status, WorkerStatus::finished);
  EXPECT_NE(outcome.workers[0].end_note.find("was stopped: the run was interrupted in stage "), std::string::npos)
      << outcome.workers[0].end_note;
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

TEST_F(SuperviseAlone, AMemoryLimitBelowWhatTheProcessItselfHoldsNamesThat) {
  GroupRequest r = request({"play", "enter:load", "nap:200", "enter:create", "hang"});
  r.workers[0].memory_limit_bytes = 1 << 20;
  const WorkerOutcome outcome = run(r);
  EXPECT_EQ(outcome.status, WorkerStatus::oom);
  EXPECT_NE(outcome.reason.find("is above [run] memory_limit 1 MiB in stage create; "), std::string::npos)
      << outcome.reason;
  EXPECT_NE(outcome.reason.find("; the process held about "), std::string::npos) << outcome.reason;
  EXPECT_NE(outcome.reason.find("so every case needs a larger limit"), std::string::npos);
}

TEST_F(SuperviseAlone, AMemoryLimitThatTheVerificationPassesSaysThatTheCaseFits) {
  GroupRequest r = request({"grow_in_verify"});
  r.workers[0].memory_limit_bytes = 200 << 20;
  const WorkerOutcome outcome = run(r);
  EXPECT_EQ(outcome.status, WorkerStatus::oom);
  EXPECT_NE(outcome.reason.find("in stage verify; "), std::string::npos) << outcome.reason;
  EXPECT_NE(outcome.reason.find("; the case itself held "), std::string::npos) << outcome.reason;
  // The figure from which on a limit can be enough.
  const std::string before_figure = "its verification needs a limit above the ";
  const std::size_t figure = outcome.reason.find(before_figure);
  ASSERT_NE(figure, std::string::npos) << outcome.reason;
  EXPECT_GE(std::stod(outcome.reason.substr(figure + before_figure.size())), 200) << outcome.reason;
}

TEST_F(SuperviseAlone, TheMemoryLimitIsOfTheWorkerAndOfWhatItStarts) {
  GroupRequest r = request({"grow_in_a_child"});
  r.workers[0].memory_limit_bytes = 200 << 20;
  const WorkerOutcome outcome = run(r);
  EXPECT_EQ(outcome.status, WorkerStatus::oom);
  EXPECT_NE(outcome.reason.find(" of it of processes that it has started, is above [run] memory_limit 200 MiB in stage "
                                "measure"),
            std::string::npos)
      << outcome.reason;
  EXPECT_GT(outcome.peak_rss_bytes, 200u << 20);
}

TEST_F(SuperviseAlone, WhatAChildSharesWithTheWorkerCountsOnceForTheLimit) {
  GroupRequest r = request({"share_with_a_child"});
  r.workers[0].memory_limit_bytes = 200 << 20;
  const WorkerOutcome outcome = run(r);
  EXPECT_EQ(outcome.status, WorkerStatus::finished) << outcome.reason;
  EXPECT_GT(outcome.peak_with_children_bytes, (96u + 48u) << 20);
#ifndef __SANITIZE_ADDRESS__  // which looks for leaks from its own child when the worker exits
  EXPECT_EQ(run({"ok"}).peak_with_children_bytes, 0u);
#endif
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

// setsid, a double fork, and their own environment: only their ancestor shows whose they are.
TEST_F(SuperviseAlone, LeavesNoStrayBehindAndNamesThem) {
  for (const char* end : {"exit:0", "hang"}) {
    GroupRequest r = request({"play", "strays:2", "step:4", "result:ok", "enter:done", end});
    r.workers[0].teardown_timeout = 300ms;
    const WorkerOutcome outcome = run(r);
    EXPECT_EQ(outcome.status, WorkerStatus::finished) << outcome.reason;
    ASSERT_EQ(outcome.events.others.size(), 1u);
    const auto strays = nlohmann::json::parse(outcome.events.others[0])["strays"];
    ASSERT_EQ(strays.size(), 2u);
    for (const auto& stray : strays) {
      EXPECT_EQ(kill(stray.get<pid_t>(), 0), -1);
      EXPECT_EQ(errno, ESRCH);
    }
    EXPECT_EQ(outcome.left_note, "the workload left 2 processes running, which were ended with the case: sleep, sleep");
  }
  EXPECT_EQ(run({"ok"}).left_note, "");
}

TEST_F(SuperviseAlone, ATimeoutLeavesNoStrayBehind) {
  GroupRequest r = request({"play", "strays:1", "step:4", "hang"});
  r.timeout = 3s;
  const WorkerOutcome outcome = run(r);
  EXPECT_EQ(outcome.status, WorkerStatus::timeout);
  const auto strays = nlohmann::json::parse(outcome.events.others.at(0))["strays"];
  EXPECT_EQ(kill(strays.at(0).get<pid_t>(), 0), -1);
  EXPECT_EQ(outcome.left_note, "the workload left a process running, which was ended with the case: sleep");
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
  EXPECT_EQ(outcome.reason, "the run was interrupted in stage measure, phase backward, step 5");
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
