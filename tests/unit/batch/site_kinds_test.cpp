// Sites of hosts and of Kubernetes, without either.
#include "batch/site_kinds.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "batch/collect.hpp"
#include "batch/container.hpp"
#include "batch/hosts_runner.hpp"
#include "batch/hosts_site.hpp"
#include "batch/job_environment.hpp"
#include "batch/kubernetes_site.hpp"
#include "batch/status_command.hpp"
#include "batch_run.hpp"
#include "common/command.hpp"
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
  why("other.toml has the kind [ssh], and the batch was submitted with the kind [slurm]");
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

// The script of a pod, played by bash with an assay that leaves a verdict.
class PodScript : public ::testing::Test {
 protected:
  PodScript() {
    site_.settings = KubernetesSettings{{}, "i", "v", folder_.path().string()};
    array_.tasks = 1, array_.limit_s = 3600, array_.id = "1";
    for (const char* folder : {"shards/0-0000", "log"})
      std::filesystem::create_directories(folder_ / "run/batch" / folder);
  }
  nlohmann::json manifest() const {
    return nlohmann::json::parse(kubernetes_manifest({site_, array_, "x", folder_ / "run", folder_ / "assay", 5}));
  }
  int exit_code(const std::string& verdict) {
    test::put_file(folder_ / "assay", "#!/bin/bash\n[ $5 = --until ] || { " + ready_ + "; }\n[ -z '" + verdict +
                                          "' ] || echo '" + verdict +
                                          "' >\"$4/verdict-$ASSAY_JOB_ID-$ASSAY_JOB_RESTART\"\nexit 1\n");
    std::filesystem::permissions(folder_ / "assay", std::filesystem::perms::owner_all);
    const auto command = manifest()["spec"]["template"]["spec"]["containers"][0]["command"].get<Names>();
    std::filesystem::remove(folder_ / "run/batch/shards/0-0000/verdict-assay-1_0-0");
    Names words{"env", "JOB_COMPLETION_INDEX=0"};
    words.insert(words.end(), command.begin(), command.end());
    return run_command(words, 30s).exit_code;
  }
  test::TemporaryFolder folder_;
  Site site_;
  SubmittedArray array_;
  std::string ready_ = "exit 0";  // what --node-ready does
};

TEST_F(PodScript, ANodeThatIsNotReadyEndsTheIndexAndAnUnhealthyOneThePod) {
  const auto reason = folder_ / "run/batch/shards/0-0000/unready-assay-1_0-0";
  ready_ = "echo noise; echo 'assay: node n1: no GPU'; exit 1";
  EXPECT_EQ(exit_code("done"), 65);
  EXPECT_EQ(read_file(reason), "assay: node n1: no GPU\n");
  EXPECT_EQ(read_file(folder_ / "run/batch/log/assay-1_0.log"),
            "noise\nassay: node n1: no GPU\nassay: node n1: no GPU\n")
      << "what the pod prints outlives it";
  std::filesystem::remove(reason);
  ready_ = "echo 'n2, rank 1: assay: node n2: slow'; exit 75";
  EXPECT_EQ(exit_code("done"), 1);
  EXPECT_EQ(read_file(reason), "assay: node n2: slow\n");
  site_.exclude = {"n2"};
  EXPECT_NE(manifest().dump().find(R"("matchFields":[{"key":"metadata.name","operator":"NotIn","values":["n2"]}])"),
            std::string::npos);
  site_.health.experiment = "/elsewhere/check.toml";
  EXPECT_THROW(manifest(), SiteError) << "pods would not see it";
}

// The words before `assay run`, as a script has them.
class ContainerScript : public ::testing::Test {
 protected:
  ContainerScript() {
    array_.id = "1", array_.tasks = 1, array_.limit_s = 600;
    site_.container = {"a/b:1", "podman", "", {"/data", "/a:/b:ro"}, {"--memory=1g"}};
  }
  std::string words() const { return container_words(input()); }
  ScriptInput input() const { return {site_, array_, "x", "/r/run", "/opt/assay/bin/assay", 5, reads_}; }
  Site site_;
  SubmittedArray array_;
  std::vector<std::filesystem::path> reads_{"/home/u/e/x.toml", "/opt/assay/lib/assay/plugins/p.so"};
};

TEST_F(ContainerScript, EachRuntimeMountsTheRunAndWhatItReads) {
  const auto has = [this](const char* part) { return words().find(part) != std::string::npos; };
  EXPECT_TRUE(
      has(" -v /home/u/e:/home/u/e:ro -v /opt/assay:/opt/assay:ro -v /r/run:/r/run -v /data:/data -v /a:/b:ro "))
      << words();
  EXPECT_TRUE(has(" --memory=1g 'a/b:1' ")) << words();
  EXPECT_FALSE(has("--device"));
  site_.gpus_per_node = 8;
  EXPECT_TRUE(has(" --device nvidia.com/gpu=all ")) << words();
  site_.container.runtime = "apptainer";
  EXPECT_TRUE(
      has("apptainer exec --nv --bind /home/u/e:/home/u/e:ro,/opt/assay:/opt/assay:ro,/r/run:/r/run,/data:/data,"
          "/a:/b:ro --pwd /r/run --memory=1g 'a/b:1' "))
      << words();
  site_.container.runtime = "pyxis";
  EXPECT_TRUE(words().starts_with("--container-image='a/b:1' --container-mounts=/home/u/e:/home/u/e:ro,")) << words();
  EXPECT_NE(batch_script(input()).find(" --container-workdir=/r/run --memory=1g /opt/assay/bin/assay run "),
            std::string::npos);
  site_.container.assay = "/usr/bin/assay";
  EXPECT_FALSE(has("/opt/assay:/opt/assay:ro,/r")) << "the image has its own: " << words();
  EXPECT_NE(batch_script(input()).find(" /usr/bin/assay run "), std::string::npos);
  reads_ = {"/home/a:b/x.toml"};
  EXPECT_THROW(words(), SiteError);
  site_.container.image.clear();
  EXPECT_EQ(words(), "");
}

TEST_F(ContainerScript, FoldersThatAnImageHasItselfAreNotHidden) {
  const auto mounts = [this] {
    const std::string all = words();
    const std::size_t begin = all.find(" -v "), end = all.find(" -v /r/run");
    return all.substr(begin, end - begin);
  };
  for (const char* prefix : {"/usr", "/usr/local", "/tmp", "/opt", "/home/u"}) {
    site_.assay = prefix + std::string("/bin/assay");
    reads_ = {"/tmp/x.toml"};
    const std::string of_prefix = fmt::format(
                          " -v {0}/bin/assay:{0}/bin/assay:ro -v {0}/lib/assay:{0}/lib/assay:ro "
                          "-v {0}/share/assay:{0}/share/assay:ro",
                          prefix),
                      of_file = " -v /tmp/x.toml:/tmp/x.toml:ro";
    EXPECT_EQ(mounts(), std::string(prefix) < "/tmp/x" ? of_prefix + of_file : of_file + of_prefix);
  }
  site_.container.assay = "/usr/bin/assay", site_.health.experiment = "/etc/health.toml";
  for (const char* file : {"/x.toml", "/home/u/x.toml", "/usr/local/x.toml", "/dev/shm/x.toml"}) {
    reads_ = {file};
    EXPECT_NE(mounts().find(fmt::format(" -v {0}:{0}:ro", file)), std::string::npos) << mounts();
    EXPECT_NE(mounts().find(" -v /etc/health.toml:/etc/health.toml:ro"), std::string::npos) << mounts();
  }
}

// What podman is started with, by a podman that prints it.
TEST_F(ContainerScript, PodmanGetsTheScriptsVariablesWithoutTheHostsPaths) {
  const test::TemporaryFolder folder;
  test::put_file(folder / "podman", "#!/bin/bash\nprintf '%s\\n' \"$@\" \"libraries: ${LD_LIBRARY_PATH-none}\"\n");
  std::filesystem::permissions(folder / "podman", std::filesystem::perms::owner_all);
  test::put_file(folder / "script", words() + "'a program' one\n");
  const std::string said =
      run_command({"env", "PATH=" + folder.path().string() + ":" + std::getenv("PATH"), "LD_LIBRARY_PATH=/host",
                   "TMPDIR=/host", "HOME=/host", "HERE=a b", "bash", (folder / "script").string()},
                  30s)
          .out;
  EXPECT_TRUE(said.starts_with("run\n--env=")) << said;
  for (const char* line : {"\n--env=HERE\n", "\n--env=ASSAY_LAUNCHER_PID\n", "\n--network=host\n",
                           "\n--memory=1g\na/b:1\na program\none\nlibraries: none\n"})
    EXPECT_NE(said.find(line), std::string::npos) << line << said;
  for (const char* part : {"--env-host", "--env=PATH", "--env=LD_", "--env=TMPDIR", "--env=HOME"})
    EXPECT_EQ(said.find(part), std::string::npos) << part << said;
}

TEST_F(ContainerScript, HostsRunACaseInAContainerOfOneHost) {
  site_.settings = HostsSettings{};
  EXPECT_NE(hosts_script(input()).find("exec bash -c 'export ASSAY_LAUNCHER_PID=$$; "), std::string::npos);
  array_.shape.nodes = 2;
  EXPECT_THROW(hosts_script(input()), SiteError);
}

TEST_F(PodScript, OnlyWhatIsLeftGetsAnotherPod) {
  const auto rule = manifest()["spec"]["podFailurePolicy"]["rules"][0];
  EXPECT_EQ(rule["action"], "FailIndex");
  const int final_code = rule["onExitCodes"]["values"][0];
  EXPECT_EQ(exit_code("done"), 0);
  EXPECT_EQ(exit_code("more"), 1);
  EXPECT_EQ(exit_code(""), 1) << "it was killed";
  for (const char* verdict : {"failed", "changed", "busy", "superseded"}) EXPECT_EQ(exit_code(verdict), final_code);
  site_.prologue = {"false", "touch " + (folder_ / "later").string()};
  EXPECT_EQ(exit_code("done"), final_code);
  EXPECT_EQ(read_file(folder_ / "run/batch/shards/0-0000/verdict-assay-1_0-0"), "failed\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "later"));
}

// Each kind's script has the same prologue.
TEST_F(PodScript, APrologueEndsAShardOfEachKindAlike) {
  const auto shard = folder_ / "run/batch/shards/0-0000";
  test::put_file(folder_ / "loads.sh", "false\nexport LOADED=1\n");
  const auto verdict_of = [&](const std::string& kind, const std::string& line) {
    site_.prologue = {line}, site_.assay = (folder_ / "assay").string();
    test::put_file(folder_ / "assay", "#!/bin/bash\nexit 0\n");
    std::filesystem::permissions(folder_ / "assay", std::filesystem::perms::owner_all);
    const ScriptInput input{site_, array_, "x", folder_ / "run", folder_ / "assay", 5};
    const SiteSettings of_pods = site_.settings;
    if (kind == "ssh") site_.settings = HostsSettings{};
    if (kind == "slurm") site_.settings = SlurmSettings{};
    Names words{"env", "SLURM_JOB_ID=j", "SLURM_ARRAY_TASK_ID=0", "JOB_COMPLETION_INDEX=0"};
    if (kind == "kubernetes") {
      const auto command = manifest()["spec"]["template"]["spec"]["containers"][0]["command"].get<Names>();
      words.insert(words.end(), command.begin(), command.end());
    } else {
      test::put_file(folder_ / "script", kind == "ssh" ? hosts_script(input) : batch_script(input));
      words.insert(words.end(), {"ASSAY_JOB_ID=j", "ASSAY_JOB_RESTART=0", "ASSAY_JOB_TASK=0"});
      words.insert(words.end(), {"PATH=" + folder_.path().string() + ":" + std::getenv("PATH"), "bash",
                                 (folder_ / "script").string()});
    }
    site_.settings = of_pods;
    run_command(words, 30s);
    std::string all;
    for (const char* word : {"unready", "verdict"}) {
      const auto file = shard / fmt::format("{}-{}-0", word, kind == "kubernetes" ? "assay-1_0" : "j");
      if (std::filesystem::exists(file)) all += read_file(file);
      std::filesystem::remove(file);
    }
    return all;
  };
  test::put_file(folder_ / "srun", "#!/bin/bash\nexit 0\n");
  std::filesystem::permissions(folder_ / "srun", std::filesystem::perms::owner_all);
  for (const char* kind : {"slurm", "ssh", "kubernetes"}) {
    SCOPED_TRACE(kind);
    EXPECT_EQ(verdict_of(kind, ". " + (folder_ / "loads.sh").string()), "") << "what it reads may fail within";
    EXPECT_EQ(verdict_of(kind, "set -e; . " + (folder_ / "loads.sh").string() + " || true"), "");
    EXPECT_EQ(verdict_of(kind, "ls /no/such"), "the prologue failed with exit status 2 at: ls /no/such\nfailed\n");
    for (const char* line : {". /no/such/file", "set -o posix; . /no/such/file", "exit 3", "if true; fi"})
      EXPECT_TRUE(verdict_of(kind, line).ends_with("\nfailed\n")) << line;
  }
}

TEST_F(PodScript, TheProgramsPathIsNoCommand) {
  site_.assay = "/opt/assay;reboot";
  EXPECT_THROW(manifest(), SiteError);
}

TEST(SitesOfHosts, GpusOfATypeAreSlurms) {
  const auto found = site_from_text("schema = 1\n[ssh]\nhosts = [\"a\"]\ngpus_per_node = \"h100:8\"\n", "s.toml");
  ASSERT_EQ(found.mistakes.size(), 1U);
  EXPECT_NE(found.mistakes[0].to_string().find("expected gpus_per_node = 8"), std::string::npos);
}

}  // namespace
}  // namespace assay::host::batch
