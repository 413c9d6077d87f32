// A disk that is full and a folder that cannot be written: a clear message, and nothing that was finished is lost.
#include <sys/mount.h>
#include <unistd.h>

#include <fstream>

#include "bad_plugin_sandbox.hpp"

namespace assay::test {
namespace {

class Disk : public BadPluginSandbox {};

TEST_F(Disk, AnOutputFolderThatCannotBeMadeStopsBeforeTheFirstCase) {
  std::ofstream(folder() / "file") << "in the way";
  const RunResult result = run_experiment({.plugin = "bad_garbage_on_stdout"}, {"--output", "file/out"});
  EXPECT_NE(result.exit.code, 0);
  EXPECT_NE(result.exit.code, 130);
  EXPECT_PRED2(contains, result.output, "file/out");
  EXPECT_PRED2(contains, result.output, "--output");
}

// A file system of a few hundred KiB; needs the right to mount.
class FullDisk : public BadPluginSandbox {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder() / "out");
    if (mount("assay-test", (folder() / "out").c_str(), "tmpfs", 0, "size=256k") != 0)
      GTEST_SKIP() << "mounting a small file system is not permitted here";
  }
  void TearDown() override { umount2((folder() / "out").c_str(), MNT_DETACH); }
};

TEST_F(FullDisk, KeepsTheFinishedCasesWhole) {
  // Each record holds its raw samples, some 20 bytes each: the disk is full after a few cases.
  std::string values;
  for (int i = 0; i < 40; ++i) values += (i ? ", " : "") + std::to_string(i);
  const RunResult result = run_experiment({.plugin = "bad_sometimes_bad",
                                           .params = "bad_at = -1",
                                           .measure = "warmup = 0\nsteps = 2000\ntimeout = \"60s\"",
                                           .sweep = "i = [" + values + "]"});
  EXPECT_NE(result.exit.code, 0);
  EXPECT_PRED2(contains, result.output, "No space left");
  const auto records = cases();
  EXPECT_GE(records.size(), 1u) << result.output;
  EXPECT_LT(records.size(), 40u);
  const std::string text = text_of(run_folders().back() / "cases.jsonl");
  EXPECT_TRUE(text.ends_with('\n')) << "a torn line was left behind";
}

}  // namespace
}  // namespace assay::test
