// What ranks send each other of the algorithms that they have found: who leads, who waits for what, and that nobody
// waits for what does not come.
#include <gtest/gtest.h>
#include <assay/plugin.hpp>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/shared_algorithms.hpp"
#include "exchange_of_threads.hpp"

namespace assay::compute {
namespace {

// A rank whose own choice would be its name.
class Rank {
 public:
  explicit Rank(std::string name, std::string devices = "H200, driver 1")
      : name_(std::move(name)), shared_([this, devices] { return ++asked_, devices; }) {}

  void begin(AlgorithmExchange& lists) { shared_.share(&lists); }
  void end() { shared_.share(nullptr); }
  // As a device prepares an operation.
  std::string prepare(const std::string& key) {
    if (const auto told = shared_.find(key)) return told->algorithm;
    const std::string own = name_ + " for " + key;
    ++timed_;
    shared_.tell(key, {own, 12.5});
    return own;
  }
  std::vector<std::string> prepare_all(AlgorithmExchange& lists, const std::vector<std::string>& keys) {
    begin(lists);
    std::vector<std::string> chosen;
    for (const std::string& key : keys) chosen.push_back(prepare(key));
    end();
    return chosen;
  }
  SharedAlgorithms& shared() { return shared_; }
  int timed() const { return timed_; }
  int asked() const { return asked_; }

 private:
  std::string name_;
  int timed_ = 0, asked_ = 0;
  SharedAlgorithms shared_;
};

using Texts = std::vector<std::string>;

TEST(SharedAlgorithms, ARankAloneChoosesForItselfAndIsNotAskedForItsDevice) {
  Rank rank("a");
  EXPECT_EQ(rank.prepare("p"), "a for p");
  EXPECT_EQ(rank.asked(), 0);
}

TEST(SharedAlgorithms, TheOthersRunWhatTheFirstHasChosen) {
  ExchangeOfThreads lists;
  Rank first("a"), second("b"), third("c");
  EXPECT_EQ(first.prepare_all(lists, {"p", "q"}), (Texts{"a for p", "a for q"}));
  EXPECT_EQ(second.prepare_all(lists, {"p", "q"}), (Texts{"a for p", "a for q"}));
  EXPECT_EQ(third.prepare_all(lists, {"q", "p"}), (Texts{"a for q", "a for p"})) << "in another order";
  EXPECT_EQ(second.timed() + third.timed(), 0);
}

TEST(SharedAlgorithms, WithItsTime) {
  ExchangeOfThreads lists;
  Rank first("a"), second("b");
  first.prepare_all(lists, {"p"});
  second.begin(lists);
  const auto told = second.shared().find("p");
  ASSERT_TRUE(told);
  EXPECT_EQ(told->microseconds, 12.5);
  EXPECT_EQ(origin_of_told(*told), "12.5 us, measured by another rank");
  EXPECT_EQ(origin_of_told({"a", 0}), "not measured, as on another rank");
}

TEST(SharedAlgorithms, AFollowerWaitsForTheOperationAtHandAndNotForTheEnd) {
  ExchangeOfThreads lists;
  Rank leader("a"), follower("b");
  leader.begin(lists);
  EXPECT_EQ(leader.prepare("p"), "a for p");
  follower.begin(lists);
  EXPECT_EQ(follower.prepare("p"), "a for p") << "before the leader has ended";
  std::string chosen;
  std::thread waits([&] { chosen = follower.prepare("r"); });
  lists.wait_until_somebody_waits();
  leader.prepare("q");
  leader.prepare("r");
  waits.join();
  EXPECT_EQ(chosen, "a for r");
  leader.end();
}

TEST(SharedAlgorithms, WhatTheLeaderDoesNotPrepareEachChoosesForItself) {
  ExchangeOfThreads lists;
  Rank leader("a"), follower("b");
  leader.begin(lists);
  leader.prepare("p");
  follower.begin(lists);
  std::string other;
  std::thread waits([&] { other = follower.prepare("only here"); });
  lists.wait_until_somebody_waits();
  leader.end();
  waits.join();
  EXPECT_EQ(other, "b for only here");
  EXPECT_EQ(follower.prepare("p"), "a for p");
  const std::size_t told = lists.texts();
  follower.prepare("also only here");
  EXPECT_EQ(lists.texts(), told) << "one rank writes a list";
}

// Two that wait for each other would be the deadlock: whoever leads waits for nobody, whatever it wants.
TEST(SharedAlgorithms, OppositeOrdersAndRepeatedRoundsEnd) {
  for (int round = 0; round < 50; ++round) {
    ExchangeOfThreads lists;
    Rank a("a"), b("b");
    Texts of_a, of_b;
    std::thread other([&] { of_b = b.prepare_all(lists, {"4", "3", "2", "1", "only b"}); });
    of_a = a.prepare_all(lists, {"1", "2", "3", "4"});
    other.join();
    ASSERT_EQ(Texts(of_a.rbegin(), of_a.rend()), Texts(of_b.begin(), of_b.end() - 1));
    ASSERT_TRUE(a.timed() == 0 || b.timed() <= 1) << "one of them has chosen";
    // The list is whole by now: who prepares later, and alone, waits for nobody.
    ASSERT_EQ(a.prepare_all(lists, {"1", "2", "3", "4"}), of_a);
  }
}

TEST(SharedAlgorithms, AnotherDeviceIsAnotherList) {
  ExchangeOfThreads lists;
  Rank a("a"), b("b", "H200, driver 2"), c("c"), d("d", "H200, driver 2");
  a.prepare_all(lists, {"p"});
  EXPECT_EQ(b.prepare_all(lists, {"p"}), Texts{"b for p"});
  EXPECT_EQ(c.prepare_all(lists, {"p"}), Texts{"a for p"});
  EXPECT_EQ(d.prepare_all(lists, {"p"}), Texts{"b for p"});
}

TEST(SharedAlgorithms, ALeaderThatIsLostIsAnErrorOfThoseWhoWait) {
  ExchangeOfThreads lists;
  Rank leader("a"), follower("b");
  leader.begin(lists);
  leader.prepare("p");
  follower.begin(lists);
  std::string said;
  std::thread waits([&] {
    try {
      follower.prepare("q");
    } catch (const Error& e) {
      said = e.what();
    }
  });
  lists.wait_until_somebody_waits();
  lists.lose_a_rank();
  waits.join();
  EXPECT_EQ(said, "rank 0 on host n1 is gone");
}

TEST(SharedAlgorithms, TextsOfAnotherKindAreRefused) {
  ExchangeOfThreads lists;
  Rank follower("b");
  ASSERT_TRUE(lists.lead("H200, driver 1"));
  lists.put("H200, driver 1", 0, R"({"made_for": "p"})");
  follower.begin(lists);
  try {
    follower.prepare("p");
    FAIL() << "expected a refusal";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_INTERNAL);
  }
}

}  // namespace
}  // namespace assay::compute
