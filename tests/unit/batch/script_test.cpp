#include "batch/script.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/command.hpp"
#include "common/files.hpp"
#include "sites.hpp"
#include "support/files.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host::batch {
namespace {

using namespace std::chrono_literals;

Site full_site() {
  Site site;
  SlurmSettings& slurm = slurm_of(site);
  slurm.partition = "gpu", slurm.account = "acc", slurm.qos = "high", slurm.constraint = "[rack1*2&ib]",
  slurm.reservation = "r";
  site.gpus_per_node = 8;
  site.exclude = {"n3", "m[1-4]"};
  slurm.sbatch_extra = {"--mem=0", "--mail-type=END", "--switches=1@10:00"};
  slurm.srun_extra = {"--cpu-bind=none", "--mpi=none"};
  return site;
}

class Script : public ::testing::Test {
 protected:
  Script() { array_.shape = {2, 8, ""}, array_.tasks = 100, array_.limit_s = 3600, array_.id = "0123456789abcdef"; }
  std::string text(const std::filesystem::path& run = "/scratch/results/many/20261120T120000Z-9f2c",
                   const std::string& name = "many") const {
    return batch_script({site_, array_, name, run, "/opt/assay/bin/assay", 5});
  }
  std::string refusal(const std::filesystem::path& run) const {
    try {
      return "taken: " + text(run);
    } catch (const SiteError& e) {
      return e.what();
    }
  }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
  Site site_ = full_site();
  SubmittedArray array_;
};

TEST_F(Script, IsShortWithEveryOption) {
  const std::string script = text();
  EXPECT_LE(std::count(script.begin(), script.end(), '\n'), 50) << script;
  for (const char* part :
       {"--partition=gpu", "--account=acc", "--qos=high", "--constraint=[rack1*2&ib]", "--reservation=r",
        "--gpus-per-node=8", "--exclusive", "--exclude=n3,m[1-4]", "--mem=0", "--nodes=2", "--ntasks-per-node=8",
        "--time=0-01:00:00", "--array=0-99%16", "--requeue", "--comment=assay:0123456789abcdef", "--cpu-bind=none"})
    EXPECT_TRUE(has(script, part)) << part << " is not in\n" << script;
  // Lines of options come first: Slurm reads none after the first command.
  EXPECT_LT(script.rfind("#SBATCH"), script.find("set -u"));
}

TEST_F(Script, IsWhatAShellReads) {
  test::TemporaryFolder folder;
  for (const bool requeue : {true, false}) {
    slurm_of(site_).requeue = requeue;
    test::put_file(folder / "array.sbatch", text());
    const auto read = run_command({"bash", "-n", (folder / "array.sbatch").string()}, 10s);
    EXPECT_TRUE(read.is_good()) << read.err;
    if (const auto checked = run_command({"shellcheck", "-S", "warning", (folder / "array.sbatch").string()}, 30s);
        checked.exit_code != 127) {
      EXPECT_TRUE(checked.is_good()) << checked.out << text();
    }
  }
}

TEST_F(Script, GpusOfAType) {
  site_.gpu_type = "h100";
  EXPECT_TRUE(has(text(), "--gpus-per-node=h100:8"));
}

TEST_F(Script, NamedNodesAreNotExcluded) {
  array_.shape.node = "n1+n3";
  EXPECT_TRUE(has(text(), "--nodelist=n1,n3"));
  EXPECT_FALSE(has(text(), "--exclude"));
}

TEST_F(Script, PathsThatWouldBeReadOtherwiseAreRefused) {
  for (const char* path :
       {"/a b/run", "/a$HOME/run", "/a%j/run", "/a\"b/run", "/a'b/run", "/a\nb/run", "/a;b/run", "/a`b/run",
        "/a\\b/run", "/a*b/run", "/a(b/run", "/a&b/run", "/a|b/run", "/\xc3\xa4/run", "/a#b/run"})
    EXPECT_TRUE(has(refusal(path), "has a character that")) << path;
  EXPECT_TRUE(has(refusal("/a-b_c.d+e=f,g:h@i~/run"), "taken"));
  site_.assay = "/opt/$(id)/assay";
  EXPECT_TRUE(has(refusal("/a/run"), "has a character that"));
}

TEST_F(Script, AJobsNameIsPlainWhateverTheExperimentsIs) {
  EXPECT_TRUE(has(text("/r", "a b;$(id)\n#"), "--job-name=assay-a_b___id___\n"));
}

// With a program in the place of srun that writes the verdict a shard leaves, and one in that of scontrol.
class RunningScript : public Script {
 protected:
  CommandAnswer run(const std::string& verdict, int restarts = 0) {
    const auto run = folder_ / "run";
    std::filesystem::create_directories(run / "batch/shards/0-0003");
    test::put_file(folder_ / "bin/srun",
                   "#!/bin/bash\n" + ready_step_ + "\necho \"$* ${SLURM_EXPORT_ENV-unset} $ASSAY_BATCH\" >>\"" +
                       (folder_ / "srun.txt").string() + "\"\n" +
                       (verdict.empty() ? ""
                                        : "echo " + verdict + " >\"" + (run / "batch/shards/0-0003").string() +
                                              "/verdict-70-" + std::to_string(restarts) + "\"\n"));
    test::put_file(folder_ / "bin/scontrol", "#!/bin/bash\necho \"$*\" >>\"" + (folder_ / "scontrol.txt").string() +
                                                 "\"\nexit " + requeue_status_ + "\n");
    test::put_file(folder_ / "bin/sleep", "#!/bin/bash\n");
    for (const char* name : {"srun", "scontrol", "sleep"})
      std::filesystem::permissions(folder_ / "bin" / name, std::filesystem::perms::owner_all);
    test::put_file(folder_ / "array.sbatch", text(run));
    return run_command({"env", "PATH=" + (folder_ / "bin").string() + ":/usr/bin:/bin", "SLURM_JOB_ID=70",
                        "SLURM_ARRAY_JOB_ID=69", "SLURM_ARRAY_TASK_ID=3",
                        "SLURM_RESTART_COUNT=" + std::to_string(restarts), "bash", (folder_ / "array.sbatch").string()},
                       30s);
  }
  bool has_requeued() const { return std::filesystem::exists(folder_ / "scontrol.txt"); }
  std::string said_of_unready(int restarts = 0) const {
    const auto file = folder_ / ("run/batch/shards/0-0003/unready-70-" + std::to_string(restarts));
    return std::filesystem::exists(file) ? read_file(file) : "";
  }
  test::TemporaryFolder folder_;
  std::string requeue_status_ = "0";
  std::string ready_step_;  // what srun does first
};

TEST_F(RunningScript, AControllerThatIsAwayIsAskedAgain) {
  requeue_status_ = "1";
  EXPECT_EQ(run("more").exit_code, 1);
  std::string asked;
  for (int i = 0; i < 6; ++i) asked += "requeue 69_3\n";
  EXPECT_EQ(read_file(folder_ / "scontrol.txt"), asked);
}

TEST_F(RunningScript, TheVerdictDecides) {
  EXPECT_EQ(run("done").exit_code, 0);
  EXPECT_EQ(run("busy").exit_code, 73);
  for (const char* verdict : {"failed", "changed", "superseded", "canary"})
    EXPECT_EQ(run(verdict).exit_code, 1) << verdict;
  EXPECT_FALSE(has_requeued());
  EXPECT_NE(read_file(folder_ / "srun.txt")
                .find("run/experiment.toml --shard " + (folder_ / "run/batch/shards/0-0003").string()),
            std::string::npos);
}

TEST_F(RunningScript, WhatIsLeftComesAgainButNotForEver) {
  EXPECT_EQ(run("more").exit_code, 1);
  EXPECT_EQ(read_file(folder_ / "scontrol.txt"), "requeue 69_3\n");
  std::filesystem::remove(folder_ / "scontrol.txt");
  EXPECT_EQ(run("", 7).exit_code, 1);
  EXPECT_TRUE(has_requeued()) << "it was killed";
  std::filesystem::remove(folder_ / "scontrol.txt");
  EXPECT_EQ(run("stopped", 8).exit_code, 1);
  EXPECT_TRUE(has_requeued()) << "its steps were told to end, and this script was not";
  std::filesystem::remove(folder_ / "scontrol.txt");
  EXPECT_EQ(run("more", 40).exit_code, 1);
  EXPECT_TRUE(has_requeued()) << "most starts came after a preemption";
  std::filesystem::remove(folder_ / "scontrol.txt");
  EXPECT_EQ(run("more", 41).exit_code, 1);
  EXPECT_FALSE(has_requeued()) << "it has asked for four others: the fifth was the last";
}

TEST_F(RunningScript, ThePrologueReachesTheRanksOfAJobWithoutItsSubmittersEnvironment) {
  ready_step_ = "export SLURM_EXPORT_ENV=${SLURM_EXPORT_ENV-unset}";
  site_.prologue = {"export SLURM_EXPORT_ENV=NONE"};  // as `sbatch --export=NONE` does
  EXPECT_EQ(run("done").exit_code, 0);
  const std::string called = read_file(folder_ / "srun.txt");
  EXPECT_NE(called.find("--export=ALL"), std::string::npos) << called;
  EXPECT_NE(called.find("unset 0123456789abcdef"), std::string::npos) << called;
}

TEST_F(RunningScript, APrologueLineThatFailsEndsTheStart) {
  test::put_file(folder_ / "loads.sh", "false\nexport LOADED=1\n");
  site_.prologue = {
      ". " + (folder_ / "loads.sh").string(), "if false; then :; fi", "[ -n \"$NOT_SET\" ] && true || true",
      "module() { false; return 3; }",        "module load cuda",     "touch " + (folder_ / "later").string()};
  EXPECT_EQ(run("done").exit_code, 1);
  EXPECT_EQ(said_of_unready(), "the prologue failed with exit status 3 at: module load cuda\n");
  EXPECT_EQ(read_file(folder_ / "run/batch/shards/0-0003/verdict-70-0"), "failed\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "later"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "srun.txt")) << "no step was started";
  EXPECT_FALSE(has_requeued());
  site_.prologue = {"exit 0"};
  EXPECT_EQ(run("done").exit_code, 1);
  EXPECT_EQ(said_of_unready(), "the prologue ended the job with exit status 0\n");
}

TEST_F(RunningScript, AnUnhealthyNodeIsLeftForOthers) {
  site_.health.experiment = "/h.toml", site_.exclude = {"m1"};
  test::put_file(folder_ / "run/batch/unhealthy/n2", "slow\n");
  ready_step_ = "[[ $* != *--node-ready* ]] || { echo 'assay: node n2: slow'; exit 75; }";
  EXPECT_EQ(run("done").exit_code, 1);
  EXPECT_EQ(read_file(folder_ / "scontrol.txt"),
            "requeue 69_3\nupdate JobId=69 ExcNodeList=m1,n2\nupdate JobId=69_3 ExcNodeList=m1,n2\n");
  EXPECT_EQ(said_of_unready(), "assay: node n2: slow\n");
}

TEST_F(RunningScript, ANodeThatIsNotReadyEndsTheStartWithItsReason) {
  ready_step_ =
      "[[ $* != *--node-ready* ]] || { echo 'pyxis: imported'; echo 'assay: node n2: no GPU'; echo 'srun: error: n2: "
      "task 1: Exited with exit code 1' >&2; exit 1; }";
  const CommandAnswer answer = run("done");
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_EQ(said_of_unready(), "assay: node n2: no GPU\n");
  EXPECT_NE(answer.out.find("pyxis: imported"), std::string::npos) << "the log has all of it";
  EXPECT_FALSE(has_requeued());
  ready_step_ = "echo 'slurmstepd: error: execve(): /opt/assay: No such file or directory'; exit 2";
  EXPECT_EQ(run("done", 1).exit_code, 1);
  EXPECT_EQ(said_of_unready(1), "slurmstepd: error: execve(): /opt/assay: No such file or directory\n");
}

TEST_F(RunningScript, TheSitesLinesMayAskForWhatIsNotSet) {
  site_.prologue = {"if [ -n \"$NOT_SET_ANYWHERE\" ]; then exit 9; fi", "export ADDED=$NOT_SET_ANYWHERE:x"};
  const CommandAnswer answer = run("done");
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
}

}  // namespace
}  // namespace assay::host::batch
