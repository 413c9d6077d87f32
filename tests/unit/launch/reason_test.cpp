#include "launch/reason.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "launch/oom_kills.hpp"

namespace assay::host::launch {
namespace {

using namespace std::chrono_literals;

TEST(Reason, NamesStagePhaseAndStep) {
  const std::vector<std::string> phases{"forward", "backward"};
  BoardView where;
  where.stage = Stage::measure;
  where.step = 3;
  EXPECT_EQ(describe_position(where, phases), "stage measure, phase -, step 4");
  where.total_steps = 4;
  EXPECT_EQ(describe_position(where, phases), "stage measure, phase -, step 4");
  where.step = 4;
  EXPECT_EQ(describe_position(where, phases), "stage measure, phase -, step 4") << "all are over";
  where.step = 3;
  where.phase = 1;
  EXPECT_EQ(describe_position(where, phases), "stage measure, phase backward, step 4");
  where.phase = 2;
  EXPECT_EQ(describe_position(where, phases), "stage measure, phase number 2, step 4");
  where.stage = Stage::setup;
  where.phase = -1;
  EXPECT_EQ(describe_position(where, phases), "stage setup");
}

TEST(Reason, NamesTheSignalAndWhatItMeans) {
  EXPECT_EQ(describe_signal(SIGSEGV), "SIGSEGV (invalid memory access)");
  EXPECT_EQ(describe_signal(SIGUSR1), "SIGUSR1 (User defined signal 1)");
  EXPECT_EQ(describe_signal(200), "signal 200");
}

TEST(Reason, ListsMemoryTheLargestFirst) {
  std::array<std::uint64_t, memory_kind_count> bytes{};
  EXPECT_EQ(describe_memory(bytes), "nothing reported");
  bytes[3] = 300ULL << 20;
  bytes[0] = 491ULL << 20;
  EXPECT_EQ(describe_memory(bytes), "parameters 491 MiB, activations 300 MiB");
}

TEST(Reason, WritesBytesAndDurationsWithTheirUnit) {
  EXPECT_EQ(bytes_text(12), "12 bytes");
  EXPECT_EQ(bytes_text(2048), "2 KiB");
  EXPECT_EQ(bytes_text(1'105'954'079), "1.03 GiB");
  EXPECT_EQ(duration_text(2000ms), "2.0 s");
  EXPECT_EQ(duration_text(10min), "10 min");
  EXPECT_EQ(duration_text(90s), "90.0 s");
}

TEST(OomKills, AreReadFromAnyOfTheKernelsFiles) {
  EXPECT_EQ(oom_kills_in("nr_free_pages 12\noom_kill 3\n"), 3u);
  EXPECT_EQ(oom_kills_in("low 0\noom 9\noom_kill 2\noom_group_kill 7\n"), 2u);
  EXPECT_EQ(oom_kills_in("oom_kill_disable 1\nunder_oom 0\noom_kill 4"), 4u);
  EXPECT_EQ(oom_kills_in("nr_free_pages 12\n"), 0u);
  EXPECT_EQ(oom_kills_in(""), 0u);
}

}  // namespace
}  // namespace assay::host::launch
