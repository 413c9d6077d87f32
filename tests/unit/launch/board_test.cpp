#include "launch/board.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "launch/launch_error.hpp"

namespace assay::host::launch {
namespace {

TEST(Board, AReaderSeesWhatAnotherMappingWrote) {
  const ProgressBoard parent = ProgressBoard::create();
  ProgressBoard worker = ProgressBoard::attach(parent.fd());
  EXPECT_EQ(parent.read().stage, Stage::load);
  EXPECT_EQ(parent.read().phase, -1);

  worker.enter(Stage::measure, 12);
  worker.set_step(7);
  worker.set_phase(2);
  worker.set_memory(1, 10, 20);
  worker.set_last_allocation("20 bytes for 'gradients'");
  const BoardView view = parent.read();
  EXPECT_EQ(view.stage, Stage::measure);
  EXPECT_EQ(view.total_steps, 12u);
  EXPECT_EQ(view.step, 7u);
  EXPECT_EQ(view.phase, 2);
  EXPECT_EQ(view.phase_name, "");
  worker.set_phase_name(2, "forward of the third");
  worker.set_phase_name(32, "no room");
  EXPECT_EQ(parent.read().phase_name, "forward of the third");
  EXPECT_EQ(view.current_bytes[1], 10u);
  EXPECT_EQ(view.peak_bytes[1], 20u);
  EXPECT_EQ(view.last_allocation, "20 bytes for 'gradients'");
}

TEST(Board, EnteringAStageForgetsStepAndPhaseOfTheOneBefore) {
  ProgressBoard board = ProgressBoard::create();
  board.enter(Stage::warmup, 5);
  board.set_step(3);
  board.set_phase(1);
  board.enter(Stage::setup);
  EXPECT_EQ(board.read().step, 0u);
  EXPECT_EQ(board.read().total_steps, 0u);
  EXPECT_EQ(board.read().phase, -1);
}

TEST(Board, APartBeginsItsStepsAnewAndEndsWithItsStage) {
  ProgressBoard board = ProgressBoard::create();
  board.enter(Stage::verify);
  board.set_step(11);
  const std::uint64_t before = board.read().heartbeat;
  board.set_part("operations");
  EXPECT_EQ(board.read().part, "operations");
  EXPECT_EQ(board.read().step, 0u);
  EXPECT_GT(board.read().heartbeat, before);
  board.set_part(std::string(100, 'a'));
  EXPECT_EQ(board.read().part, std::string(56, 'a'));
  board.enter(Stage::destroy);
  EXPECT_EQ(board.read().part, "");
}

TEST(Board, EverySignOfLifeMovesTheHeartbeat) {
  ProgressBoard board = ProgressBoard::create();
  std::uint64_t before = board.read().heartbeat;
  const auto moved = [&] { return std::exchange(before, board.read().heartbeat) < before; };
  board.enter(Stage::setup);
  EXPECT_TRUE(moved());
  board.set_step(1);
  EXPECT_TRUE(moved());
  board.set_phase(0);
  EXPECT_TRUE(moved());
  board.beat();
  EXPECT_TRUE(moved());
  EXPECT_FALSE(moved());
}

TEST(Board, TheLastSignOfLifeIsOnTheSteadyClock) {
  ProgressBoard board = ProgressBoard::create();
  EXPECT_EQ(board.read().last_beat_ns, 0u);
  const auto now_ns = [] {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds(1));
  };
  const std::vector<std::function<void()>> signs = {[&] { board.enter(Stage::setup); }, [&] { board.set_step(1); },
                                                    [&] { board.set_phase(0); }, [&] { board.beat(); }};
  for (const auto& sign : signs) {
    const std::uint64_t before_ns = now_ns();
    sign();
    EXPECT_GE(board.read().last_beat_ns, before_ns);
    EXPECT_LE(board.read().last_beat_ns, now_ns());
  }
}

TEST(Board, StaysReadableAfterItsWriterWasKilled) {
  const ProgressBoard board = ProgressBoard::create();
  const pid_t child = fork();
  if (child == 0) {
    ProgressBoard mine = ProgressBoard::attach(board.fd());
    mine.enter(Stage::verify);
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(board.read().stage, Stage::verify);
}

TEST(Board, CutsALongTextAndCleansABrokenOne) {
  ProgressBoard board = ProgressBoard::create();
  board.set_last_allocation(std::string(2000, 'x'));
  EXPECT_EQ(board.read().last_allocation, std::string(512, 'x'));
  board.set_last_allocation("a\xff\x1b");
  EXPECT_EQ(board.read().last_allocation, "a??");
}

TEST(Board, ReadsInRangeWhateverAWorkerScribbledOverIt) {
  const ProgressBoard board = ProgressBoard::create();
  const auto bytes = static_cast<std::size_t>(lseek(board.fd(), 0, SEEK_END));
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, board.fd(), 0);
  ASSERT_NE(at, MAP_FAILED);
  for (const int value : {0x7f, 0xff, 0x01}) {
    memset(at, value, bytes);
    const BoardView view = board.read();
    EXPECT_GE(view.stage, Stage::load);
    EXPECT_LE(view.stage, Stage::done);
    EXPECT_GE(view.phase, -1);
    EXPECT_LE(view.last_allocation.size(), 512u);
  }
  munmap(at, bytes);
}

TEST(Board, AWorkerCannotCutItShort) {
  const ProgressBoard board = ProgressBoard::create();
  EXPECT_NE(ftruncate(board.fd(), 0), 0);
  EXPECT_EQ(board.read().stage, Stage::load);
}

TEST(Board, RefusesADescriptorThatIsNoBoard) {
  const int null = open("/dev/null", O_RDWR);
  EXPECT_THROW(ProgressBoard::attach(null), LaunchError);
  close(null);
  EXPECT_THROW(ProgressBoard::attach(-1), LaunchError);
}

TEST(Board, IgnoresAMemoryKindThatDoesNotExist) {
  ProgressBoard board = ProgressBoard::create();
  board.set_memory(memory_kind_count, 1, 1);
  for (const std::uint64_t bytes : board.read().peak_bytes) EXPECT_EQ(bytes, 0u);
}

}  // namespace
}  // namespace assay::host::launch
