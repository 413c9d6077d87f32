#include <gtest/gtest.h>

#include <cstdlib>

#include "batch/slurm_site.hpp"
#include "batch/status_command.hpp"
#include "batch_run.hpp"
#include "sites.hpp"

namespace assay::host::batch {
namespace {

// Stand-ins for Slurm's commands, first on PATH: sbatch gives numbers from 100, and notes what it was asked.
class Submitting : public ::testing::Test, protected BatchRun {
 protected:
  Submitting() : path_(std::getenv("PATH")) {
    ::setenv("PATH", ((folder_ / "bin").string() + ":" + path_).c_str(), 1);
    put("sbatch",
        "N=$(cat " + file("next") + " 2>/dev/null || echo 100); echo $((N + 1)) >" + file("next") + "; echo $N");
    put("squeue", "cat " + file("queue") + " 2>/dev/null; true");
  }
  ~Submitting() override { ::setenv("PATH", path_.c_str(), 1); }

  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  void put(const std::string& name, const std::string& body) {
    test::put_file(folder_ / "bin" / name, "#!/bin/sh\necho \"${0##*/} $*\" >>" + file("calls") + "\n" + body + "\n");
    std::filesystem::permissions(folder_ / "bin" / name, std::filesystem::perms::owner_all);
  }
  void queue() {
    said_.clear();
    queue_arrays(run_, submission_, SlurmSite(submission_), [this](const std::string& line) { said_ += line + "\n"; });
  }
  std::int64_t calls_of(const std::string& name) const {
    std::error_code ignored;
    if (!std::filesystem::exists(folder_ / "calls", ignored)) return 0;
    const std::string text = read_file(folder_ / "calls");
    std::int64_t count = 0;
    for (std::size_t at = 0; (at = text.find(name + " ", at)) != std::string::npos; ++at) ++count;
    return count;
  }
  bool has_called(const std::string& part) const {
    return read_file(folder_ / "calls").find(part) != std::string::npos;
  }
  std::string path_, said_;
};

TEST_F(Submitting, EveryCallAsksTheClusterThatHasTheJobs) {
  put("sbatch", "echo '100;west'");
  put("scancel", "true");
  submission_.target = SlurmTarget{"west"};
  submit({{0, 1}});
  queue_arrays(run_, submission_, SlurmSite(submission_), [](const std::string&) {});
  EXPECT_TRUE(has_called("sbatch --clusters=west --parsable"));
  const Submission read = read_submission(run_);
  EXPECT_EQ(read.arrays[0].job, "100");
  EXPECT_EQ(read.arrays[0].cluster, "west");
  // A job of the same number elsewhere is none of this batch.
  put("squeue", "case $* in *--clusters=west*) echo '100|100|0|PENDING||Priority|(null)' ;; esac");
  const auto west = SlurmSite(read).queue(read.users);
  EXPECT_TRUE(has_called("squeue --clusters=west"));
  EXPECT_EQ(read_status(run_, read, west, "", 3000).counts().at("queued"), 2);
  auto elsewhere = west;
  elsewhere[0].cluster = "";
  EXPECT_EQ(read_status(run_, read, elsewhere, "", 3000).counts().at("lost"), 2);
  EXPECT_EQ(cancel(run_.string()), 0);
  EXPECT_TRUE(has_called("scancel --clusters=west 100")) << "by its number: the comment was changed";
}

TEST_F(Submitting, WhatTheSiteRunsAtTheEndWaitsForEveryArrayOnce) {
  slurm_of(site_).on_end = {"mail -s \"$ASSAY_RUN\" me <\"$ASSAY_RUN/table.md\""};
  submit({{0}, {1}}, 2);
  queue();
  const std::string end = (run_ / "batch/end-0.sbatch").string();
  EXPECT_TRUE(has_called("sbatch --parsable --dependency=afterany:100:101 " + end));
  EXPECT_NE(read_file(end).find("/opt/assay collect \"$ASSAY_RUN\" --quiet"), std::string::npos);
  EXPECT_NE(read_file(end).find("--comment=assay:" + submission_.arrays[0].id + "-end"), std::string::npos);
  queue();
  EXPECT_EQ(calls_of("sbatch"), 3) << "two arrays and the end";
}

TEST_F(Submitting, AnAnswerThatIsNotClearIsLookedUpInTheQueue) {
  submit({{0}});
  put("sbatch", "echo 'Submitted batch job 100'; echo 4000");
  put("squeue", "echo '100|100|0|PENDING||Priority|" + comment_of(submission_.arrays[0].id) + "'");
  queue();
  EXPECT_EQ(read_submission(run_).arrays[0].job, "100");
}

TEST_F(Submitting, WhatIsWrittenIsReadBack) {
  submit({{0, 1}, {2}}, 3);
  const Submission read = read_submission(run_);
  ASSERT_EQ(read.arrays.size(), 2U);
  EXPECT_TRUE(read.arrays[0].is_canary);
  EXPECT_EQ(read.arrays[1].tasks, 2);
  EXPECT_EQ(read.arrays[1].id, submission_.arrays[1].id);
  EXPECT_EQ(read.arrays[1].limit_s, 540) << "200 s of cases and the margin, in whole minutes";
  EXPECT_FALSE(read.arrays[1].job);
  EXPECT_EQ(read.experiment_hash, "aa");
  EXPECT_EQ(shard::read_shard_plan(shard(1, 0)).cases, (std::vector<std::int64_t>{0, 1}));
  EXPECT_TRUE(shard::read_shard_plan(shard(0, 0)).is_canary);
  give_job(1, "77");
  EXPECT_EQ(read_submission(run_).arrays[1].job, "77");
  EXPECT_NE(new_id(), new_id());
}

TEST_F(Submitting, HalfOfOneIsNone) {
  submit({{0}});
  const auto file = batch_folder(run_) / "submission.json";
  const std::string whole = read_file(file);
  for (std::size_t length = 0; length + 2 < whole.size(); length += 7) {
    test::put_file(file, whole.substr(0, length));
    EXPECT_THROW(read_submission(run_), StorageError) << length;
  }
  test::put_file(batch_folder(run_) / "array-0.job", "\n");
  test::put_file(file, whole);
  EXPECT_FALSE(read_submission(run_).arrays[0].job);
}

TEST_F(Submitting, AFreshOneAsksNothingAndWaitsForItsCanary) {
  submit({{1}, {2}}, 0);
  queue();
  EXPECT_EQ(calls_of("sbatch"), 2);
  EXPECT_EQ(calls_of("squeue"), 0);
  EXPECT_TRUE(has_called("--dependency=afterok:100 --kill-on-invalid-dep=yes"));
  EXPECT_EQ(read_submission(run_).arrays[1].job, "101");
  queue();
  EXPECT_EQ(calls_of("sbatch"), 2) << "nothing is queued twice";
}

TEST_F(Submitting, ALostAnswerIsFoundByItsComment) {
  submit({{1}, {2}}, 0);
  put("sbatch", "exit 1");
  EXPECT_THROW(queue(), SlurmError);
  EXPECT_FALSE(submission_.arrays[0].job);
  // The controller has taken it all the same.
  test::put_file(file("queue"), "66|66|0|PENDING||Priority|" + comment_of(submission_.arrays[0].id) + "\n");
  put("sbatch", "echo 67");
  submission_ = read_submission(run_);
  queue();
  EXPECT_EQ(submission_.arrays[0].job, "66");
  EXPECT_EQ(submission_.arrays[1].job, "67");
  EXPECT_EQ(calls_of("sbatch"), 2);
  EXPECT_EQ(calls_of("squeue"), 1);
  EXPECT_NE(said_.find("array 0: found as job 66"), std::string::npos) << said_;
}

TEST_F(Submitting, AnAnswerThatIsNoNumberIsTold) {
  submit({{1}});
  put("sbatch", "echo Submitted batch job");
  EXPECT_THROW(queue(), SchedulerError);
}

TEST_F(Submitting, WhatHasRunIsNotQueuedAgain) {
  submit({{1}});
  put("sbatch", "exit 1");
  EXPECT_THROW(queue(), SlurmError);
  attempt(0, 0, 1, {begin(1), end(1)}, "done");
  queue();
  EXPECT_EQ(submission_.arrays[0].job, "gone");
  EXPECT_NE(said_.find("has run already"), std::string::npos) << said_;
}

TEST_F(Submitting, NothingDependsOnAJobWithoutANumber) {
  submit({{1}}, 0);
  put("sbatch", "exit 1");
  EXPECT_THROW(queue(), SlurmError);
  attempt(0, 0, 1, {begin(0)});  // the canary began, was killed, and has left the queue
  put("sbatch", "echo 67");
  queue();
  EXPECT_FALSE(has_called("afterok:gone"));
  EXPECT_FALSE(submission_.arrays[1].job) << said_;
  // Had it ended well, the others would wait for nothing.
  shard::write_end(shard(0, 0) / "attempts/0001", {"done", "", 4000});
  queue();
  EXPECT_EQ(submission_.arrays[1].job, "67");
}

TEST_F(Submitting, NothingIsQueuedAfterACanaryThatFailed) {
  submit({{1}}, 0);
  give_job(0, "66");
  attempt(0, 0, 1, {begin(0), end(0, "crashed")}, "canary");
  queue();
  EXPECT_EQ(calls_of("sbatch"), 0);
  EXPECT_NE(said_.find("the canary is not ok"), std::string::npos) << said_;
}

TEST_F(Submitting, TheCallersJobIsNotInherited) {
  ::setenv("SLURM_JOB_ID", "5", 1);
  ::setenv("SBATCH_PARTITION", "wrong", 1);
  put("sbatch", "echo ${SLURM_JOB_ID:-6}${SBATCH_PARTITION:-7}");
  submit({{1}});
  queue();
  ::unsetenv("SLURM_JOB_ID");
  ::unsetenv("SBATCH_PARTITION");
  EXPECT_EQ(submission_.arrays[0].job, "67");
}

TEST_F(Submitting, AJobIsOverOnlyWhenTheQueueSaysSo) {
  test::put_file(file("queue"), "66|66|0|RUNNING|n1|None|x\n");
  EXPECT_FALSE(Slurm().is_over("66"));
  EXPECT_TRUE(Slurm().is_over("67"));
  EXPECT_FALSE(Slurm().is_over(""));
  put("squeue", "exit 1");
  EXPECT_FALSE(Slurm().is_over("67"));
}

}  // namespace
}  // namespace assay::host::batch
