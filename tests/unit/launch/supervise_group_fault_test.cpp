// Which rank is named when one fails, hangs or is lost.
#include <signal.h>

#include <algorithm>

#include "group_fixture.hpp"
#include "launch/supervise_group.hpp"

namespace assay::host::launch {
namespace {

using namespace std::chrono_literals;
using enum WorkerStatus;

std::string signal_line(int number) { return "signal:" + std::to_string(number); }

TEST_F(SuperviseGroup, ASignalTakesTheOthersAlong) {
  for (const int number : {SIGSEGV, SIGKILL}) {
    told_.clear();
    GroupRequest request = group({{"step:4", "hang"}, {"step:4", signal_line(number)}, {"step:4", "hang"}});
    request.settle = 10ms;
    const GroupOutcome outcome = run(request);
    ASSERT_TRUE(outcome.failure.has_value());
    EXPECT_EQ(outcome.failure->kind, number == SIGKILL ? FailureKind::killed : FailureKind::died);
    EXPECT_EQ(outcome.failure->worker, 1u);
    EXPECT_EQ(outcome.failure->reason,
              std::string("killed by ") +
                  (number == SIGKILL ? "SIGKILL (killed from outside)" : "SIGSEGV (invalid memory access)") +
                  " in stage measure, phase backward, step 5" + suffix(1));
    EXPECT_EQ(outcome.failure->for_others, "rank 1: " + outcome.failure->reason);
    EXPECT_EQ(told_, std::vector{outcome.failure->for_others});
    EXPECT_EQ(statuses(outcome), (std::vector{ended, crashed, ended}));
    EXPECT_EQ(outcome.workers[1].reason, outcome.failure->reason);
    EXPECT_EQ(outcome.workers[1].signal, number);
    const std::string& other = outcome.workers[2].reason;
    EXPECT_EQ(other.find("ended because another rank failed (" + outcome.failure->for_others + "); it was in stage "),
              0u)
        << other;
    EXPECT_TRUE(other.ends_with(suffix(2))) << other;
  }
}

TEST_F(SuperviseGroup, AnExitWithoutAResultIsAFailureEvenWithCodeZero) {
  for (const char* code : {"0", "3"}) {
    GroupRequest request = group({{"hang"}, {"hang"}, {"setup", std::string("exit:") + code}});
    request.settle = 10ms;
    const GroupOutcome outcome = run(request);
    ASSERT_TRUE(outcome.failure.has_value());
    EXPECT_EQ(outcome.failure->kind, FailureKind::died);
    EXPECT_EQ(outcome.failure->worker, 2u);
    EXPECT_EQ(outcome.failure->for_others, std::string("rank 2: exited with code ") + code +
                                               " before it reported a result, in stage setup" + suffix(2));
    EXPECT_EQ(statuses(outcome), (std::vector{ended, ended, crashed}));
  }
}

TEST_F(SuperviseGroup, DeafRanksAreKilled) {
  GroupRequest request = group({{"deaf", "note:deaf", "step:4", "hang"}, {wait_for_go(), "exit:3"}});
  request.workers[0].on_event = [this](const std::string&) { go(); };
  request.settle = 10ms;
  request.end_grace = 100ms;
  const GroupOutcome outcome = run(request);
  EXPECT_EQ(statuses(outcome), (std::vector{ended, crashed}));
  EXPECT_EQ(outcome.workers[0].signal, SIGKILL);
}

TEST_F(SuperviseGroup, TheOthersHaveTimeToReport) {
  GroupRequest request = group({{"until_term", "note:aborted", "result:victim"}, {wait_for_go(), "exit:3"}});
  request.workers[0].on_event = [this](const std::string&) { go(); };
  request.settle = 10ms;
  request.end_grace = 60s;
  const GroupOutcome outcome = run(request);
  EXPECT_EQ(outcome.failure->worker, 1u);
  EXPECT_EQ(statuses(outcome), (std::vector{finished, crashed}));
  EXPECT_EQ(outcome.workers[0].events.others.size(), 2u);
  EXPECT_TRUE(outcome.workers[0].events.result.has_value());
}

// Asked to end while it takes itself down, it goes on to its end: there is nothing to be noted of that.
TEST_F(SuperviseGroup, ARankThatEndsWellAfterItsFailureHasNoNote) {
  GroupRequest request = group(
      {{"step:2", "hang"}, {"hold_term", "step:2", "result:failed", "enter:destroy", "until_term", "enter:done"}});
  request.settle = 10ms;
  request.end_grace = 60s;
  const GroupOutcome outcome = run(request);
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failure->worker, 1u);
  EXPECT_EQ(outcome.workers[1].status, finished);
  EXPECT_EQ(outcome.workers[1].end_note, "");
}

TEST_F(SuperviseGroup, AReportedFailureEndsTheGroup) {
  GroupRequest request = group({{"step:2", "hang"}, {"step:2", "result:failed"}});
  request.settle = 10ms;
  const GroupOutcome outcome = run(request);
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failure->kind, FailureKind::reported);
  EXPECT_EQ(outcome.failure->reason, "loss is not finite");
  EXPECT_EQ(outcome.failure->for_others, "rank 1: loss is not finite");
  EXPECT_EQ(outcome.workers[0].status, ended);
  // `finished`, or `ended` where its exit took longer than the settling.
  EXPECT_TRUE(outcome.workers[1].events.result.has_value());
}

TEST_F(SuperviseGroup, OneThatHangsAfterItsReportIsEnded) {
  GroupRequest request = group({{"result:failed", "hang"}});
  request.settle = 10ms;
  const GroupOutcome outcome = run(request);
  EXPECT_EQ(outcome.failure->kind, FailureKind::reported);
  EXPECT_EQ(statuses(outcome), std::vector{ended});
  EXPECT_EQ(outcome.workers[0].reason.find("ended after it had reported a failure (loss is not finite)"), 0u)
      << outcome.workers[0].reason;
}

// The worst case: all that can be seen first are the reports of those that lost their peer.
TEST_F(SuperviseGroup, AVictimThatIsNoticedFirstIsNotTheCulprit) {
  const std::vector<std::pair<Script, FailureKind>> ends = {{{signal_line(SIGKILL)}, FailureKind::killed},
                                                            {{signal_line(SIGSEGV)}, FailureKind::died},
                                                            {{"exit:0"}, FailureKind::died},
                                                            {{"result:failed"}, FailureKind::reported}};
  for (const auto& [end, kind] : ends) {
    std::filesystem::remove(go_);
    Script culprit{"step:4", wait_for_go()};
    culprit.insert(culprit.end(), end.begin(), end.end());
    GroupRequest request = group({{"step:4", "result:victim"}, culprit, {"step:4", "result:victim"}});
    request.judge_result = [this, judge = request.judge_result](const std::string& line) {
      go();
      return judge(line);
    };
    const GroupOutcome outcome = run(request);
    ASSERT_TRUE(outcome.failure.has_value());
    EXPECT_EQ(outcome.failure->worker, 1u) << outcome.failure->reason;
    EXPECT_EQ(outcome.failure->kind, kind) << name_of(outcome.failure->kind);
    EXPECT_EQ(told_.size(), 1u);
    told_.clear();
  }
}

TEST_F(SuperviseGroup, AKillIsNamedBeforeAnExitThatItLedTo) {
  GroupRequest request = group({{"step:4", "exit:1"}, {"step:4", wait_for_go(), signal_line(SIGKILL)}});
  request.poll_outside = [this]() -> std::optional<std::string> {
    if (tagged_processes().size() == 1) go();
    return std::nullopt;
  };
  const GroupOutcome outcome = run(request);
  EXPECT_EQ(outcome.failure->worker, 1u) << outcome.failure->reason;
  EXPECT_EQ(statuses(outcome), std::vector(2, crashed));
}

// A process that the kernel takes down has closed its connections already, and is waited for.
TEST_F(SuperviseGroup, AnEndThatTakesItsTimeIsWaitedFor) {
  GroupRequest request =
      group({{wait_for_go(), "result:victim"},
             {"step:4", "vanish", "note:going", "wait:" + (folder_ / "gone").string(), signal_line(SIGKILL)}});
  request.workers[1].on_event = [this](const std::string&) { go(); };
  request.settle = 10ms;
  request.end_grace = 100s;
  // The second tick after the victim's report: the time to settle is over by then.
  bool reported = false;
  request.judge_result = [&reported, judge = request.judge_result](const std::string& line) {
    reported = true;
    return judge(line);
  };
  request.poll_outside = [&, ticks = 0]() mutable -> std::optional<std::string> {
    if (reported && ++ticks == 2) std::ofstream(folder_ / "gone") << "";
    return std::nullopt;
  };
  const GroupOutcome outcome = run(request);
  EXPECT_EQ(outcome.failure->kind, FailureKind::killed) << outcome.failure->reason;
  EXPECT_EQ(outcome.failure->worker, 1u);
}

TEST_F(SuperviseGroup, OfVictimsAloneTheFirstIsNamed) {
  const GroupOutcome outcome = run(group({{"result:victim"}, {"result:victim"}}));
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failure->kind, FailureKind::victim);
  EXPECT_EQ(told_.size(), 1u);
}

// Rank 1 hangs, so its peers run into the limit of their communicator. Rank 2 is further behind, but alive.
TEST_F(SuperviseGroup, ASilentRankIsTheCulpritOfItsVictims) {
  GroupRequest request = group(
      {{"step:4", wait_for_go(), "result:victim"}, {"step:4", "note:hangs", "hang"}, {"step:3", "note:lives", "beat"}});
  int notes = 0;
  for (const std::size_t rank : {1, 2})
    request.workers[rank].on_event = [&](const std::string&) {
      if (++notes == 2) go();
    };
  request.settle = 200ms;
  const GroupOutcome outcome = run(request);
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failure->kind, FailureKind::silent);
  EXPECT_EQ(outcome.failure->worker, 1u);
  EXPECT_EQ(
      outcome.failure->for_others.find("rank 1: no sign of life since rank 0 reported that it had lost a rank: in "
                                       "stage measure, phase backward, step 5; last sign of life "),
      0u)
      << outcome.failure->reason;
  EXPECT_EQ(statuses(outcome), (std::vector{finished, timeout, ended}));
}

TEST_F(SuperviseGroup, TheTimeoutNamesTheRankThatIsFurthestBehind) {
  GroupRequest request = group({{"step:4", "hang"}, {"step:4", "hang"}, {"step:3", "hang"}, {"result:ok"}});
  request.timeout = 3s;  // of which a loaded machine may need some for the start
  const GroupOutcome outcome = run(request);
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failure->kind, FailureKind::overdue);
  EXPECT_EQ(outcome.failure->worker, 2u);
  EXPECT_EQ(
      outcome.failure->for_others.find("rank 2: no result after 3.0 s ([measure] timeout): in stage measure, phase "
                                       "backward, step 4; last sign of life "),
      0u)
      << outcome.failure->reason;
  EXPECT_EQ(statuses(outcome), (std::vector{ended, ended, timeout, finished}));
  EXPECT_EQ(told_, std::vector{outcome.failure->for_others});
}

TEST_F(SuperviseGroup, AmongEqualsTheOldestSignOfLifeIsTheCulprit) {
  // Rank 1 is at the step first: its peers start when it is there.
  GroupRequest request =
      group({{wait_for_go(), "step:4", "hang"}, {"step:4", "note:there", "hang"}, {wait_for_go(), "step:4", "hang"}});
  request.workers[1].on_event = [this](const std::string&) { go(); };
  request.stall_timeout = 300ms;
  const GroupOutcome outcome = run(request);
  EXPECT_EQ(outcome.failure->worker, 1u) << outcome.failure->reason;
}

TEST_F(SuperviseGroup, AStallNamesTheRankThatTheOthersWaitFor) {
  GroupRequest request = group({{"step:5", "hang"}, {"step:4", "hang"}, {"step:5", "hang"}, {"step:5", "hang"}});
  request.stall_timeout = 300ms;
  const GroupOutcome outcome = run(request);
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failure->kind, FailureKind::overdue);
  EXPECT_EQ(
      outcome.failure->for_others.find("rank 1: no rank has shown a sign of life for 0.3 s ([run] stall_timeout), and "
                                       "this one is the furthest behind: in stage measure, phase backward, step 5; "
                                       "last sign of life "),
      0u)
      << outcome.failure->reason;
  EXPECT_EQ(statuses(outcome), (std::vector{ended, timeout, ended, ended}));
}

// At the same step, whoever gave its last sign of life first.
TEST_F(SuperviseGroup, ARankThatWaitsIsNotWhatTheOthersWaitFor) {
  GroupRequest request = group(
      {{"step:5", "waits", "hang"}, {"step:5", "hang"}, {"step:5", "waits", "hang"}, {"step:5", "waits", "hang"}});
  request.stall_timeout = 300ms;
  const GroupOutcome outcome = run(request);
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failure->worker, 1u) << outcome.failure->reason;
}

// Neither a rank in set-up, for which the others wait, nor one that is alive is a stall: the timeout ends these.
TEST_F(SuperviseGroup, NoStallOutsideOfTheStepsOrWithASignOfLife) {
  for (const Script& other : {Script{"setup", "hang"}, Script{"step:5", "beat"}}) {
    GroupRequest request = group({{"step:4", "hang"}, other});
    request.stall_timeout = 800ms;
    request.timeout = 2s;
    const GroupOutcome outcome = run(request);
    EXPECT_NE(outcome.failure->reason.find("[measure] timeout"), std::string::npos) << outcome.failure->reason;
  }
}

TEST_F(SuperviseGroup, TheMemoryLimitOfOneRankEndsAll) {
  GroupRequest request = group({{"step:4", "hang"}, {}});
  request.workers[1].arguments = {"grow"};
  for (WorkerRequest& r : request.workers) r.memory_limit_bytes = 200 << 20;
  request.settle = 10ms;
  const GroupOutcome outcome = run(request);
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failure->kind, FailureKind::killed);
  EXPECT_NE(outcome.failure->reason.find("is above [run] memory_limit 200 MiB in stage setup"), std::string::npos)
      << outcome.failure->reason;
  EXPECT_EQ(statuses(outcome), (std::vector{ended, oom}));
}

TEST_F(SuperviseGroup, AFailureOnAnotherMachineEndsAll) {
  GroupRequest request = group({{"step:4", "hang"}, {"step:4", "hang"}});
  request.settle = 10ms;
  request.poll_outside = [asked = 0]() mutable -> std::optional<std::string> {
    EXPECT_EQ(asked++, 0) << "asked again";
    return "rank 5: killed by SIGKILL";
  };
  const GroupOutcome outcome = run(request);
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failure->kind, FailureKind::outside);
  EXPECT_FALSE(outcome.failure->worker.has_value());
  EXPECT_EQ(outcome.failure->reason, "rank 5: killed by SIGKILL");
  EXPECT_EQ(outcome.failure->for_others, outcome.failure->reason);
  EXPECT_EQ(statuses(outcome), std::vector(2, ended));
  EXPECT_EQ(outcome.workers[1].reason.find("ended because another rank failed (rank 5: killed by SIGKILL); "), 0u);
}

TEST_F(SuperviseGroup, WhatAnotherMachineSaysYieldsToADeathHereAndHidesVictims) {
  for (const auto& [line, kind] : {std::pair{signal_line(SIGKILL), FailureKind::killed},
                                   std::pair{std::string("result:victim"), FailureKind::outside}}) {
    std::filesystem::remove(go_);
    GroupRequest request = group({{wait_for_go(), line}});
    request.poll_outside = [this]() -> std::optional<std::string> {
      go();
      return "rank 5: lost a rank";
    };
    EXPECT_EQ(run(request).failure->kind, kind);
  }
}

TEST_F(SuperviseGroup, EachRankHasItsOwnLog) {
  GroupRequest request = group({{"unknown 0"}, {"unknown 1"}});
  const GroupOutcome outcome = run(request);
  for (std::size_t rank = 0; rank < 2; ++rank)
    EXPECT_EQ(outcome.workers[rank].log_tail,
              std::vector<std::string>{"unknown line 'unknown " + std::to_string(rank) + "'"});
}

}  // namespace
}  // namespace assay::host::launch
