// Which candidate wins for times that the test plays, quiet and disturbed.
#include "cpu/timed_choice.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace assay::cpu {
namespace {

// Times of candidates in milliseconds: what each takes undisturbed, and what is added to a run by chance.
class Playing {
 public:
  explicit Playing(std::vector<double> milliseconds) : milliseconds_(std::move(milliseconds)) {}

  // In so many of 100 runs a neighbour adds up to `most_added_ms`, which the kernel reports or does not.
  Playing& disturbed(unsigned percent, double most_added_ms, bool is_told = false) {
    percent_ = percent, most_added_ms_ = most_added_ms, is_told_ = is_told;
    return *this;
  }
  TimedChoice choose(const ChoiceLimits& limits = {}) {
    return choose_by_time(
        milliseconds_.size(), [this](std::size_t i) { return run(i); }, limits);
  }
  const std::vector<std::size_t>& order() const { return order_; }

 private:
  std::optional<TimedRun> run(std::size_t candidate) {
    order_.push_back(candidate);
    if (milliseconds_[candidate] < 0) return std::nullopt;
    const bool hit = next() % 100 < percent_;
    const double added = hit ? most_added_ms_ * static_cast<double>(next() % 1000 + 1) / 1000.0 : 0.0;
    const double ms = milliseconds_[candidate] * (1.0 + 0.002 * static_cast<double>(next() % 5)) + added;
    return TimedRun{ms * 1e-3, hit && is_told_};
  }
  std::uint64_t next() {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return state_ >> 20;
  }

  std::vector<double> milliseconds_;
  unsigned percent_ = 0;
  double most_added_ms_ = 0.0;
  bool is_told_ = false;
  std::uint64_t state_ = 0x9E3779B97F4A7C15u;
  std::vector<std::size_t> order_;
};

TEST(TimedChoice, TakesTheFastestOnAQuietMachineInFewRounds) {
  Playing playing({5.0, 4.0, 3.0, 3.5});
  const TimedChoice choice = playing.choose();
  EXPECT_EQ(choice.candidate, 2u);
  EXPECT_TRUE(choice.is_steady);
  EXPECT_EQ(choice.measured, 4u);
  EXPECT_NEAR(choice.seconds, 3.0e-3, 0.03e-3);
  EXPECT_LE(playing.order().size(), 4u + 5u * 4u) << "a run of each, and the least number of rounds";
}

TEST(TimedChoice, TheFirstStaysUnlessAnotherIsClearlyFaster) {
  EXPECT_EQ(Playing({3.0, 2.9}).choose().candidate, 0u);
  EXPECT_EQ(Playing({3.0, 2.8}).choose().candidate, 1u);
}

TEST(TimedChoice, CandidatesTakeTurnsThereAndBack) {
  Playing playing({3.0, 3.0, 3.0});
  playing.choose();
  const std::vector<std::size_t> begin(playing.order().begin(), playing.order().begin() + 9);
  EXPECT_EQ(begin, (std::vector<std::size_t>{0, 1, 2, 0, 1, 2, 2, 1, 0}));
}

TEST(TimedChoice, WhatIsFarBehindLeavesAndTheFirstNever) {
  Playing slow_rival({3.0, 30.0});
  EXPECT_EQ(slow_rival.choose().candidate, 0u);
  std::size_t runs = 0;
  for (const std::size_t candidate : slow_rival.order()) runs += candidate == 1;
  EXPECT_EQ(runs, 3u) << "one for its caches, two rounds";
  const TimedChoice choice = Playing({30.0, 3.0}).choose();
  EXPECT_EQ(choice.candidate, 1u);
  EXPECT_TRUE(choice.is_steady);
}

// In most runs a thread waits for a processor, a scheduler's time slice of 12 ms: what is left decides.
TEST(TimedChoice, FindsTheFastestWhereANeighbourDisturbsMostRuns) {
  ChoiceLimits limits;
  limits.seconds = 2.0;
  const TimedChoice choice = Playing({3.0, 2.0, 2.5}).disturbed(60, 12.0, true).choose(limits);
  EXPECT_TRUE(choice.is_steady);
  EXPECT_EQ(choice.candidate, 1u);
  EXPECT_NEAR(choice.seconds, 2.0e-3, 0.03e-3);
}

// All runs are as long as the slice that they wait for: they look steady, and measure the slice.
TEST(TimedChoice, RunsThatWaitedForAProcessorSayNothing) {
  const TimedChoice choice = choose_by_time(2, [](std::size_t i) {
    return std::optional(TimedRun{i == 0 ? 12.1e-3 : 11.8e-3, true});
  });
  EXPECT_FALSE(choice.is_steady);
  EXPECT_EQ(choice.candidate, 0u);
}

// Nothing reports it, as where the machine below a virtual one is shared: the lower quartile is of quiet runs.
TEST(TimedChoice, LivesWithDisturbancesThatNobodyTells) {
  ChoiceLimits limits;
  limits.seconds = 2.0;
  const TimedChoice choice = Playing({3.0, 2.0}).disturbed(50, 12.0).choose(limits);
  EXPECT_TRUE(choice.is_steady);
  EXPECT_EQ(choice.candidate, 1u);
}

TEST(TimedChoice, StaysWithTheFirstWhereTimesShowNothing) {
  Playing playing({3.0, 2.0});
  const TimedChoice choice = playing.disturbed(100, 12.0).choose();
  EXPECT_FALSE(choice.is_steady);
  EXPECT_EQ(choice.candidate, 0u);
  EXPECT_LE(playing.order().size(), 2u + 25u * 2u);
}

TEST(TimedChoice, EndsWhenItsTimeIsUp) {
  ChoiceLimits limits;
  limits.seconds = 0.1;
  Playing playing({30.0, 25.0});
  const TimedChoice choice = playing.disturbed(100, 120.0).choose(limits);
  EXPECT_FALSE(choice.is_steady);
  EXPECT_LE(playing.order().size(), 2u + 2u * 5u) << "the least number of rounds";
}

TEST(TimedChoice, LeavesOutWhatDoesNotRun) {
  const TimedChoice choice = Playing({3.0, -1.0, 2.0}).choose();
  EXPECT_EQ(choice.candidate, 2u);
  EXPECT_EQ(choice.measured, 2u);
  const TimedChoice without_first = Playing({-1.0, 2.0}).choose();
  EXPECT_FALSE(without_first.is_steady);
  EXPECT_EQ(without_first.candidate, 0u);
}

TEST(LowerQuartile, IsAValueThatThereIs) {
  EXPECT_EQ(lower_quartile({7.0}), 7.0);
  EXPECT_EQ(lower_quartile({4.0, 1.0, 3.0, 2.0}), 1.0);
  EXPECT_EQ(lower_quartile({5.0, 1.0, 4.0, 2.0, 3.0}), 2.0);
}

}  // namespace
}  // namespace assay::cpu
