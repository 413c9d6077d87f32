#include "results/store.hpp"

#include "results/reader.hpp"
#include "temporary_folder.hpp"
#include "unit/record/sample_record.hpp"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <regex>

namespace assay::host::results {
namespace {

const WallTime kNow = *parse_utc("2026-11-20T12:00:00Z");

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const StorageError& e) {
    return e.what();
  }
  return "nothing was thrown";
}

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
}

// Files of this process may not grow past a length, for as long as this lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

// A file system of a few pages.
class SmallDisk {
 public:
  explicit SmallDisk(const std::filesystem::path& where) : where_(where) {
    mounted_ = ::mount("none", where.c_str(), "tmpfs", 0, "size=64k") == 0;
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (mounted_) ::umount2(where_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }

 private:
  std::filesystem::path where_;
  bool mounted_ = false;
};

class Store : public ::testing::Test {
 protected:
  RunFolder create() { return RunFolder::create(folder_.path(), "sweep", "schema = 1\n", R"({"cpu": "x"})", kNow); }
  TemporaryFolder folder_;
};

TEST_F(Store, CreatesTheFolderAndItsFiles) {
  const RunFolder run = create();
  EXPECT_EQ(run.path().parent_path(), folder_.path() / "sweep");
  EXPECT_TRUE(std::regex_match(run.path().filename().string(), std::regex("20261120T120000Z-[0-9a-f]{4}")))
      << run.path();
  EXPECT_EQ(read_file(run.path() / "experiment.toml"), "schema = 1\n");
  EXPECT_EQ(Json::parse(read_file(run.path() / "environment.json")), Json({{"cpu", "x"}}));
  EXPECT_TRUE(std::filesystem::is_directory(run.logs_path()));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "sweep/latest")) << "it has no record yet";
  for (const auto& entry : std::filesystem::directory_iterator(run.path()))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path();
}

TEST_F(Store, EachInvocationHasItsEnvironment) {
  std::filesystem::path path;
  std::string first;
  {
    const RunFolder run = create();
    path = run.path(), first = run.environment_id();
    EXPECT_TRUE(std::filesystem::exists(path / "environments" / (first + ".json")));
  }
  RunFolder again = RunFolder::reopen(path);
  EXPECT_EQ(again.environment_id(), "") << "whoever collects measures nothing";
  again.begin_invocation(R"({"cpu": "y"})");
  EXPECT_NE(again.environment_id(), first);
  EXPECT_TRUE(std::filesystem::exists(path / "environments" / (again.environment_id() + ".json")));
  EXPECT_EQ(Json::parse(read_file(path / "environment.json")), Json({{"cpu", "y"}}));
}

TEST_F(Store, LatestMovesToTheNewestRunWithItsFirstRecord) {
  RunFolder first = create();
  first.append(ok_record());
  RunFolder second = create();
  EXPECT_NE(first.path(), second.path());
  EXPECT_EQ(std::filesystem::read_symlink(folder_.path() / "sweep/latest"), first.path().filename());
  second.append(ok_record());
  EXPECT_EQ(std::filesystem::read_symlink(folder_.path() / "sweep/latest"), second.path().filename());
}

std::filesystem::path parent_of_runs;
std::filesystem::path latest_on_the_disk;  // what it pointed to when its folder was flushed last

TEST_F(Store, LatestIsOnTheDiskWithTheRunThatItNames) {
  parent_of_runs = std::filesystem::canonical(folder_.path()) / "sweep";
  latest_on_the_disk.clear();
  set_flush_call([](int fd) {
    std::error_code none;
    if (std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd)) == parent_of_runs)
      latest_on_the_disk = std::filesystem::read_symlink(parent_of_runs / "latest", none);
    return 0;
  });
  RunFolder run = create();
  run.append(ok_record());
  set_flush_call(nullptr);
  EXPECT_EQ(latest_on_the_disk, run.path().filename());
}

TEST_F(Store, AFolderCalledLatestIsToldNotReplaced) {
  put_file(folder_.path() / "sweep/latest/keep", "");
  RunFolder run = create();
  run.append(ok_record());
  ASSERT_FALSE(run.notes().empty());
  expect_has(run.notes().back(), "latest could not be pointed at");
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "sweep/latest/keep"));
}

TEST_F(Store, TakenIdsAreDrawnAgain) {
  std::uint32_t next = 0x1abcc002u;  // each id twice
  const auto draw = [&next] { return next++ / 2u; };
  EXPECT_EQ(make_unique_folder(folder_.path(), "s", draw).filename(), "s-6001");
  EXPECT_EQ(make_unique_folder(folder_.path(), "s", draw).filename(), "s-6002");
  expect_has(message_of([&] { make_unique_folder(folder_.path(), "s", [] { return 0x6001u; }); }), "all taken");
}

TEST_F(Store, AppendedRecordsReadBack) {
  RunFolder run = create();
  run.append(ok_record());
  run.append(oom_record());
  const CasesFile cases = read_cases(run.cases_path());
  ASSERT_EQ(cases.records.size(), 2u);
  EXPECT_EQ(record::to_json(cases.records[0]), as_read(ok_record()));
  // A key's place is kept: forward stands before backward.
  EXPECT_EQ(record::to_line(cases.records[0]), as_read(ok_record()).dump());
}

TEST_F(Store, TextThatIsNoUtf8LeavesTheFileValid) {
  RunFolder run = create();
  Json record = oom_record();
  record["reason"] = "bad \xff byte\nand a line";
  run.append(record);
  const CasesFile cases = read_cases(run.cases_path());
  ASSERT_EQ(cases.records.size(), 1u);
  EXPECT_EQ(cases.records[0].result.reason, "bad \xef\xbf\xbd byte\nand a line");
}

TEST_F(Store, ReopenedRunGoesOn) {
  std::filesystem::path path;
  {
    RunFolder run = create();
    run.append(ok_record());
    path = run.path();
  }
  RunFolder again = RunFolder::reopen(path);
  again.append(oom_record());
  again.replace_experiment("schema = 1\n# grown\n");
  EXPECT_EQ(read_file(path / "experiment.toml"), "schema = 1\n# grown\n");
  EXPECT_EQ(read_cases(again.cases_path()).records.size(), 2u);
}

TEST_F(Store, ReopeningCutsATornLineOff) {
  const std::filesystem::path path = create().path();
  const std::string line = ok_record().dump();
  put_file(path / "cases.jsonl", line + "\n" + line.substr(0, 40));
  RunFolder run = RunFolder::reopen(path);
  ASSERT_FALSE(run.notes().empty());
  expect_has(run.notes()[0], "torn after 40 bytes");
  run.append(oom_record());
  EXPECT_EQ(read_file(path / "cases.jsonl"), line + "\n" + as_read(oom_record()).dump() + "\n");
}

TEST_F(Store, ReopeningEndsALineThatLacksItsEnd) {
  const std::filesystem::path path = create().path();
  const std::string line = ok_record().dump();
  put_file(path / "cases.jsonl", line);
  RunFolder::reopen(path).append(oom_record());
  EXPECT_EQ(read_file(path / "cases.jsonl"), line + "\n" + as_read(oom_record()).dump() + "\n");
}

TEST_F(Store, TwoHostsDoNotShareARun) {
  const RunFolder run = create();
  expect_has(message_of([&] { RunFolder::reopen(run.path()); }), "is being written by another assay process");
}

TEST_F(Store, AFolderThatIsNoRunIsRefused) {
  expect_has(message_of([&] { RunFolder::reopen(folder_.path()); }), "is no run folder");
  expect_has(message_of([&] { RunFolder::create(folder_.path(), "../x", "", {}); }), "\"../x\" names no folder");
}

TEST_F(Store, AnUnwritableFolderIsNamedWithTheRemedy) {
  put_file(folder_.path() / "file", "");
  const std::string message = message_of([&] { RunFolder::create(folder_.path() / "file", "sweep", "", "{}"); });
  expect_has(message, (folder_.path() / "file").string());
  expect_has(message, "Not a directory");
  expect_has(message, "--output DIR");
}

TEST_F(Store, AFolderWithoutPermissionIsNamedWithTheRemedy) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  const std::string message = message_of([&] { create(); });
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_all);
  expect_has(message, (folder_.path() / "sweep").string());
  expect_has(message, "Permission denied");
  expect_has(message, "choose a folder that this user may write to with --output DIR");
}

TEST_F(Store, AFileSizeLimitLeavesTheFileWhole) {
  RunFolder run = create();
  run.append(ok_record());
  const std::string before = read_file(run.cases_path());
  std::string message;
  {
    const FileSizeLimit limit(before.size() + 100);
    message = message_of([&] { run.append(ok_record()); });
  }
  expect_has(message, run.cases_path().string());
  expect_has(message, "File too large after 100 bytes");
  expect_has(message, "the cases finished before are kept");
  expect_has(message, "ulimit -f");
  EXPECT_EQ(read_file(run.cases_path()), before);
  run.append(oom_record());  // and the run can go on
  EXPECT_EQ(read_cases(run.cases_path()).records.size(), 2u);
}

TEST_F(Store, AFullDiskLeavesTheFileWhole) {
  const SmallDisk disk(folder_.path());
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small file system is not permitted here";
  RunFolder run = create();
  expect_has(run.notes().back(), "MiB are free");
  std::string message;
  std::size_t appended = 0;
  for (; message.empty() && appended < 1000; ++appended)
    if (message = message_of([&] { run.append(ok_record()); }); message == "nothing was thrown") message.clear();
  expect_has(message, run.cases_path().string());
  expect_has(message, "No space left on device");
  expect_has(message, "free some space there, or choose another folder with --output DIR, then continue with --resume");
  const CasesFile cases = read_cases(run.cases_path());
  EXPECT_EQ(cases.records.size(), appended - 1);
  EXPECT_GT(cases.records.size(), 5u);
  EXPECT_FALSE(cases.torn);
}

TEST_F(Store, AFailedReplacementKeepsTheOldFile) {
  const std::filesystem::path path = folder_.path() / "table.csv";
  write_file_atomically(path, "old");
  std::string message;
  {
    const FileSizeLimit limit(10);
    message = message_of([&] { write_file_atomically(path, std::string(100, 'x')); });
  }
  expect_has(message, "cannot write 100 bytes to " + path.string());
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(Store, LowSpaceIsANote) {
  EXPECT_FALSE(low_space_note(folder_.path(), 0));
  const auto note = low_space_note(folder_.path(), ~std::uint64_t{0});
  ASSERT_TRUE(note);
  expect_has(*note, folder_.path().string());
}

}  // namespace
}  // namespace assay::host::results
