#include "results/leftovers.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <chrono>

#include "common/fd.hpp"
#include "support/files.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host::results {
namespace {

namespace fs = std::filesystem;
using test::put_file;

class Leftovers : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text = "x") { put_file(folder_ / path, text); }
  void put_data_set() {
    put("data/set/_manifest.json", R"({"format": "assay token pairs", "version": 1})");
    put("data/set/shard_0000.bin", std::string(1000, 's'));
    put("data/set/_lock", "");
    put("data/set/mine.txt", "of the user");
  }
  static std::uint64_t remove_all(const std::vector<Leftover>& all) {
    std::vector<std::string> problems;
    std::uint64_t bytes = 0;
    for (const Leftover& each : all) bytes += remove(each, problems);
    EXPECT_TRUE(problems.empty()) << problems[0];
    return bytes;
  }
  test::TemporaryFolder folder_;
};

TEST_F(Leftovers, OfTheCacheAreItsOwnFiles) {
  put("cache/plugins/a.tables");
  put("cache/history.sqlite");
  const std::string algorithms = R"({"format": 1, "limits": "none", "algorithms": {}})";
  put("cache/matmul_NVIDIA_H200.json", algorithms);
  put("cache/mine.txt");
  put("cache/package.json", "{}");
  const auto found = leftovers_of_cache(folder_ / "cache");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(remove_all(found), 2 + algorithms.size());
  EXPECT_TRUE(fs::exists(folder_ / "cache/mine.txt"));
  EXPECT_TRUE(fs::exists(folder_ / "cache/package.json")) << "it is no file of algorithms";
  EXPECT_FALSE(fs::exists(folder_ / "cache/plugins"));
  EXPECT_TRUE(leftovers_of_cache(folder_ / "cache").empty());
  EXPECT_TRUE(leftovers_of_cache("").empty());
  EXPECT_TRUE(leftovers_of_cache(folder_ / "nowhere").empty());
}

TEST_F(Leftovers, ADataSetIsKnownByItsManifest) {
  put_data_set();
  put("data/other/_manifest.json", R"({"format": "of somebody else"})");
  put("data/other/shard_0000.bin");
  const auto found = leftovers_below(folder_.path());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, Leftover::Kind::data);
  EXPECT_GT(found[0].bytes, 1000u);
  EXPECT_EQ(remove_all(found), found[0].bytes);
  EXPECT_TRUE(fs::exists(folder_ / "data/set/mine.txt")) << "what it did not make stays";
  EXPECT_FALSE(fs::exists(folder_ / "data/set/shard_0000.bin"));
  EXPECT_TRUE(fs::exists(folder_ / "data/other/shard_0000.bin"));
}

TEST_F(Leftovers, StayWhereSomebodyHasBegunToUseThem) {
  put_data_set();
  const auto found = leftovers_below(folder_.path());
  ASSERT_EQ(found.size(), 1u);
  const Fd lock(::open((folder_ / "data/set/_lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_SH), 0);
  std::vector<std::string> problems;
  EXPECT_EQ(remove(found[0], problems), 0u);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(problems[0].find("in use"), std::string::npos) << problems[0];
  EXPECT_TRUE(fs::exists(folder_ / "data/set/shard_0000.bin"));
}

TEST_F(Leftovers, ARunWithoutARecordStaysWhereAnythingInItIsSomebodys) {
  put("results/x/run/cases.jsonl", "");
  put("results/x/run/experiment.toml", "name");
  put("results/x/run/logs/case-0001.rank0.log");
  put("results/x/run/environments/0123.json");
  EXPECT_EQ(leftovers_below(folder_ / "results").size(), 1u);
  put("results/x/run/logs/deep/thesis.txt");
  EXPECT_TRUE(leftovers_below(folder_ / "results").empty());
}

TEST_F(Leftovers, OfRunsAreCopiesAndUnfinishedFilesAndNoRecord) {
  put("results/x/run1/cases.jsonl", "{}\n");
  put("results/x/run1/files/libx.so", std::string(100, 'l'));
  put("results/x/run1/dump.bin.partial", std::string(10, 'd'));
  put("results/x/run1/dump.bin");
  put("results/x/run2/cases.jsonl", "");
  put("results/x/run2/experiment.toml", "name");
  const auto found = leftovers_below(folder_ / "results");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(remove_all(found), 114u);
  EXPECT_TRUE(fs::exists(folder_ / "results/x/run1/cases.jsonl"));
  EXPECT_TRUE(fs::exists(folder_ / "results/x/run1/dump.bin"));
  EXPECT_FALSE(fs::exists(folder_ / "results/x/run1/files"));
  EXPECT_FALSE(fs::exists(folder_ / "results/x/run2"));
}

TEST_F(Leftovers, WhatSomebodyHoldsIsLeftOut) {
  put_data_set();
  put("results/x/run1/cases.jsonl", "");
  put("results/x/run1/experiment.toml");
  std::vector<Fd> held;
  for (const char* file : {"data/set/_lock", "results/x/run1/cases.jsonl"}) {
    held.emplace_back(::open((folder_ / file).c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::flock(held.back().get(), LOCK_EX | LOCK_NB), 0);
  }
  EXPECT_TRUE(leftovers_below(folder_.path()).empty());
  held.clear();
  EXPECT_EQ(leftovers_below(folder_.path()).size(), 2u);
}

TEST_F(Leftovers, ABatchAndWhatIsSomebodysAreLeftAlone) {
  put("results/x/run1/cases.jsonl", "");  // until its records are collected
  put("results/x/run1/experiment.toml");
  put("results/x/run1/batch/shards/0-0000/attempts/0001/cases.jsonl", "{}\n");
  put("project/cases.jsonl", "");
  put("project/src/a.c");
  put("notes/cases.jsonl", "");
  put("notes/experiment.toml");
  put("notes/mine.txt");
  EXPECT_TRUE(leftovers_below(folder_.path()).empty());
}

TEST_F(Leftovers, OldRunsGoWhole) {
  const std::string old_run = "results/x/20250101T000000Z-ab12/", new_run = "results/x/20250102T000000Z-ab12/";
  for (const std::string& run : {old_run, new_run}) {
    put(run + "experiment.toml");
    put(run + "cases.jsonl", "{}\n");
    for (const char* also : {"table.md", "bench_cpu_1gpu_20250101T000000Z.json", "kernels_case-0001.md", "report.html"})
      put(run + also);
    put(run + "batch/shards/0-0000/shard.json", R"({"cases": []})");
    put(run + "batch/shards/0-0000/attempts/0001/cases.jsonl", "{}\n");
  }
  put("results/x/20250103T000000Z-ab12/notes.txt");
  fs::create_directory_symlink("20250101T000000Z-ab12", folder_ / "results/x/latest");
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(24 * 100);
  for (const auto& each : fs::recursive_directory_iterator(folder_ / "results"))
    if (!each.is_symlink()) fs::last_write_time(each.path(), long_ago);
  // A job of it still writes.
  put(new_run + "batch/shards/0-0000/attempts/0001/progress.json");
  const double now_s = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_TRUE(old_runs_below(folder_.path(), now_s - 101 * 86400.0).empty());
  const auto found = old_runs_below(folder_.path(), now_s - 90 * 86400.0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].place, folder_ / "results/x/20250101T000000Z-ab12");
  remove_all(found);
  EXPECT_FALSE(fs::exists(folder_ / old_run));
  EXPECT_FALSE(fs::is_symlink(folder_ / "results/x/latest"));
  EXPECT_TRUE(fs::exists(folder_ / new_run / "cases.jsonl"));
  EXPECT_TRUE(fs::exists(folder_ / "results/x/20250103T000000Z-ab12/notes.txt")) << "it is no run";
}

TEST_F(Leftovers, OldRunsStayWithWhatIsSomebodysOrWaits) {
  const std::string runs[] = {"results/x/20250101T000000Z-ab12/", "results/x/20250102T000000Z-ab12/",
                              "results/x/20250103T000000Z-ab12/", "results/x/20250104T000000Z-ab12/"};
  for (const std::string& run : runs) {
    put(run + "experiment.toml");
    put(run + "cases.jsonl", "");
  }
  put(runs[0] + "notes.txt");
  put(runs[1] + "out/x.safetensors");
  put(runs[2] + "batch/shards/0-0000/shard.json", R"({"cases": [0]})");
  put(runs[3] + "batch/submission.json", "{}");
  EXPECT_TRUE(old_runs_below(folder_.path(), 1e12).empty());
  fs::remove(folder_ / (runs[0] + "notes.txt"));
  EXPECT_EQ(old_runs_below(folder_.path(), 1e12).size(), 1u);
}

TEST_F(Leftovers, LinksAreNotFollowed) {
  put_data_set();
  put("elsewhere/libx.so");
  put("elsewhere/y.tables");
  put("results/x/run1/cases.jsonl", "{}\n");
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "results/x/run1/files");
  fs::create_directories(folder_ / "cache");
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "cache/plugins");
  EXPECT_TRUE(leftovers_of_cache(folder_ / "cache").empty());
  fs::create_directories(folder_ / "results");
  fs::create_directory_symlink(folder_ / "data", folder_ / "results/link");
  EXPECT_TRUE(leftovers_below(folder_ / "results").empty());
}

}  // namespace
}  // namespace assay::host::results
