#include "telemetry/contention.hpp"

#include <gtest/gtest.h>

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
  end.scheduler = {300'000'000, 100'000'000};
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
