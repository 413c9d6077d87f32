#include "telemetry/contention.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace assay::host::telemetry {
namespace {

using namespace std::chrono_literals;

TEST(ProcStat, OneEntryPerProcessor) {
  const auto ticks = parse_proc_stat(
      "cpu  300 30 60 6000 600 9 12 3 50 0\n"
      "cpu0 100 10 20 2000 200 3 4 1 25 0\n"
      "cpu11 200 20 40 4000 400 6 8 2 25 0\n"
      "intr 12345 0 9\nctxt 4 5\n");
  ASSERT_EQ(ticks.size(), 2u);
  EXPECT_EQ(ticks.at(0).busy, 137u);  // guest time is part of user time already
  EXPECT_EQ(ticks.at(0).idle, 2200u);
  EXPECT_EQ(ticks.at(0).steal, 1u);
  EXPECT_EQ(ticks.at(11).busy, 274u);
}

TEST(ProcStat, ShortAndStrangeTextIsNoHarm) {
  EXPECT_TRUE(parse_proc_stat("").empty());
  EXPECT_TRUE(parse_proc_stat("cpux 1 2 3\ncpu\n\n").empty());
  const auto old = parse_proc_stat("cpu3 1 2 3 4");
  ASSERT_EQ(old.size(), 1u);
  EXPECT_EQ(old.at(3).busy, 6u);
  EXPECT_EQ(old.at(3).steal, 0u);
}

TEST(Schedstat, RunAndWait) {
  const auto times = parse_schedstat("123456789 987654 42\n");
  ASSERT_TRUE(times);
  EXPECT_EQ(times->run_ns, 123456789u);
  EXPECT_EQ(times->wait_ns, 987654u);
  EXPECT_FALSE(parse_schedstat(""));
  EXPECT_FALSE(parse_schedstat("12"));
  EXPECT_FALSE(parse_schedstat("x 1 2"));
}

// Two processors over one second of 100 ticks each.
ContentionSample sample_at(std::chrono::nanoseconds time, std::uint64_t busy, std::uint64_t idle, std::uint64_t steal,
                           std::uint64_t own_cpu_ns) {
  ContentionSample sample;
  sample.ticks[0] = {busy, idle, steal};
  sample.ticks[1] = {1000, 1000, 0};
  sample.own_cpu_ns = own_cpu_ns;
  sample.time = std::chrono::steady_clock::time_point(time);
  return sample;
}

TEST(Contention, WhatOthersTookIsWhatIsBusyAndNotOurs) {
  const ContentionSample begin = sample_at(5s, 100, 100, 0, 7'000'000'000);
  ContentionSample end = sample_at(6s, 170, 120, 10, 7'500'000'000);
  end.ticks[1] = {1000, 1100, 0};
  end.threads[7] = {300'000'000, 100'000'000};
  const Contention c = compare(begin, end, 100);
  EXPECT_DOUBLE_EQ(c.window_s, 1.0);
  EXPECT_DOUBLE_EQ(c.own_cpu_s, 0.5);
  ASSERT_TRUE(c.others_share && c.steal_share && c.wait_share);
  EXPECT_DOUBLE_EQ(*c.others_share, 0.1);  // (70 busy - 50 own) of 200
  EXPECT_DOUBLE_EQ(*c.steal_share, 0.05);
  EXPECT_DOUBLE_EQ(*c.wait_share, 0.25);
}

TEST(Contention, OwnTimeBetweenTicksIsNotBelowZero) {
  const Contention c = compare(sample_at(5s, 0, 0, 0, 0), sample_at(6s, 49, 51, 0, 500'000'000), 100);
  ASSERT_TRUE(c.others_share);
  EXPECT_EQ(*c.others_share, 0.0);
}

TEST(Contention, NothingIsSaidWhereNothingIsKnown) {
  const Contention brief = compare(sample_at(5s, 0, 0, 0, 0), sample_at(5100ms, 10, 0, 0, 0), 100);
  EXPECT_FALSE(brief.others_share);
  EXPECT_FALSE(brief.steal_share);
  EXPECT_DOUBLE_EQ(brief.window_s, 0.1);
  ContentionSample begin, end;  // no /proc/stat
  end.time = begin.time + 1s;
  EXPECT_FALSE(compare(begin, end, 100).others_share);
  EXPECT_FALSE(compare(begin, end, 100).wait_share);
}

// 64 threads with a processor each, and two neighbours: 3% of the machine's time, and half of a step that is shared out
// evenly.
TEST(Contention, TwoThreadsThatWaitHoldUpAllOthers) {
  ContentionSample begin, end;
  for (int i = 0; i < 64; ++i) {
    begin.ticks[i] = {0, 0, 0};
    end.ticks[i] = {100, 0, 0};
    begin.threads[i] = {5'000'000'000, 1'000'000'000};
    const bool waits = i < 2;
    end.threads[i] = {waits ? 5'750'000'000u : 6'000'000'000u, waits ? 1'250'000'000u : 1'000'000'000u};
  }
  end.own_cpu_ns = 63'500'000'000;
  end.time = begin.time + 1s;
  const Contention c = compare(begin, end, 100);
  EXPECT_LT(*c.others_share, 0.05);
  EXPECT_LT(*c.wait_share, 0.05);
  EXPECT_DOUBLE_EQ(*c.stall_share, 0.5);
  EXPECT_EQ(*c.busy_threads, 64u);
  EXPECT_EQ(c.processors, 64u);
}

// Two processors over a second that they were busy all of, by a rank of two threads that had a quarter each.
Contention of_oversubscribed(double siblings_cpu_s) {
  ContentionSample begin, end;
  for (int i = 0; i < 2; ++i) {
    begin.ticks[i] = {0, 0, 0};
    end.ticks[i] = {100, 0, 0};
    begin.threads[i] = {};
    end.threads[i] = {250'000'000, 750'000'000};
  }
  end.own_cpu_ns = 500'000'000;
  end.time = begin.time + 1s;
  Contention c = compare(begin, end, 100);
  c.leave_out(siblings_cpu_s, 6);  // three such ranks
  return c;
}

TEST(Contention, WhatACaseOversubscribesItselfIsNoDisturbance) {
  const Contention alone = of_oversubscribed(1.5);  // the other ranks had all the rest
  EXPECT_DOUBLE_EQ(*alone.wait_share, 0.75);
  EXPECT_DOUBLE_EQ(*alone.stall_share, 1);
  EXPECT_EQ(*alone.others_share, 0);
  EXPECT_EQ(*alone.foreign_wait_share, 0);
  EXPECT_EQ(*alone.foreign_stall_share, 0);
  const Contention beside = of_oversubscribed(1.0);  // somebody else had half a processor
  EXPECT_DOUBLE_EQ(*beside.others_share, 0.25);
  EXPECT_DOUBLE_EQ(*beside.foreign_wait_share, 0.25);  // of the two seconds that its threads wanted to run
  EXPECT_DOUBLE_EQ(*beside.foreign_stall_share, 1.0 / 3);
}

// 128 ranks of a thread on 64 processors: what a still machine does is no disturbance of each of them.
TEST(Contention, OfManyRanksEachWaitsForOthersAsTheAverageDoes) {
  const auto rank_that_waited = [](std::uint64_t wait_ns) {
    ContentionSample begin, end;
    for (int i = 0; i < 64; ++i) begin.ticks[i] = {0, 0, 0}, end.ticks[i] = {100, 0, 0};
    begin.threads[1] = {};
    end.threads[1] = {1'000'000'000 - wait_ns, wait_ns};
    end.own_cpu_ns = 1'000'000'000 - wait_ns;
    end.time = begin.time + 1s;
    Contention c = compare(begin, end, 100);
    c.leave_out(63.36 - c.own_cpu_s, 127);  // the others had one percent
    return c;
  };
  EXPECT_NEAR(*rank_that_waited(500'000'000).foreign_wait_share, 0.01, 1e-9);
  EXPECT_NEAR(*rank_that_waited(800'000'000).foreign_wait_share, 0.3, 1e-9) << "a neighbour sits on its processor";
}

// Eight threads on two processors: behind each second of another process up to four of them wait.
TEST(Contention, ThreadsThatQueueWaitForOthersTogether) {
  ContentionSample begin, end;
  for (int i = 0; i < 2; ++i) begin.ticks[i] = {0, 0, 0}, end.ticks[i] = {100, 0, 0};
  for (int i = 0; i < 8; ++i) begin.threads[i] = {}, end.threads[i] = {225'000'000, 775'000'000};
  end.own_cpu_ns = 1'800'000'000;
  end.time = begin.time + 1s;
  const Contention c = compare(begin, end, 100);
  EXPECT_NEAR(*c.others_share, 0.1, 1e-12);
  EXPECT_NEAR(*c.foreign_wait_share, 0.1, 1e-12);  // alone, the eight would have had a tenth more
  EXPECT_NEAR(*c.wait_share, 0.775, 1e-12);
  EXPECT_NEAR(*c.foreign_stall_share, 0.1 / 0.775, 1e-12);
}

TEST(Contention, AllWaitingIsForOthersWhereEachThreadHasAProcessor) {
  ContentionSample begin, end;
  for (int i = 0; i < 2; ++i) begin.ticks[i] = {0, 0, 0}, end.ticks[i] = {100, 0, 0};
  begin.threads[1] = begin.threads[2] = {};
  end.threads[1] = {1'000'000'000, 0};
  end.threads[2] = {500'000'000, 500'000'000};
  end.own_cpu_ns = 1'500'000'000;
  end.time = begin.time + 1s;
  const Contention c = compare(begin, end, 100);
  EXPECT_DOUBLE_EQ(*c.foreign_wait_share, *c.wait_share);
  EXPECT_DOUBLE_EQ(*c.foreign_stall_share, *c.stall_share);
  end.ticks.clear(), begin.ticks.clear();
  EXPECT_FALSE(compare(begin, end, 100).foreign_wait_share) << "what others had is not told";
}

// The reader of telemetry, or a logger: a step does not wait for them.
TEST(Contention, AThreadThatHardlyRunsHoldsUpNothing) {
  ContentionSample begin, end;
  begin.threads[1] = end.threads[1] = {};
  end.threads[1].run_ns = 1'000'000'000;
  end.threads[2] = {1'000'000, 30'000'000};
  end.threads[3] = {1'000'000, 300'000'000};
  end.time = begin.time + 1s;
  const Contention c = compare(begin, end, 100);
  EXPECT_EQ(*c.stall_share, 0);
  EXPECT_EQ(*c.busy_threads, 1u);
}

TEST(Contention, AThreadThatEndedTakesNothingBack) {
  ContentionSample begin, end;
  begin.threads[1] = {0, 0};
  begin.threads[2] = {9'000'000'000, 9'000'000'000};
  end.threads[1] = {500'000'000, 500'000'000};
  end.time = begin.time + 1s;
  EXPECT_DOUBLE_EQ(*compare(begin, end, 100).wait_share, 0.5);
}

TEST(Contention, StolenTimeIsThatOfTheProcessorThatLostMost) {
  ContentionSample begin, end;
  for (int i = 0; i < 64; ++i) {
    begin.ticks[i] = {0, 0, 0};
    end.ticks[i] = {100, 0, 0};
  }
  end.ticks[9] = {60, 0, 40};
  end.ticks[10] = {97, 0, 3};  // too few ticks to say anything
  end.time = begin.time + 1s;
  const Contention c = compare(begin, end, 100);
  EXPECT_DOUBLE_EQ(c.worst_steal_share, 0.4);
  end.ticks[9] = {100, 0, 0};
  EXPECT_EQ(compare(begin, end, 100).worst_steal_share, 0);
}

double cpu_s(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The plugin that runs a program for its step.
TEST(Contention, WhatAChildComputesIsOursWhileItLivesAndAfter) {
  constexpr double burnt_s = 0.3;
  int done[2];
  ASSERT_EQ(pipe(done), 0);
  ContentionProbe probe;
  probe.begin();
  const pid_t child = fork();
  if (child == 0) {
    while (cpu_s(CLOCK_PROCESS_CPUTIME_ID) < burnt_s) {
    }
    [[maybe_unused]] const ssize_t n = write(done[1], "x", 1);
    for (;;) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(done[0], &byte, 1), 1);
  const Contention alive = probe.end();
  EXPECT_GE(alive.own_cpu_s, burnt_s - 0.05);  // a tick or two of the kernel's account
  EXPECT_GE(alive.busy_threads.value_or(0), 1u);
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_GE(probe.end().own_cpu_s, burnt_s - 0.05);
  close(done[0]);
  close(done[1]);
}

TEST(Contention, TheProbeReadsThisMachine) {
  EXPECT_FALSE(usable_processors().empty());
  ContentionProbe probe;
  probe.begin();
  volatile double sum = 0;
  for (int i = 0; i < 1'000'000; ++i) sum = sum + i;
  const Contention c = probe.end();
  EXPECT_GT(c.window_s, 0.0);
  EXPECT_GT(c.own_cpu_s, 0.0);
  for (const auto& share : {c.others_share, c.steal_share, c.wait_share})
    EXPECT_TRUE(!share || (*share >= 0.0 && *share <= 1.0)) << *share;
}

}  // namespace
}  // namespace assay::host::telemetry
