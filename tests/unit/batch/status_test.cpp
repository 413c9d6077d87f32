#include "batch/status.hpp"

#include <gtest/gtest.h>

#include "batch_run.hpp"

namespace assay::host::batch {
namespace {

constexpr double now_s = 3000;
using Queue = std::optional<std::vector<QueuedJob>>;

class Status : public ::testing::Test, protected BatchRun {
 protected:
  RunStatus read(const Queue& queue) const {
    return read_status(run_, submission_, queue, queue ? "" : "no answer", now_s);
  }
  static Queue queue(const std::string& lines) { return parse_queue(lines); }
  static Queue empty() { return std::vector<QueuedJob>{}; }
  using Counts = std::map<std::string, std::int64_t>;
};

TEST_F(Status, QueuedRunningAndFinished) {
  submit({{0, 1}, {2}});
  give_job(0, "70");
  const auto folder = attempt(0, 0, 1, {begin(0), end(0), begin(1, 2990)});
  shard::write_progress(folder, {1, "measure", 3, 20, 2995});
  const RunStatus status = read(queue("71|70|0|RUNNING|n4|None|x\n70|70|1%16|PENDING||Priority|x\n"));
  EXPECT_EQ(status.counts(), (Counts{{"ok", 1}, {"running", 1}, {"queued", 1}}));
  EXPECT_FALSE(status.is_over());
  EXPECT_EQ(status.cases[1].job, "70_0");
  EXPECT_EQ(status.cases[1].nodes, "n4");
  EXPECT_EQ(status.cases[1].stage, "measure");
  EXPECT_EQ(status.cases[1].steps, 20);
  EXPECT_EQ(status.cases[1].since_s, 2990);
  EXPECT_EQ(status.cases[2].queue_reason, "Priority");
  // The second shard takes 100 s, the first has 90 s left, and both run at once.
  ASSERT_TRUE(status.expected_end_s);
  EXPECT_DOUBLE_EQ(*status.expected_end_s, now_s + 100);
  // It began at 1000, and goes on.
  EXPECT_NEAR(status.node_hours_used, 2000 / 3600.0, 1e-9);
  EXPECT_TRUE(status.attempts.at(0).is_going_on);
}

TEST_F(Status, OneAfterTheOtherWhereNoMoreMayRun) {
  submission_.array_parallel = 1;
  submit({{0}, {1}, {2}});
  give_job(0, "70");
  EXPECT_DOUBLE_EQ(*read(queue("70|70|0-2%1|PENDING||Priority|x\n")).expected_end_s, now_s + 300);
  EXPECT_FALSE(read(empty()).expected_end_s);
}

TEST_F(Status, LostWhenTheJobIsGone) {
  submit({{0, 1}});
  give_job(0, "70");
  attempt(0, 0, 1, {begin(0), end(0, "oom"), begin(1)});
  const RunStatus status = read(empty());
  EXPECT_EQ(status.counts(), (Counts{{"oom", 1}, {"lost", 1}}));
  EXPECT_TRUE(status.is_over());
  EXPECT_EQ(status.cases[1].unfinished, 1);
  EXPECT_EQ(status.attempts[0].verdict, "killed");
  // It was last heard of in its journal.
  EXPECT_NEAR(status.node_hours_used, 1050 / 3600.0, 1e-9);
}

TEST_F(Status, QuarantinedWhenItTookItsJobWithItTwice) {
  submit({{0}});
  give_job(0, "70");
  attempt(0, 0, 1, {begin(0)});
  attempt(0, 0, 2, {begin(0)});
  EXPECT_EQ(read(empty()).cases[0].state, CaseState::quarantined);
  EXPECT_EQ(read(empty()).cases[0].unfinished, 2);
}

TEST_F(Status, QuarantinedAcrossRounds) {
  submit({{0}});
  give_job(0, "70");
  attempt(0, 0, 1, {begin(0)});
  submit({{0}}, {}, 1);
  give_job(1, "80");
  EXPECT_EQ(read(empty()).cases[0].state, CaseState::lost);
  attempt(1, 0, 1, {begin(0)});
  EXPECT_EQ(read(empty()).cases[0].state, CaseState::quarantined);
}

TEST_F(Status, ALaterArrayHasTheLastWord) {
  submit({{0, 1}});
  give_job(0, "70");
  attempt(0, 0, 1, {begin(0), end(0, "crashed"), begin(1), end(1)}, "done");
  submit({{0}});
  give_job(1, "80");
  RunStatus status = read(queue("80|80|0|PENDING||Priority|x\n"));
  EXPECT_EQ(status.counts(), (Counts{{"queued", 1}, {"ok", 1}}));
  EXPECT_EQ(status.cases[0].array, 1);
  attempt(1, 0, 1, {begin(0), end(0)}, "done");
  EXPECT_EQ(read(empty()).counts(), (Counts{{"ok", 2}}));
}

TEST_F(Status, BlockedByACanaryThatIsNotOk) {
  submit({{1}, {2}}, 0);
  give_job(0, "70");
  EXPECT_EQ(canary_state(run_, submission_.arrays[0]), CanaryState::open);
  attempt(0, 0, 1, {begin(0), end(0, "crashed")}, "canary");
  EXPECT_EQ(canary_state(run_, submission_.arrays[0]), CanaryState::failed);
  EXPECT_EQ(read(empty()).counts(), (Counts{{"crashed", 1}, {"blocked", 2}}));
  EXPECT_TRUE(read(empty()).is_over());
  // While its job waits, it is the queue that says so.
  give_job(1, "71");
  EXPECT_EQ(read(queue("71|71|0-1|PENDING||Dependency|x\n")).counts(), (Counts{{"crashed", 1}, {"queued", 2}}));
}

TEST_F(Status, ACanaryThatIsGoodBlocksNothing) {
  submit({{1}}, 0);
  give_job(0, "70");
  attempt(0, 0, 1, {begin(0), end(0)}, "done");
  EXPECT_EQ(canary_state(run_, submission_.arrays[0]), CanaryState::good);
  EXPECT_EQ(read(empty()).counts(), (Counts{{"ok", 1}, {"unsubmitted", 1}}));
}

TEST_F(Status, UnsubmittedUntilSlurmHasIt) {
  submit({{0}});
  EXPECT_EQ(read(empty()).cases[0].state, CaseState::unsubmitted);
  EXPECT_EQ(read({}).cases[0].state, CaseState::unknown) << "nobody knows while the scheduler is silent";
  // sbatch's answer was lost, and the job is known by its comment.
  const std::string comment = comment_of(submission_.arrays[0].id);
  EXPECT_EQ(read(queue("70|70|0|PENDING||Priority|" + comment + "\n")).cases[0].state, CaseState::queued);
  EXPECT_EQ(read(queue("70|70|0|PENDING||Priority|assay:0\n")).cases[0].state, CaseState::unsubmitted);
}

TEST_F(Status, UnknownWhileTheSchedulerIsSilent) {
  submit({{0, 1}, {2}});
  give_job(0, "70");
  attempt(0, 0, 1, {begin(0), end(0), begin(1)});
  const RunStatus status = read({});
  EXPECT_EQ(status.counts(), (Counts{{"ok", 1}, {"unknown", 2}}));
  EXPECT_EQ(status.scheduler_problem, "no answer");
  EXPECT_FALSE(status.is_over());
  EXPECT_EQ(status.attempts.at(0).verdict, "unknown") << "nobody knows whether it was killed";
}

TEST_F(Status, ARequeuedJobWaits) {
  submit({{0}});
  give_job(0, "70");
  attempt(0, 0, 1, {begin(0)});
  for (const char* state : {"PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "CONFIGURING"}) {
    const RunStatus status = read(queue(fmt::format("70|70|0|{}||BeginTime|x\n", state)));
    EXPECT_EQ(status.cases[0].state, CaseState::queued) << state;
    EXPECT_EQ(status.attempts[0].verdict, "killed") << state;
  }
  // The end of one start, before the next.
  EXPECT_EQ(read(queue("70|70|0|COMPLETING|n1|None|x\n")).cases[0].state, CaseState::running);
}

TEST_F(Status, ACutListLosesNothing) {
  submit({{0}, {1}, {2}, {3}});
  give_job(0, "70");
  EXPECT_EQ(read(queue("70|70|0,2...%16|PENDING||Priority|x\n")).counts(), (Counts{{"queued", 4}}));
}

TEST_F(Status, EndedJobsThatAreStillListedAreGone) {
  submit({{0}});
  give_job(0, "70");
  EXPECT_EQ(read(queue("70|70|0|CANCELLED||None|x\n")).cases[0].state, CaseState::lost);
}

TEST_F(Status, AShardWithoutItsPlanIsTold) {
  submit({{0}});
  std::filesystem::remove(shard(0, 0) / "shard.json");
  EXPECT_THROW(read(empty()), StorageError);
}

}  // namespace
}  // namespace assay::host::batch
