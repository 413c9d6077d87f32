#include "wireup/key_value_store.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "helpers.hpp"

namespace assay::host::wireup {
namespace {

using Values = std::vector<std::string>;

TEST(KeyValueStore, GetsWhatWasSetLast) {
  KeyValueStore store;
  store.set("a", "1");
  store.set("a", std::string_view("\0\xff", 2));
  EXPECT_EQ(store.get("a", 0ms), std::string("\0\xff", 2));
  EXPECT_EQ(store.find("b"), std::nullopt);
  EXPECT_EQ(store.find("a"), std::string("\0\xff", 2));
}

TEST(KeyValueStore, GetWaitsForTheValue) {
  KeyValueStore store;
  auto value = std::async(std::launch::async, [&] { return store.get("late", patient); });
  await_waits(store, 1);
  store.set("other", "0");
  store.set("late", "1");
  EXPECT_EQ(value.get(), "1");
}

TEST(KeyValueStore, GetNamesTheKeyAtItsDeadline) {
  KeyValueStore store;
  EXPECT_EQ(error_of([&] { store.get("never", brief); }), "nobody set 'never' within 0.05 s");
  store.set("never", "now");
  EXPECT_EQ(store.get("never", brief), "now");
}

TEST(KeyValueStore, AddCountsApartFromKeys) {
  KeyValueStore store;
  EXPECT_EQ(store.add("n", 2), 2);
  EXPECT_EQ(store.add("n", -5), -3);
  EXPECT_EQ(store.find("n"), std::nullopt);
}

TEST(KeyValueStore, ExchangeGivesAllValuesInTheOrderOfRanks) {
  KeyValueStore store;
  auto second = std::async(std::launch::async, [&] { return store.exchange("x", 1, 3, "b", patient); });
  auto third = std::async(std::launch::async, [&] { return store.exchange("x", 2, 3, "c", patient); });
  EXPECT_EQ(store.exchange("x", 0, 3, "a", patient), (Values{"a", "b", "c"}));
  EXPECT_EQ(second.get(), (Values{"a", "b", "c"}));
  EXPECT_EQ(third.get(), (Values{"a", "b", "c"}));
  EXPECT_EQ(store.exchange("alone", 0, 1, "", 0ms), Values{""});
}

TEST(KeyValueStore, ExchangeNamesTheMissingRanks) {
  KeyValueStore store;
  auto other = error_later([&] { store.exchange("x", 4, 9, "", patient); });
  await_waits(store, 1);
  const std::string text = error_of([&] { store.exchange("x", 2, 9, "", brief); });
  EXPECT_EQ(text, "exchange 'x': ranks 0, 1, 3 and 5 to 8 of 9 did not come within 0.05 s");
  // It is over for all, those who come later included.
  EXPECT_EQ(other.get(), text);
  EXPECT_EQ(error_of([&] { store.exchange("x", 3, 9, "", patient); }), text);
}

TEST(KeyValueStore, MissingRanksAreToldApartByWhetherTheyAreConnected) {
  KeyValueStore store;
  store.join({"case/7/", 0, "n1"});
  store.join({"case/7/", 1, "n2"});
  EXPECT_EQ(error_of([&] { store.exchange("case/7/go", 0, 3, "", brief); }),
            "exchange 'case/7/go': ranks 1 and 2 of 3 did not come within 0.05 s (rank 1 is connected from host n2, "
            "rank 2 is not connected)");
}

TEST(KeyValueStore, ExchangeRefusesMistakes) {
  KeyValueStore store;
  EXPECT_CONTAINS(error_of([&] { store.exchange("x", 2, 2, "", patient); }), "'x' was called as rank 2 of 2");
  EXPECT_CONTAINS(error_of([&] { store.exchange("x", -1, 2, "", patient); }), "rank -1 of 2");
  EXPECT_CONTAINS(error_of([&] { store.exchange("x", 0, 0, "", patient); }), "rank 0 of 0");
  auto first = std::async(std::launch::async, [&] { return store.exchange("x", 0, 2, "a", patient); });
  await_waits(store, 1);
  EXPECT_CONTAINS(error_of([&] { store.exchange("x", 1, 3, "", patient); }), "rank 1 says that there are 3 ranks");
  EXPECT_CONTAINS(error_of([&] { store.exchange("x", 7, 8, "", patient); }), "others said 2");
  EXPECT_EQ(store.exchange("x", 1, 2, "b", patient), (Values{"a", "b"}));
  EXPECT_EQ(first.get(), (Values{"a", "b"}));
  EXPECT_CONTAINS(error_of([&] { store.exchange("x", 0, 2, "a", patient); }), "called twice by rank 0");
}

TEST(KeyValueStore, ErasedPrefixForgetsEverythingUnderIt) {
  KeyValueStore store;
  store.set("case/1/a", "old");
  store.set("case/2/a", "kept");
  store.add("case/1/n", 5);
  store.exchange("case/1/x", 0, 1, "", patient);
  store.erase_prefix("case/1/");
  EXPECT_EQ(store.find("case/1/a"), std::nullopt);
  EXPECT_EQ(store.find("case/2/a"), "kept");
  EXPECT_EQ(store.add("case/1/n", 1), 1);
  EXPECT_EQ(store.exchange("case/1/x", 0, 1, "again", patient), Values{"again"});
}

TEST(KeyValueStore, ErasedPrefixEndsWaits) {
  KeyValueStore store;
  auto get = error_later([&] { store.get("case/1/a", patient); });
  auto exchange = error_later([&] { store.exchange("case/1/x", 0, 2, "", patient); });
  await_waits(store, 2);
  store.erase_prefix("case/1/");
  EXPECT_CONTAINS(get.get(), "erased during the wait");
  EXPECT_CONTAINS(exchange.get(), "erased during the wait");
}

TEST(KeyValueStore, CancelledWaitIsNotCalledBack) {
  KeyValueStore store;
  int calls = 0;
  const auto count = [&](WaitOutcome&&) { ++calls; };
  store.cancel(store.begin_get("a", patient, count));
  store.cancel(store.begin_exchange("x", 0, 2, "left behind", patient, count));
  store.set("a", "1");
  EXPECT_EQ(store.exchange("x", 1, 2, "b", patient), (Values{"left behind", "b"}));
  store.expire(1);
  store.cancel(77);
  EXPECT_EQ(calls, 0);
}

TEST(KeyValueStore, ManyThreads) {
  constexpr int ranks = 16, rounds = 20;
  KeyValueStore store;
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      for (int round = 0; round < rounds; ++round) {
        const std::string name = "round/" + std::to_string(round);
        store.set(name + "/" + std::to_string(rank), std::to_string(rank));
        const int neighbour = (rank + 1) % ranks;
        const bool got = store.get(name + "/" + std::to_string(neighbour), patient) == std::to_string(neighbour);
        const auto all = store.exchange(name, rank, ranks, std::to_string(rank * round), patient);
        right += got && all.size() == ranks && all[3] == std::to_string(3 * round);
        store.add("sum", 1);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, ranks * rounds);
  EXPECT_EQ(store.add("sum", 0), ranks * rounds);
}

}  // namespace
}  // namespace assay::host::wireup
