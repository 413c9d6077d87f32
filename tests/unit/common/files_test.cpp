#include "common/files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "support/files.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> flushed;  // by the calls below, in order
int next_error = 0;

int note_flush(int fd) {
  flushed.push_back(fs::read_symlink("/proc/self/fd/" + std::to_string(fd)));
  if (next_error == 0) return 0;
  errno = next_error;
  return -1;
}

class Files : public testing::Test {
 protected:
  Files() {
    flushed.clear();
    next_error = 0;
    set_flush_call(note_flush);
  }
  ~Files() override { set_flush_call(nullptr); }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_.path())) found.push_back(entry.path().filename());
    return found;
  }

  test::TemporaryFolder folder_;
  const fs::path here_ = fs::canonical(folder_.path());
};

TEST_F(Files, ADurableFileHasItsTextAndThenItsNameOnTheDisk) {
  write_file_atomically(here_ / "x", "text", Durable::yes);
  EXPECT_EQ(read_file(here_ / "x"), "text");
  ASSERT_EQ(flushed.size(), 2U);
  EXPECT_EQ(flushed[0].parent_path(), here_);
  EXPECT_TRUE(flushed[0].filename().string().starts_with(".x."));
  EXPECT_EQ(flushed[1], here_);
  EXPECT_EQ(names(), std::vector<std::string>{"x"});
}

TEST_F(Files, OneThatIsNotDurableWaitsForNothing) {
  write_file_atomically(here_ / "x", "text");
  EXPECT_TRUE(flushed.empty());
}

TEST_F(Files, ATextThatCannotBeFlushedReplacesNothing) {
  test::put_file(here_ / "x", "before");
  next_error = EIO;
  EXPECT_THROW(write_file_atomically(here_ / "x", "text", Durable::yes), StorageError);
  EXPECT_EQ(read_file(here_ / "x"), "before");
  EXPECT_EQ(names(), std::vector<std::string>{"x"}) << "a temporary file is left";
}

TEST_F(Files, NothingIsWrittenThroughALinkOrIntoAFileThatIsThere) {
  // Whoever may write to the folder knows what names to expect: of this process, and of its next numbers.
  const fs::path victim = here_ / "victim";
  test::put_file(victim, "untouched");
  const std::string pid = std::to_string(getpid());
  fs::create_symlink(victim, here_ / (".x." + pid + ".tmp"));
  for (int i = 0; i < 50; i += 2) {
    fs::create_symlink(victim, here_ / (".x." + pid + "-" + std::to_string(i) + ".tmp"));
    fs::create_hard_link(victim, here_ / (".x." + pid + "-" + std::to_string(i + 1) + ".tmp"));
  }
  write_file_atomically(here_ / "x", "text");
  EXPECT_EQ(try_writing(here_ / "x"), 0);
  EXPECT_EQ(read_file(victim), "untouched");
  EXPECT_EQ(read_file(here_ / "x"), "text");
  EXPECT_FALSE(fs::is_symlink(here_ / "x"));
  struct stat info {};
  ASSERT_EQ(lstat((here_ / "x").c_str(), &info), 0);
  EXPECT_EQ(info.st_nlink, 1U);
}

TEST_F(Files, EveryFolderThatWasMadeHasItsNameOnTheDisk) {
  create_folders(here_ / "a/b/c");
  EXPECT_EQ(flushed, (std::vector<fs::path>{here_ / "a/b", here_ / "a", here_}));
  flushed.clear();
  create_folders(here_ / "a/b/d/");
  EXPECT_EQ(flushed, std::vector<fs::path>{here_ / "a/b"});
  flushed.clear();
  create_folders(here_ / "a/b");
  EXPECT_TRUE(flushed.empty());
  test::put_file(here_ / "file", "");
  EXPECT_THROW(create_folders(here_ / "file/a"), StorageError);
}

TEST_F(Files, AFolderThatCannotBeFlushedIsAnErrorUnlessItsFileSystemCannot) {
  for (const int error : {EINVAL, ENOTSUP, EROFS}) {
    next_error = error;
    EXPECT_NO_THROW(flush_folder(here_)) << error;
  }
  next_error = EIO;
  EXPECT_THROW(flush_folder(here_), StorageError);
  EXPECT_THROW(flush_folder(here_ / "none"), StorageError);
}

TEST_F(Files, APipeThatNobodyWritesToIsNoRegularFile) {
  const fs::path pipe = folder_ / "cases.jsonl";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  try {
    read_regular_file(pipe);
    FAIL() << "a pipe was read";
  } catch (const StorageError& e) {
    EXPECT_NE(std::string(e.what()).find("pipe"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace assay::host
