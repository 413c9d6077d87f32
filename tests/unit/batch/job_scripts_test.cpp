// The scripts of pods and of containers, played by bash or read.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "batch/container.hpp"
#include "batch/hosts_site.hpp"
#include "batch/kubernetes_site.hpp"
#include "batch/script.hpp"
#include "common/command.hpp"
#include "common/files.hpp"
#include "sites.hpp"
#include "support/files.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host::batch {
namespace {

using Names = std::vector<std::string>;
using namespace std::chrono_literals;

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

}  // namespace
}  // namespace assay::host::batch
