#include "launch/supervise_group.hpp"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "group_fixture.hpp"
#include "launch/signals.hpp"

namespace assay::host::launch {
namespace {

using namespace std::chrono_literals;
using enum WorkerStatus;

TEST_F(SuperviseGroup, AllRanksFinish) {
  const GroupOutcome outcome = run(
      group({{"step:1", "note:a", "result:ok0"}, {"step:2", "result:ok1"}, {"result:ok2"}, {"step:3", "result:ok3"}}));
  EXPECT_FALSE(outcome.failure.has_value());
  EXPECT_FALSE(outcome.interrupted);
  EXPECT_EQ(statuses(outcome), std::vector(4, finished));
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(outcome.workers[rank].reason, "");
    EXPECT_EQ(outcome.workers[rank].events.result.value_or(""),
              R"({"event":"result","status":"ok)" + std::to_string(rank) + "\"}");
  }
  EXPECT_EQ(outcome.workers[0].events.others.size(), 1u);
  EXPECT_EQ(told_, std::vector<std::string>{});
}

TEST_F(SuperviseGroup, ARankThatHasFinishedWaitsForNobody) {
  // Rank 0 is gone, seen by its process, before rank 1 goes on.
  GroupRequest request = group({{"note:up", "result:ok"}, {wait_for_go(), "result:ok"}});
  request.poll_outside = [this]() -> std::optional<std::string> {
    if (tagged_processes().size() == 1) go();
    return std::nullopt;
  };
  const GroupOutcome outcome = run(request);
  EXPECT_EQ(statuses(outcome), std::vector(2, finished));
}

TEST_F(SuperviseGroup, SixtyFourRanks) {
  std::vector<Script> scripts(64, Script{"step:1", wait_for_go(), "step:2", "result:ok"});
  GroupRequest request = group(scripts);
  const GroupOutcome outcome = supervise_group(
      request, [this](std::int32_t, const BoardView&) { go(); }, nullptr);
  EXPECT_EQ(statuses(outcome), std::vector(64, finished));
  EXPECT_FALSE(outcome.failure.has_value());
}

TEST_F(SuperviseGroup, ADeathAmongSixtyFourIsFound) {
  std::vector<Script> scripts(64, Script{"step:1", "hang"});
  scripts[41] = {"step:1", wait_for_go(), "signal:" + std::to_string(SIGKILL)};
  GroupRequest request = group(scripts);
  request.settle = 10ms;
  const GroupOutcome outcome = supervise_group(
      request,
      [this](std::int32_t, const BoardView& view) {
        if (view.step == 1) go();
      },
      nullptr);
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failure->worker, 41u);
  EXPECT_EQ(std::count_if(outcome.workers.begin(), outcome.workers.end(),
                          [](const WorkerOutcome& worker) { return worker.status == ended; }),
            63);
}

TEST_F(SuperviseGroup, ShowsTheRankThatIsFurthestBehind) {
  GroupRequest request = group({{"step:5", wait_for_go(), "result:ok"},
                                {"step:4", wait_for_go(), "result:ok"},
                                {"step:6", wait_for_go(), "result:ok"}});
  std::int32_t last_rank = -1;
  std::uint64_t last_step = 0;
  supervise_group(
      request,
      [&](std::int32_t rank, const BoardView& view) {
        if (view.stage != Stage::measure || view.step < 4) return;  // all have arrived once the slowest one has
        if (!std::filesystem::exists(go_)) last_rank = rank, last_step = view.step;
        go();
      },
      nullptr);
  EXPECT_EQ(last_rank, 1);
  EXPECT_EQ(last_step, 4u);
}

TEST_F(SuperviseGroup, AnInterruptEndsAllRanks) {
  const InterruptHandler interrupts;
  GroupRequest request = group({{"step:4", "hang"}, {"step:4", "hang"}, {"step:4", "hang"}});
  request.wake_fd = interrupts.wake_fd();
  const GroupOutcome outcome = supervise_group(
      request,
      [sent = false](std::int32_t, const BoardView& view) mutable {
        if (view.step == 4 && !std::exchange(sent, true)) raise(SIGINT);
      },
      interrupts.count());
  EXPECT_TRUE(outcome.interrupted);
  EXPECT_FALSE(outcome.failure.has_value());
  EXPECT_EQ(statuses(outcome), std::vector(3, interrupted));
  EXPECT_EQ(outcome.workers[1].reason, "the run was interrupted in stage measure, phase backward, step 5");
  EXPECT_EQ(told_, std::vector<std::string>{});
}

TEST_F(SuperviseGroup, ASecondInterruptDoesNotWaitForDeafRanks) {
  const InterruptHandler interrupts;
  GroupRequest request = group({{"deaf", "step:4", "hang"}, {"deaf", "step:4", "hang"}});
  request.wake_fd = interrupts.wake_fd();
  const GroupOutcome outcome = supervise_group(
      request,
      [sent = false](std::int32_t, const BoardView& view) mutable {
        if (view.step != 4 || std::exchange(sent, true)) return;
        raise(SIGINT);
        raise(SIGINT);
      },
      interrupts.count());
  EXPECT_TRUE(outcome.interrupted);
  EXPECT_EQ(statuses(outcome), std::vector(2, interrupted));
}

TEST_F(SuperviseGroup, AnInterruptWhileAFailureSettlesDoesNotHideIt) {
  const InterruptHandler interrupts;
  GroupRequest request = group({{"step:4", "hang"}, {"result:failed"}});
  request.wake_fd = interrupts.wake_fd();
  request.judge_result = [judge = request.judge_result](const std::string& line) {
    raise(SIGINT);
    return judge(line);
  };
  const GroupOutcome outcome = supervise_group(request, {}, interrupts.count());
  EXPECT_FALSE(outcome.interrupted);
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failure->worker, 1u);
  EXPECT_EQ(outcome.workers[0].status, ended);
  EXPECT_EQ(told_.size(), 1u);
}

TEST_F(SuperviseGroup, OneThatCannotBeStartedEndsThoseBefore) {
  GroupRequest request = group({{"deaf", "hang"}, {"deaf", "hang"}, {}, {"hang"}});
  request.ranks = {4, 5, 6, 7};
  request.workers[2].executable = folder_ / "no-such-program";
  try {
    run(request);
    FAIL() << "it started";
  } catch (const WorkerStartError& e) {
    EXPECT_EQ(e.rank, 6);
    EXPECT_EQ(std::string(e.what()).find("cannot start the worker"), 0u) << e.what();
    EXPECT_NE(std::string(e.what()).find("no-such-program"), std::string::npos) << e.what();
  }
  EXPECT_FALSE(std::filesystem::exists(log_of(3))) << "a rank was started after the failure";
}

TEST_F(SuperviseGroup, ACallbackThatThrowsLeavesNoWorker) {
  GroupRequest request = group({{"deaf", "hang"}, {"deaf", "hang"}});
  EXPECT_THROW(supervise_group(
                   request, [](std::int32_t, const BoardView&) { throw std::runtime_error("stop"); }, nullptr),
               std::runtime_error);
}

TEST_F(SuperviseGroup, EachRankIsBoundToItsProcessors) {
  cpu_set_t usable;
  ASSERT_EQ(sched_getaffinity(0, sizeof usable, &usable), 0);
  std::vector<int> processors;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor)
    if (CPU_ISSET(processor, &usable)) processors.push_back(processor);
  GroupRequest request = group({{}, {}});
  request.judge_result = {};
  request.workers[0].processors = {processors.front()};
  request.workers[1].processors = {processors.back()};
  for (WorkerRequest& r : request.workers) r.arguments = {"surroundings"};
  const GroupOutcome outcome = run(request);
  for (std::size_t rank = 0; rank < 2; ++rank)
    EXPECT_NE(outcome.workers[rank].events.result.value_or("").find(
                  "\"processors\":[" + std::to_string(request.workers[rank].processors[0]) + "]"),
              std::string::npos);
}

}  // namespace
}  // namespace assay::host::launch
