// Disks without room: known before the first byte, by a limit, and by a disk that fills up on the way.
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <utility>

#include "dataset_fixture.hpp"
#include "processes.hpp"

namespace assay::data {
namespace {

using FullDisk = DatasetTest;

constexpr int as_expected = 0, not_refused = 1, wrong_text = 2, remains = 3, no_mount = 4;

// In a child, where gtest's expectations are not seen: how opening fails.
int how_it_fails(const std::string& folder, const DatasetParameters& parameters, const Progress& progress,
                 const std::vector<std::string>& expected) {
  std::string text;
  try {
    ShardedSamples::open_or_generate(folder, parameters, progress);
    return not_refused;
  } catch (const Error& e) {
    text = e.status() == ASSAY_INTERNAL ? e.what() : "of another status";
  }
  for (const std::string& part : expected)
    if (text.find(part) == std::string::npos) {
      std::cerr << "'" << part << "' is not in: " << text << std::endl;
      return wrong_text;
    }
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename() != "_lock" && entry.path().filename() != "other") {
      std::cerr << "left: " << entry.path() << std::endl;
      return remains;
    }
  return as_expected;
}

TEST_F(FullDisk, KnownBeforeTheFirstByte) {
  parameters = {{256, 8192}, 1'000'000'000'000, 1, 1000};  // four petabytes
  bool begun = false;
  std::string text;
  try {
    open(parameters, [&](std::uint64_t, std::uint64_t) { begun = true; });
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_INTERNAL);
    text = e.what();
  }
  EXPECT_FALSE(begun);
  EXPECT_SAYS(text, folder().string() + ": the data set wants 4096000.0 GB (4096000001048576 bytes), its disk has ");
  EXPECT_SAYS(text, " bytes) free; nothing was written. Remedy: make room");
  EXPECT_EQ(names(), (std::set<std::string>{"_lock"}));
}

TEST_F(FullDisk, LimitOfAFilesSize) {
  parameters = {{128, 1000}, 4000, 9, 2};  // two shards of 4 MB
  Child child([&] {
    const rlimit limit{1'000'000, 1'000'000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 97;
    ::signal(SIGXFSZ, SIG_IGN);
    return how_it_fails(folder().string(), parameters, {},
                        {"shard_000", ".bin.partial: writing: File too large", "ulimit -f",
                         "of 8.2 MB (8192000 bytes), "
                         "and cleared"});
  });
  EXPECT_EQ(child.wait(), as_expected);
  EXPECT_TRUE(open()->generated());  // without the limit
}

// A disk of 24 MB of the test's own, which another file fills when the generation begins: after it was asked for its
// room.
TEST_F(FullDisk, FillsUpOnTheWay) {
  parameters = {{128, 1000}, 8000, 9, 4};  // 16 MB
  const std::string disk = (temporary_ / "disk").string();
  std::filesystem::create_directory(disk);
  Child child([&] {
    const unsigned own_users = ::geteuid() == 0 ? 0 : CLONE_NEWUSER;
    if (::unshare(CLONE_NEWNS | own_users) != 0) return no_mount;
    ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (::mount("none", disk.c_str(), "tmpfs", 0, "size=24m") != 0) return no_mount;
    bool filled = false;
    const Progress fill = [&](std::uint64_t, std::uint64_t) {
      if (std::exchange(filled, true)) return;  // opening the file again would empty it
      std::ofstream other(disk + "/other", std::ios::binary);
      const std::string block(1 << 16, 'x');
      while (other.write(block.data(), 1 << 16).flush()) continue;
    };
    return how_it_fails(disk, parameters, fill,
                        {"shard_000", ".partial: writing: No space left on device; remedy: make room", "and cleared"});
  });
  const int result = child.wait();
  if (result == no_mount) GTEST_SKIP() << "no file system can be mounted here";
  EXPECT_EQ(result, as_expected);
}

}  // namespace
}  // namespace assay::data
