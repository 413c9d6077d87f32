#include "launch/worker_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "launch/launch_error.hpp"
#include "temporary_folder.hpp"

namespace assay::host::launch {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t limit_bytes = 8192;
constexpr std::uint64_t marker_bytes_max = 256;

std::string numbered_lines(int from, int to) {
  std::string text;
  for (int line = from; line < to; ++line) text += fmt::format("line {:07}\n", line);
  return text;
}

void write_all(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    ASSERT_GT(n, 0);
    done += static_cast<std::size_t>(n);
  }
}

class WorkerLogTest : public testing::Test {
 protected:
  // What the file holds after a worker has written `text`, and how much was dropped.
  std::string log_of(const std::string& text) {
    WorkerLog log(file_, limit_bytes);
    Fd worker = log.take_write_end();
    write_all(worker.get(), text);
    worker.reset();
    log.finish();
    dropped_bytes_ = log.dropped_bytes();
    return text_of(file_);
  }

  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "log";
  std::uint64_t dropped_bytes_ = 0;
};

TEST_F(WorkerLogTest, IsWholeUpToItsLimit) {
  for (const std::size_t size : {0ul, 1ul, 4096ul, 4097ul, limit_bytes}) {
    std::filesystem::remove(file_);
    const std::string text = numbered_lines(0, 1000).substr(0, size);
    EXPECT_EQ(log_of(text), text) << size;
    EXPECT_EQ(dropped_bytes_, 0u) << size;
  }
}

TEST_F(WorkerLogTest, BeyondItKeepsBeginningAndEndAndSaysWhatIsMissing) {
  for (const int lines : {700, 100'000}) {
    std::filesystem::remove(file_);
    const std::string text = numbered_lines(0, lines);
    const std::string log = log_of(text);
    EXPECT_LE(log.size(), limit_bytes + marker_bytes_max);
    const std::string cut = "\n[assay: the log is cut here, at its limit of 8 KiB ([run] log_limit); ";
    const std::string follows = " bytes were dropped, and its end follows]\n";
    const std::size_t cut_at = log.find(cut), follows_at = log.find(follows);
    ASSERT_TRUE(cut_at < follows_at && follows_at < log.size()) << log.substr(0, 5000);
    const std::string beginning = log.substr(0, cut_at);
    const std::string end = log.substr(follows_at + follows.size());
    const std::string dropped = log.substr(cut_at + cut.size(), follows_at - cut_at - cut.size());
    EXPECT_TRUE(text.starts_with(beginning));
    EXPECT_TRUE(text.ends_with(end));
    EXPECT_TRUE(end.starts_with("line ")) << end.substr(0, 100);
    EXPECT_GT(end.size(), limit_bytes / 2 - 100);
    EXPECT_EQ(dropped, std::to_string(dropped_bytes_));
    EXPECT_EQ(beginning.size() + dropped_bytes_ + end.size(), text.size());
  }
}

TEST_F(WorkerLogTest, CutsOneByteBeyondIt) {
  const std::string text = numbered_lines(0, 1000).substr(0, limit_bytes + 1);
  EXPECT_NE(log_of(text), text);
  EXPECT_GT(dropped_bytes_, 0u);
}

TEST_F(WorkerLogTest, CutsATextWithoutLines) {
  const std::string log = log_of(std::string(1 << 20, 'x'));
  EXPECT_TRUE(log.starts_with(std::string(limit_bytes / 2, 'x') + "\n[assay: "));
  EXPECT_TRUE(log.ends_with("]\n" + std::string(limit_bytes / 2, 'x')));
  EXPECT_EQ(dropped_bytes_, (1u << 20) - limit_bytes);
}

TEST_F(WorkerLogTest, CountsWhatThisWorkerAdds) {
  const std::string before = numbered_lines(0, 2000);
  std::ofstream(file_) << before;
  EXPECT_EQ(log_of("mine\n"), before + "mine\n");
  EXPECT_EQ(WorkerLog(file_, limit_bytes).begin_offset(), before.size() + 5);
}

TEST_F(WorkerLogTest, IsWrittenWhileTheWorkerRuns) {
  WorkerLog log(file_, limit_bytes);
  const Fd worker = log.take_write_end();
  for (const char* text : {"first\n", "first\nsecond\n"}) {
    write_all(worker.get(), std::string(text).substr(text_of(file_).size()));
    for (int waited_ms = 0; text_of(file_) != text && waited_ms < 60'000; ++waited_ms) usleep(1000);
    EXPECT_EQ(text_of(file_), text);
  }
}

TEST_F(WorkerLogTest, DoesNotWaitForAWriterThatStays) {
  WorkerLog log(file_, limit_bytes);
  const Fd escaped = log.take_write_end();
  write_all(escaped.get(), "last words\n");
  log.finish();
  EXPECT_EQ(text_of(file_), "last words\n");
}

TEST_F(WorkerLogTest, EndsEvenWhileAWriterGoesOn) {
  signal(SIGPIPE, SIG_IGN);
  WorkerLog log(file_, limit_bytes);
  std::atomic<std::uint64_t> written{0};
  std::thread escaped([&, fd = log.take_write_end()] {
    const std::string block(100'000, 'y');
    while (write(fd.get(), block.data(), block.size()) > 0) written += block.size();
  });
  while (written < 20'000'000) std::this_thread::yield();
  log.finish();
  escaped.join();  // the pipe is closed
  signal(SIGPIPE, SIG_DFL);
  EXPECT_LE(text_of(file_).size(), limit_bytes + marker_bytes_max);
  EXPECT_GE(log.dropped_bytes(), 20'000'000 - limit_bytes - 1'000'000);
}

TEST_F(WorkerLogTest, AFullDiskDoesNotStopTheWorker) {
  std::filesystem::create_symlink("/dev/full", file_);
  WorkerLog log(file_, limit_bytes);
  const Fd worker = log.take_write_end();
  write_all(worker.get(), std::string(5'000'000, 'x'));
  log.finish();
}

TEST_F(WorkerLogTest, AWorkerThatClosesItsOutputIsNoLongerListenedTo) {
  WorkerLog log(file_, limit_bytes);
  write_all(log.take_write_end().get(), "and out\n");
  for (int waited_ms = 0; text_of(file_).empty() && waited_ms < 60'000; ++waited_ms) usleep(1000);
  log.finish();
  EXPECT_EQ(text_of(file_), "and out\n");
}

using Tasks = std::set<std::filesystem::path>;
Tasks tasks_of_this_process() {
  Tasks tasks;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) tasks.insert(task.path());
  return tasks;
}

// A log whose thread can be distinguished from the others.
class WorkerLogSleeps : public WorkerLogTest {
 protected:
  WorkerLogSleeps() {
    for (const auto& task : tasks_of_this_process())
      if (!others_.contains(task)) thread_ = task;
  }
  // How often the thread has gone to sleep.
  std::uint64_t sleeps() const {
    const std::string status = text_of(thread_ / "status");
    const std::string name = "\nvoluntary_ctxt_switches:";
    const auto at = status.find(name);
    EXPECT_NE(at, std::string::npos) << thread_;
    return at == std::string::npos ? 0 : std::stoull(status.substr(at + name.size()));
  }

  const Tasks others_ = tasks_of_this_process();
  WorkerLog log_{file_, limit_bytes};
  const Fd worker_ = log_.take_write_end();
  std::filesystem::path thread_;
};

TEST_F(WorkerLogSleeps, OnWhileTheWorkerIsQuiet) {
  write_all(worker_.get(), "quiet from here on\n");
  std::this_thread::sleep_for(100ms);
  const std::uint64_t before = sleeps();
  std::this_thread::sleep_for(500ms);
  EXPECT_EQ(sleeps(), before);
}

TEST_F(WorkerLogSleeps, ThroughMostOfTheLinesThatComeOneAStep) {
  const std::uint64_t before = sleeps();
  const auto begin = std::chrono::steady_clock::now();
  for (int step = 0; step < 400; ++step) {
    write_all(worker_.get(), "a line\n");
    std::this_thread::sleep_for(1ms);
  }
  const auto naps = (std::chrono::steady_clock::now() - begin) / 5ms;
  EXPECT_LE(sleeps() - before, static_cast<std::uint64_t>(2 * naps + 10));
}

TEST_F(WorkerLogTest, ThrowsWhenTheFileCannotBeOpened) {
  EXPECT_THROW(WorkerLog(folder_ / "none/log", limit_bytes), LaunchError);
}

}  // namespace
}  // namespace assay::host::launch
