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
  EXPECT_EQ(result.exit.code, 2);
  EXPECT_PRED2(contains, result.output,
               "assay: --output: no run can have its folder in file/out/x: Not a directory; a "
               "file stands where a folder is expected: move it away, or choose another");
}

// A file system of a few hundred KiB more than the libraries that a run takes with it; needs the right to mount.
class FullDisk : public BadPluginSandbox {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder() / "out");
    const std::uintmax_t taken =
        std::filesystem::file_size(CPU_DEVICE) +
        std::filesystem::file_size(std::filesystem::path(BAD_PLUGINS) / "bad_sometimes_bad.so");
    const std::string size = "size=" + std::to_string(taken / 1024 + 300) + "k";
    if (mount("assay-test", (folder() / "out").c_str(), "tmpfs", 0, size.c_str()) != 0)
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

// Copies of libraries are what a run needs first.
TEST_F(FullDisk, WithoutRoomForTheLibrariesNothingIsStarted) {
  std::ofstream(folder() / "out/in_the_way") << std::string(512 * 1024, ' ');
  const RunResult result = run_experiment({.plugin = "bad_sometimes_bad", .params = "bad_at = -1\ni = 0"});
  EXPECT_EQ(result.exit.code, 1) << result.output;
  EXPECT_PRED2(contains, result.output, "cannot copy a library to ");
  EXPECT_PRED2(contains, result.output, "free some space there, or choose another folder with --output DIR");
  EXPECT_TRUE(cases().empty());
  EXPECT_FALSE(std::filesystem::exists(run_folders().back() / "files"));
}

}  // namespace
}  // namespace assay::test
