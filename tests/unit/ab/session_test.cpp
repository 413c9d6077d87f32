// Sessions that are played: machines with noise, drifts and two modes, and a clock that a test turns.
#include "ab/session.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <string>

#include "support/trials.hpp"
#include "unit/compare/noisy_records.hpp"

namespace assay::host::ab {
namespace {

using test::that_many;

struct Machine {
  double change = 0;  // relative: what B takes longer
  compare::Noise noise{0.003, 0.005, 0, 0};
  double drift = 0;       // relative, from each run to the next
  double other_mode = 0;  // relative: half of all runs take so much longer
  double run_s = 1;
};

// Plays whole sessions on one machine.
class Player {
 public:
  Player(const Machine& machine, unsigned seed) : machine_(machine), noisy_(seed), coin_(seed + 1) {}

  SessionResult play(const SessionPlan& plan, double threshold = 0.02) {
    order_.clear(), looks_ = 0, pairs_ = 0, now_s_ = 0;
    sides_ = {};
    SessionParts parts;
    parts.run = [this](std::size_t side, std::int64_t repeat) { return run(side, repeat); };
    parts.compare = [this, threshold](double confidence) {
      compare::ComparisonOptions options;
      options.test.threshold = threshold, options.test.confidence = confidence, options.test.run_to_run = 0.001;
      return compare::compare_sides({compare::side_of(0, sides_[0]), compare::side_of(1, sides_[1])}, options);
    };
    parts.seconds = [this] { return now_s_; };
    parts.report = [this](const Round& round) { looks_ += round.is_look, ++pairs_; };
    return run_session(plan, parts);
  }

  const std::string& order() const { return order_; }
  int looks() const { return looks_; }
  int pairs() const { return pairs_; }
  void fails_at(std::size_t run, const TurnEnd& end) { failing_run_ = run, failure_ = end; }

 private:
  TurnEnd run(std::size_t side, std::int64_t) {
    if (order_.size() == failing_run_) return failure_;
    const double slow = 1 + machine_.drift * static_cast<double>(order_.size());
    const double mode = coin_() % 2 == 0 ? 1 + machine_.other_mode : 1;
    order_ += side == 0 ? 'a' : 'b';
    now_s_ += machine_.run_s;
    const double time_ms = 10 * slow * mode * (side == 1 ? 1 + machine_.change : 1);
    sides_[side].push_back(compare::run_of({compare::record_of({}, noisy_.steps(time_ms, 8, machine_.noise))}));
    return {};
  }

  Machine machine_;
  compare::NoisyRuns noisy_;
  std::mt19937 coin_;
  std::array<std::vector<compare::ComparedRun>, 2> sides_;
  std::string order_;
  int looks_ = 0, pairs_ = 0;
  double now_s_ = 0;
  std::size_t failing_run_ = 1'000'000;
  TurnEnd failure_;
};

struct Count {
  std::map<Verdict, int> verdicts;
  std::vector<std::int64_t> runs;

  std::int64_t median_runs() {
    std::sort(runs.begin(), runs.end());
    return runs.at(runs.size() / 2);
  }
};

Count play(const Machine& machine, int sessions, double threshold) {
  Count count;
  for (int i = 0; i < sessions; ++i) {
    const SessionResult result = Player(machine, 1000u + 17u * static_cast<unsigned>(i)).play({}, threshold);
    ++count.verdicts[result.judgement.verdict];
    count.runs.push_back(result.runs);
  }
  return count;
}

TEST(Sessions, OfOneThingHaveHardlyEverAFalseVerdict) {
  // Far above what runs are taken to differ by at least: the looks themselves have to be right. At 99% the looks of one
  // session, were each made at 99%, would be wrong in some 4 of 100.
  Machine machine;
  machine.noise.of_run = 0.02;
  Count count = play(machine, that_many(100), 0.005);
  EXPECT_LE(count.verdicts[Verdict::faster] + count.verdicts[Verdict::slower], 3);
}

TEST(Sessions, OfOneThingOnAMachineThatGrowsSlower) {
  Machine machine;
  machine.drift = 0.002;
  Count count = play(machine, that_many(30), 0.005);
  EXPECT_EQ(count.verdicts[Verdict::faster] + count.verdicts[Verdict::slower], 0);
}

TEST(Sessions, OfOneThingWithTwoModes) {
  Machine machine;
  machine.other_mode = 0.1;
  Count count = play(machine, that_many(50), 0.02);
  EXPECT_LE(count.verdicts[Verdict::faster] + count.verdicts[Verdict::slower], 1);
}

TEST(Sessions, FindAChangeOfThreePercentSoon) {
  Machine machine;
  machine.change = 0.03;
  Count count = play(machine, that_many(40), 0.02);
  EXPECT_GE(count.verdicts[Verdict::slower], that_many(40) - 1);
  EXPECT_LE(count.median_runs(), 7);
  machine.change = -0.03;
  EXPECT_GE(play(machine, that_many(40), 0.02).verdicts[Verdict::faster], that_many(40) - 1);
}

TEST(Sessions, FindAChangeOfOnePercent) {
  Machine machine;
  machine.change = 0.01;
  Count count = play(machine, that_many(40), 0.005);
  EXPECT_GE(count.verdicts[Verdict::slower], that_many(40) - 2);
  EXPECT_LE(count.median_runs(), 14);
}

TEST(Sessions, FindThatTwoAreTheSame) {
  Count count = play({}, that_many(40), 0.02);
  EXPECT_GE(count.verdicts[Verdict::same], that_many(40) - 1);
  EXPECT_LE(count.median_runs(), 7);
}

TEST(Session, TakesTurnsAndLetsEachSideBegin) {
  Machine machine;
  machine.change = 1;
  Player player(machine, 1);
  const SessionResult result = player.play({});
  EXPECT_EQ(result.end, End::clear);
  EXPECT_EQ(player.order(), "abbaabbaabba");
  EXPECT_EQ(result.runs, 6);
  EXPECT_EQ(player.pairs(), 6);
  EXPECT_EQ(player.looks(), 1);
}

TEST(Session, EndsWithItsRuns) {
  Machine machine;
  machine.noise.of_run = 0.5;
  Player player(machine, 2);
  const SessionResult result = player.play({{0.99, 3, 6}, 600, false});
  EXPECT_EQ(result.end, End::runs_spent);
  EXPECT_EQ(result.runs, 6);
  EXPECT_EQ(player.looks(), 3);
  EXPECT_EQ(result.judgement.verdict, Verdict::cannot_tell);
}

TEST(Session, EndsWithItsTimeAndLooksOnceMore) {
  Machine machine;
  machine.noise.of_run = 0.5, machine.run_s = 10;
  Player player(machine, 2);
  const SessionResult result = player.play({{0.99, 5, 30}, 110, false});
  EXPECT_EQ(result.end, End::time_spent);
  EXPECT_EQ(result.runs, 6);
  EXPECT_EQ(player.looks(), 2);
  EXPECT_EQ(result.seconds, 120);
}

// Too few runs have no verdict, however clear they look.
TEST(Session, WithoutTimeForTheFewestRunsCannotTell) {
  Machine machine;
  machine.change = 1, machine.run_s = 10;
  const SessionResult result = Player(machine, 2).play({{0.99, 5, 30}, 30, false});
  EXPECT_EQ(result.end, End::time_spent);
  EXPECT_EQ(result.runs, 2);
  EXPECT_EQ(result.judgement.verdict, Verdict::cannot_tell);
}

TEST(Session, EndsWithASideThatFails) {
  Player player({}, 3);
  player.fails_at(2, {false, "case 1: crashed"});
  const SessionResult result = player.play({});
  EXPECT_EQ(result.end, End::failed);
  EXPECT_EQ(result.failed_side, 1u) << "in the second pair B begins";
  EXPECT_EQ(result.failure, "case 1: crashed");
  EXPECT_EQ(result.runs, 1);
  EXPECT_EQ(result.judgement.verdict, Verdict::cannot_tell);
}

TEST(Session, InterruptedHasNoVerdict) {
  Machine machine;
  machine.noise.of_run = 0.5;
  Player player(machine, 4);
  player.fails_at(13, {true, ""});
  const SessionResult result = player.play({});
  EXPECT_EQ(result.end, End::interrupted);
  EXPECT_EQ(result.runs, 6);
  EXPECT_EQ(result.judgement.verdict, Verdict::cannot_tell);
  EXPECT_TRUE(result.comparison.has_value());
}

}  // namespace
}  // namespace assay::host::ab
