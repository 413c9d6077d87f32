// Sites of hosts and of Kubernetes, without either.
#include "batch/site_kinds.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "batch/collect.hpp"
#include "batch/hosts_runner.hpp"
#include "batch/hosts_site.hpp"
#include "batch/job_environment.hpp"
#include "batch/kubernetes_site.hpp"
#include "batch/status_command.hpp"
#include "batch_run.hpp"
#include "common/host_name.hpp"
#include "common/utc.hpp"
#include "hosts/host_launch.hpp"
#include "sites.hpp"

namespace assay::host::batch {
namespace {

using Names = std::vector<std::string>;
using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;
using namespace std::chrono_literals;

class KindsOfSites : public ::testing::Test, protected BatchRun {};

TEST(SitesOfHosts, NeighboursRunCasesOnSeveralNodes) {
  const auto hosts = hosts_in({"a", "b", "c", "d", "e"}, "hosts");
  const Shape one, two{2, 8, ""}, named{2, 8, "d+a"};
  EXPECT_EQ(group_of(one, hosts, "c"), Names{"c"});
  EXPECT_EQ(group_of(two, hosts, "c"), (Names{"c", "d"}));
  EXPECT_EQ(group_of(two, hosts, "d"), (Names{"c", "d"}));
  EXPECT_EQ(group_of(two, hosts, "e"), Names{}) << "it has no neighbour";
  EXPECT_EQ(group_of(named, hosts, "a"), (Names{"d", "a"})) << "as they are named, the leader first";
  EXPECT_EQ(group_of(named, hosts, "b"), Names{});
  EXPECT_EQ(group_of(one, hosts, "z"), Names{});
}

TEST(SitesOfHosts, AnUnhealthyNodeOfAGroupIsKnownWhateverTheOthersSay) {
  using Codes = std::vector<std::optional<int>>;
  for (const auto& [codes, expected] : std::vector<std::pair<Codes, int>>{{{0, 0}, 0},
                                                                          {{0, 75, 0}, 75},
                                                                          {{1, 75}, 75},
                                                                          {{75, 1}, 75},
                                                                          {{0, 75, 1}, 75},
                                                                          {{{}, 75, {}}, 75},
                                                                          {{2, 1}, 2},
                                                                          {{0, 2, 1, 0}, 1},
                                                                          {{0, 2, {}}, 2},
                                                                          {{0, {}}, 1},
                                                                          {{{}, 0}, 1},
                                                                          {{130, 0}, 130}})
    EXPECT_EQ(hosts::exit_code_of_ranks_alone(codes), expected) << ::testing::PrintToString(codes);
}

TEST_F(KindsOfSites, AClaimIsWholeAndATornOneIsFreeAfterAWhile) {
  create_folders(hosts_folder(run_));
  EXPECT_TRUE(claim_task(run_, 0, 0, "a"));
  EXPECT_FALSE(claim_task(run_, 0, 0, "b"));
  EXPECT_TRUE(claim_task(run_, 0, 0, "a")) << "its runner was killed and started again";
  std::int64_t task = 1;
  for (const char* torn : {"", "a", "b"}) {
    const auto file = claim_file(run_, 0, task);
    test::put_file(file, torn);
    EXPECT_EQ(holder_of_task(run_, 0, task), "") << torn;
    EXPECT_FALSE(claim_task(run_, 0, task, "c")) << "it may be written now";
    // Or written in the future, as a clock that was wrong has it.
    std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() + (task == 1 ? 1h : -1h));
    EXPECT_TRUE(claim_task(run_, 0, task, "b"));
    EXPECT_FALSE(claim_task(run_, 0, task, "c"));
    EXPECT_EQ(holder_of_task(run_, 0, task++), "b");
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(hosts_folder(run_)), {}), 7)
      << "four claims, three again";
}

TEST_F(KindsOfSites, NamesThatDifferHaveStatesThatDiffer) {
  create_folders(hosts_folder(run_));
  const std::vector<std::string> hosts{
      "u@n1", "u_n1", "u:n1", "u%n1", "fe80::1%eth0", "u@[::1]:22", std::string(251, 'n'), std::string(252, 'n')};
  for (const std::string& host : hosts) write_runner_state(run_, {host, "running", 0, 1, "", 1});
  for (const std::string& host : hosts) EXPECT_EQ(read_runner_state(run_, host)->host, host);
}

TEST_F(KindsOfSites, LocksAreInAFolderOfTheUserAlone) {
  const auto tmp = folder_ / "tmp", kept = tmp / fmt::format("assay-{}", getuid()), planted = folder_ / "planted";
  for (const auto& each : {tmp, planted}) std::filesystem::create_directories(each);
  std::filesystem::permissions(planted, std::filesystem::perms::owner_all);
  std::filesystem::create_directory_symlink(planted, kept);
  EXPECT_THROW(folder_of_locks(tmp), SchedulerError) << "a link";
  std::filesystem::remove(kept);
  EXPECT_EQ(folder_of_locks(tmp), kept);
  EXPECT_EQ(folder_of_locks(tmp), kept) << "the second runner's";
  EXPECT_EQ(std::filesystem::status(kept).permissions(), std::filesystem::perms::owner_all);
  std::filesystem::permissions(kept, std::filesystem::perms::all);
  EXPECT_THROW(folder_of_locks(tmp), SchedulerError) << "open to others";
}

TEST_F(KindsOfSites, AMachineHasOneLockByWhicheverName) {
  EXPECT_EQ(lock_of_machine("/l", "n1"), lock_of_machine("/l", "user@n1"));
  const auto plain = lock_of_machine("/l", "n1");
  ::setenv("ASSAY_HOSTS_MACHINE", "another", 1);
  EXPECT_EQ(lock_of_machine("/l", "n1"), "/l/runner-another.lock");
  ::unsetenv("ASSAY_HOSTS_MACHINE");
  EXPECT_NE(plain, "/l/runner-n1.lock");
  const auto of_machine = [](const char* machine) {
    ::setenv("ASSAY_HOSTS_MACHINE", machine, 1);
    const auto lock = lock_of_machine("/l", "n1");
    ::unsetenv("ASSAY_HOSTS_MACHINE");
    return lock;
  };
  EXPECT_NE(of_machine("a:1"), of_machine("a_1")) << "two machines";
}

TEST_F(KindsOfSites, ARunnerIsKnownByItsLastSignOfLife) {
  create_folders(hosts_folder(run_));
  EXPECT_FALSE(read_runner_state(run_, "user@b:2"));
  write_runner_state(run_, {"user@b:2", "running", 3, 77, "abc", 1000});
  const auto state = read_runner_state(run_, "user@b:2");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->host, "user@b:2");
  EXPECT_EQ(state->array, 3);
  EXPECT_EQ(state->pid, 77);
  EXPECT_EQ(state->launch, "abc");
  EXPECT_TRUE(state->is_alive(1001));
  EXPECT_FALSE(state->is_alive(1000 + 86400)) << "it has been silent";
  EXPECT_TRUE(state->is_alive(999)) << "clocks differ a little";
  EXPECT_FALSE(state->is_alive(1000 - 86400)) << "a date in the future is no sign of life";
  write_runner_state(run_, {"user@b:2", "ended", 3, 77, "abc", 1000});
  EXPECT_FALSE(read_runner_state(run_, "user@b:2")->is_alive(1001));
}

TEST_F(KindsOfSites, AQueueThatCannotBeReadIsAnErrorOfTheScheduler) {
  site_.settings = hosts_settings({"a"}), submission_.target = site_.target();
  submit({{0}});
  give_job(0, "hosts-1");
  const auto scheduler = scheduler_of(submission_, run_);
  EXPECT_TRUE(scheduler->queue().empty());
  std::filesystem::create_directories(claim_file(run_, 0, 0));  // no file
  EXPECT_THROW(scheduler->queue(), SchedulerError);
  EXPECT_THROW(jobs_of_kubernetes("no JSON"), SchedulerError);
  EXPECT_THROW(jobs_of_kubernetes(R"({"items": [{"kind": 7}]})"), SchedulerError);
}

TEST_F(KindsOfSites, WhatIsCancelledOnHostsHasTheMarkOfEachKind) {
  site_.settings = hosts_settings({"a"}), submission_.target = site_.target();
  submit({{0}});
  submit({{0}});
  give_job(0, "hosts-1");
  give_job(1, "hosts-2");
  create_folders(hosts_folder(run_));
  write_runner_state(run_, {"a", "running", 0, getpid(), "", seconds_since_1970()});
  const auto scheduler = scheduler_of(submission_, run_);
  ASSERT_EQ(scheduler->queue().size(), 2U);
  mark_cancelled(run_, submission_.arrays[0]);
  ASSERT_EQ(scheduler->queue().size(), 1U) << "no runner takes a task of the first";
  EXPECT_EQ(scheduler->queue()[0].array, "hosts-2");
  scheduler->cancel({{"hosts-2", ""}});
  EXPECT_TRUE(is_cancelled(run_, submission_.arrays[1]));
  EXPECT_TRUE(scheduler->queue().empty());
}

SiteTarget target_of_kind(const std::string& kind) {
  if (kind == "ssh") return HostsTarget{{"a"}};
  if (kind == "kubernetes") return KubernetesTarget{"training"};
  return SlurmTarget{"west"};
}

TEST_F(KindsOfSites, ASubmissionKeepsWhereItsJobsAreAndItsLayout) {
  for (const auto& [kind, expected] : std::vector<std::pair<std::string, std::string>>{
           {"slurm", R"("cluster":"west","kind":"slurm","hosts":[],"namespace":"")"},
           {"ssh", R"("cluster":"","kind":"ssh","hosts":["a"],"namespace":"")"},
           {"kubernetes", R"("cluster":"","kind":"kubernetes","hosts":[],"namespace":"training")"}}) {
    submission_.target = target_of_kind(kind);
    create_folders(batch_folder(run_));
    write_submission(run_, submission_);
    const auto written = nlohmann::ordered_json::parse(read_file(batch_folder(run_) / "submission.json"));
    EXPECT_NE(written.dump().find(R"("site":"/s/site.toml",)" + expected + R"(,"submitted_s":)"), std::string::npos)
        << written.dump();
    const Submission read = read_submission(run_);
    EXPECT_EQ(name_of_kind(read.target), kind);
    EXPECT_EQ(hosts_of(read.target), hosts_of(submission_.target));
    EXPECT_EQ(cluster_of(read.target), cluster_of(submission_.target));
    EXPECT_EQ(site_kind(read).json_of_target(read.target), site_kind(read).json_of_target(submission_.target));
  }
}

TEST_F(KindsOfSites, ABatchOfALaterKindIsReadAndNotAsked) {
  submit({{0}});
  const auto file = batch_folder(run_) / "submission.json";
  auto json = nlohmann::ordered_json::parse(read_file(file));
  json["kind"] = "pbs";
  test::put_file(file, json.dump());
  const Submission read = read_submission(run_);
  EXPECT_EQ(name_of_kind(read.target), "pbs");
  EXPECT_EQ(collect_batch(run_, read).records, 0) << "collect needs no scheduler";
  try {
    scheduler_of(read, run_);
    ADD_FAILURE() << "nobody knows its scheduler";
  } catch (const StorageError& e) {
    EXPECT_STREQ(e.what(),
                 "the batch was submitted to a site of the kind 'pbs', and this assay knows slurm, ssh, kubernetes; "
                 "use the assay that submitted it");
  }
  EXPECT_NE(why_another_site(site_, read).value_or("").find("the batch was submitted with the kind [pbs]"),
            std::string::npos);
}

TEST_F(KindsOfSites, OnlySlurmExplainsAJobWithoutALogAsSlurmDoes) {
  const auto said_of = [&](const std::string& kind, const std::string& ended) {
    submission_.target = target_of_kind(kind);
    return scheduler_of(submission_, run_)->why_no_log(ended, "/r");
  };
  EXPECT_EQ(said_of("slurm", "CANCELLED by 1"), "it was cancelled before it began");
  EXPECT_TRUE(
      said_of("slurm", "FAILED, exit code 0:53, on n1").starts_with("its node cannot open the log, so it does"));
  EXPECT_NE(said_of("slurm", "").find("or its node does not see /r"), std::string::npos);
  EXPECT_EQ(said_of("ssh", ""), "");
  EXPECT_EQ(said_of("kubernetes", ""), "");
  submission_.target = SlurmTarget{};
  EXPECT_EQ(scheduler_of(submission_, run_)->shown_reason("None"), "Slurm has given no reason yet");
}

TEST_F(KindsOfSites, StatusSaysOfALostCaseOnHostsOnlyThatItHasNoLog) {
  site_.settings = hosts_settings({"a"}), submission_.target = site_.target();
  submit({{0}});
  give_job(0, "hosts-1");
  ::testing::internal::CaptureStdout();
  show_status({.run = run_.string()});
  const std::string said = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(said.find("job hosts-1_0 has left no log\n"), std::string::npos) << said;
}

TEST_F(KindsOfSites, HostsThatAGroupNeedsAreNoPlacesOfOtherJobs) {
  EXPECT_EQ(jobs_at_once({2, 8, ""}, 5, 5), 2);
  EXPECT_EQ(jobs_at_once({8, 8, ""}, 5, 5), 1);
  EXPECT_EQ(jobs_at_once({2, 8, ""}, 5, 0), 5) << "a scheduler has other nodes";
  submission_.target = HostsTarget{{"a", "b", "c", "d"}}, submission_.array_parallel = 4;
  submit({{0}, {1}, {2}, {3}});
  give_job(0, "70");
  const auto expected_end_s = [&] {
    return *read_status(run_, submission_, parse_queue("70|70|0-3|PENDING||busy|x\n"), "", 0).expected_end_s;
  };
  EXPECT_DOUBLE_EQ(expected_end_s(), 100);
  submission_.arrays[0].shape.nodes = 2;
  EXPECT_DOUBLE_EQ(expected_end_s(), 200);
}

TEST_F(KindsOfSites, ABatchStaysOnTheSiteThatTookIt) {
  site_.file = "other.toml";
  EXPECT_FALSE(why_another_site(site_, submission_));
  const auto why = [&](const char* part) {
    const auto text = why_another_site(site_, submission_).value_or("nothing");
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find("submit the experiment anew"), std::string::npos) << text;
    site_ = {}, site_.file = "other.toml";
  };
  site_.settings = hosts_settings({"a"});
  why("other.toml has the kind [ssh], but the batch was submitted with the kind [slurm]");
  slurm_of(site_).cluster = "west";
  why("[slurm] cluster = \"west\"");
  submission_.target = KubernetesTarget{}, site_.settings = KubernetesSettings{{"training"}, "i", "v", "/m"};
  why("[kubernetes] namespace = \"training\"");
  submission_.target = HostsTarget{{"a", "b"}}, site_.settings = hosts_settings({"b", "a"});
  why("[ssh] hosts = [\"b\", \"a\"]");
}

TEST_F(KindsOfSites, AClaimSaysWhoKnowsWhetherItIsOver) {
  for (const auto& [name, value] :
       {std::pair{"ASSAY_JOB_KIND", "kubernetes"}, {"ASSAY_JOB_ID", "assay-1_0"}, {"ASSAY_JOB_RESTART", "2"}})
    ::setenv(name, value, 1);
  shard::AttemptClaim claim;
  claim.start = start_of_this_job(), claim.host = host_name(), claim.pid = getpid();
  for (const char* name : {"ASSAY_JOB_KIND", "ASSAY_JOB_ID", "ASSAY_JOB_RESTART"}) ::unsetenv(name);
  EXPECT_EQ(claim.start.kind, "kubernetes");
  EXPECT_EQ(claim.start.restart, 2);
  shard::claim_next_attempt(folder_.path(), claim, is_attempt_over);
  EXPECT_EQ(shard::read_attempts(folder_.path()).at(0).claim.start.kind, "kubernetes");
  // A squeue that would say of every job that it is over.
  test::put_file(folder_ / "bin/squeue", "#!/bin/sh\nexit 0\n");
  std::filesystem::permissions(folder_ / "bin/squeue", std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", ((folder_ / "bin").string() + ":" + path).c_str(), 1);
  EXPECT_FALSE(is_attempt_over(claim)) << "this process lives";
  claim.start.kind = "slurm", claim.start.job = "70";
  EXPECT_TRUE(is_attempt_over(claim));
  claim.start.kind = "";
  EXPECT_TRUE(is_attempt_over(claim)) << "of a version that knew Slurm alone";
  ::setenv("PATH", path.c_str(), 1);
}

TEST(SitesOfKubernetes, RangesOfIndexes) {
  EXPECT_EQ(ranges_of_indexes(""), Ranges{});
  EXPECT_EQ(ranges_of_indexes("0-2,5"), (Ranges{{0, 2}, {5, 5}}));
  EXPECT_EQ(ranges_of_indexes("7,x,9-10"), (Ranges{{7, 7}, {9, 10}}));
}

TEST(SitesOfKubernetes, PodsRunAndIndexesWithoutOneWait) {
  const auto jobs = jobs_of_kubernetes(R"({"items": [
    {"kind": "Job", "metadata": {"name": "assay-1", "labels": {"assay-batch": "1"}}, "spec": {"completions": 6},
     "status": {"completedIndexes": "0", "failedIndexes": "5"}},
    {"kind": "Job", "metadata": {"name": "assay-2", "labels": {"assay-batch": "2"}}, "spec": {"completions": 1},
     "status": {"conditions": [{"type": "Complete", "status": "True"}]}},
    {"kind": "Pod", "metadata": {"labels": {"batch.kubernetes.io/job-name": "assay-1", "assay-batch": "1"},
     "annotations": {"batch.kubernetes.io/job-completion-index": "1"}}, "spec": {"nodeName": "n1"},
     "status": {"phase": "Running"}},
    {"kind": "Pod", "metadata": {"labels": {"job-name": "assay-1", "assay-batch": "1"},
     "annotations": {"batch.kubernetes.io/job-completion-index": "2"}}, "spec": {}, "status": {"phase": "Pending",
     "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}},
    {"kind": "Pod", "metadata": {"labels": {"job-name": "assay-1"},
     "annotations": {"batch.kubernetes.io/job-completion-index": "3"}}, "status": {"phase": "Failed"}}]})");
  ASSERT_EQ(jobs.size(), 3U);
  EXPECT_EQ(jobs[0].job, "assay-1_1");
  EXPECT_EQ(jobs[0].state, "RUNNING");
  EXPECT_EQ(jobs[0].nodes, "n1");
  EXPECT_EQ(jobs[0].comment, "assay:1");
  EXPECT_EQ(jobs[1].reason, "ImagePullBackOff");
  EXPECT_TRUE(jobs[1].is_pending());
  EXPECT_EQ(jobs[2].tasks, (Ranges{{3, 3}, {4, 4}})) << "the pod of 3 has failed; neither is done";
}

TEST(SitesOfHosts, GpusOfATypeAreSlurms) {
  const auto found = site_from_text("schema = 1\n[ssh]\nhosts = [\"a\"]\ngpus_per_node = \"h100:8\"\n", "s.toml");
  ASSERT_EQ(found.mistakes.size(), 1U);
  EXPECT_NE(found.mistakes[0].to_string().find("'h100', which Slurm alone takes; expected gpus_per_node = 8"),
            std::string::npos);
}

TEST(SitesOfHosts, GpusOfATypeAreReportedUnderTheirTable) {
  const auto found = site_from_text(
      "schema = 1\n[ssh]\nhosts = [\"a\"]\ngpus_per_node = \"h100:8\"\n[kubernetes]\nimage = \"a\"\n", "s.toml");
  std::string text;
  for (const auto& mistake : found.mistakes) text += mistake.to_string() + "\n";
  EXPECT_NE(text.find("s.toml:4:1: [ssh] gpus_per_node has the type 'h100'"), std::string::npos) << text;
  EXPECT_NE(text.find("[kubernetes] beside [ssh]"), std::string::npos) << text;
  EXPECT_EQ(text.find("[kubernetes] gpus_per_node"), std::string::npos) << text;
}

}  // namespace
}  // namespace assay::host::batch
