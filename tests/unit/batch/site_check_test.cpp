#include "batch/site_check.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "batch/container_image.hpp"
#include "batch/site_kinds.hpp"
#include "sites.hpp"
#include "support/files.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host::batch {
namespace {

namespace fs = std::filesystem;

// Programs of the test's in front of the machine's.
class Programs {
 public:
  Programs() : path_(std::getenv("PATH")) { ::setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1); }
  ~Programs() { ::setenv("PATH", path_.c_str(), 1); }
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;
  void put(const std::string& name, const std::string& lines) const {
    test::put_file(folder_ / name, "#!/bin/sh\n" + lines);
    fs::permissions(folder_ / name, fs::perms::owner_all);
  }

 private:
  test::TemporaryFolder folder_;
  std::string path_;
};

std::vector<NodeState> nodes() {
  return parse_nodes(
      "g1|idle|96|gpu:h100:8(S:0-1)|(null)|infinite|gpu\n"
      "g1|idle|96|gpu:h100:8(S:0-1)|(null)|infinite|all*\n"
      "g2|idle|96|gpu:h100:4|(null)|infinite|gpu\n"
      "c1|idle|96|(null)|(null)|infinite|cpu\n");
}

TEST(CheckOfGpus, ASiteThatAsksForNoneOfItsPartitionsGpusHearsOfIt) {
  Site site;
  site.file = "s.toml", slurm_of(site).partition = "gpu";
  const auto note = note_on_gpus(site, nodes());
  ASSERT_TRUE(note);
  EXPECT_TRUE(note->starts_with("nodes of the partition 'gpu' have 8 GPUs, and s.toml asks for none: its jobs may see"))
      << *note;
  EXPECT_NE(note->find("For GPUs set [slurm] gpus_per_node = 8"), std::string::npos) << *note;
  site.container.image = "i";
  EXPECT_NE(note_on_gpus(site, nodes())->find("its jobs, and containers in them, may see"), std::string::npos);
  slurm_of(site).partition.clear();
  EXPECT_NE(note_on_gpus(site, nodes())->find("partition 'all' have 8"), std::string::npos) << "the default one";
  slurm_of(site).partition = "cpu";
  EXPECT_FALSE(note_on_gpus(site, nodes())) << "other partitions' nodes do not count";
  slurm_of(site).partition = "gpu", site.gpus_per_node = 8;
  EXPECT_FALSE(note_on_gpus(site, nodes()));
  site.gpus_per_node = 0, slurm_of(site).sbatch_extra = {"--gres=gpu:8"};
  EXPECT_FALSE(note_on_gpus(site, nodes()));
}

TEST(CheckOfGpus, SinfoIsAskedOnlyWhereTheSiteAsksForNone) {
  const Programs programs;
  programs.put("sinfo", "echo 'g1|idle|96|gpu:2|(null)|infinite|gpu*'\n");
  Site site;
  EXPECT_EQ(SlurmSettings::kind.notes_on_gpus(site).size(), 1U);
  programs.put("sinfo", "exit 1\n");
  EXPECT_THROW(SlurmSettings::kind.notes_on_gpus(site), SchedulerError);
  site.gpus_per_node = 2;
  EXPECT_TRUE(SlurmSettings::kind.notes_on_gpus(site).empty());
}

TEST(CheckOfImages, WhatIsAFileIsKnownByItsRuntime) {
  const auto file = [](const char* runtime, const char* image) {
    return file_of_image({image, runtime, "", {}, {}}).value_or("").string();
  };
  EXPECT_EQ(file("apptainer", "/images/a.sif"), "/images/a.sif");
  EXPECT_EQ(file("apptainer", "a.sif"), "a.sif");
  EXPECT_EQ(file("apptainer", "docker://a/b:1"), "");
  EXPECT_EQ(file("apptainer", "oci-archive:/a.tar:1"), "/a.tar");
  EXPECT_EQ(file("pyxis", "/images/a.sqsh"), "/images/a.sqsh");
  EXPECT_EQ(file("pyxis", "./a.sqsh"), "./a.sqsh");
  EXPECT_EQ(file("pyxis", "nvcr.io#nvidia/pytorch:1"), "");
  EXPECT_EQ(file("podman", "a/b:1"), "");
  EXPECT_EQ(file("podman", "/a/b"), "");
  EXPECT_EQ(file("podman", "docker-archive:/a.tar"), "/a.tar");
  EXPECT_EQ(file("podman", ""), "");
}

TEST(CheckOfImages, AFileThatIsNotThereIsAProblem) {
  const test::TemporaryFolder folder;
  const SiteContainer container{(folder / "a.sif").string(), "apptainer", "", {}, {}};
  const ImageFinding missing = look_for_image(container, "slurm");
  EXPECT_TRUE(missing.problem.starts_with("[slurm.container] image is '" + container.image + "': No such file"))
      << missing.problem;
  EXPECT_EQ(missing.note, "");
  test::put_file(folder / "a.sif", "");
  EXPECT_EQ(look_for_image(container, "slurm").problem, "");
  EXPECT_EQ(look_for_image({}, "slurm").problem, "");
  const ImageFinding registry = look_for_image({"docker://a", "apptainer", "", {}, {}}, "slurm");
  EXPECT_EQ(registry.problem, "");
  EXPECT_NE(registry.note.find("'docker://a' is in a registry, which is not asked"), std::string::npos);
}

TEST(CheckOfImages, PodmanKnowsItsStoreAndRegistries) {
  const Programs programs;
  const auto look = [](const char* image) { return look_for_image({image, "podman", "", {}, {}}, "ssh"); };
  programs.put("podman", "[ \"$*\" = 'image exists a/b:1' ] || { echo \"said $*\" >&2; exit 1; }\n");
  EXPECT_EQ(look("a/b:1").problem + look("a/b:1").note, "");
  EXPECT_EQ(look("a/b:2").problem,
            "[ssh.container] image is 'a/b:2': podman has no such image here, and finds none in a registry: said "
            "manifest inspect a/b:2; build it, or name one that is there (docs/cluster.md)");
  EXPECT_EQ(look("localhost/b").problem, "") << "each node has a store";
  EXPECT_NE(look("localhost/b").note.find("each node must have it"), std::string::npos);
  programs.put("podman", "[ \"$1\" = manifest ]\n");
  EXPECT_EQ(look("a/b:2").problem + look("a/b:2").note, "");
}

TEST(CheckOfImages, WithoutPodmanNothingIsKnown) {
  const test::TemporaryFolder folder;
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", folder.path().c_str(), 1);
  const ImageFinding finding = look_for_image({"a/b:1", "podman", "", {}, {}}, "slurm");
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(finding.problem, "");
  EXPECT_NE(finding.note.find("there is no podman here"), std::string::npos) << finding.note;
}

}  // namespace
}  // namespace assay::host::batch
