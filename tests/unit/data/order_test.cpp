#include "order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace assay::data {
namespace {

std::vector<std::int64_t> all_of(const EpochOrder& order, std::int64_t samples) {
  std::vector<std::int64_t> indices;
  for (std::int64_t place = 0; place < samples; ++place) indices.push_back(order.index(place));
  return indices;
}

bool each_once(std::vector<std::int64_t> indices) {
  std::sort(indices.begin(), indices.end());
  for (std::size_t i = 0; i < indices.size(); ++i)
    if (indices[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

TEST(EpochOrder, HasEachSampleOnceForAnySizeAndRun) {
  for (const std::int64_t samples : {1, 2, 3, 5, 16, 17, 100, 1000, 4097})
    for (const std::int64_t run : {1, 2, 7, 16, 64})
      for (const std::int64_t epoch : {0, 1, 12345})
        EXPECT_TRUE(each_once(all_of(EpochOrder(samples, run, true, 7, epoch), samples))) << samples << " " << run;
}

TEST(EpochOrder, UnshuffledIsThatOfTheDataSet) {
  const EpochOrder order(100, 16, false, 7, 3);
  for (std::int64_t place = 0; place < 100; ++place) EXPECT_EQ(order.index(place), place);
}

TEST(EpochOrder, DependsOnSeedAndEpochAlone) {
  const auto order = all_of(EpochOrder(1000, 1, true, 7, 3), 1000);
  EXPECT_EQ(order, all_of(EpochOrder(1000, 1, true, 7, 3), 1000));
  const auto equal_places = [&](const std::vector<std::int64_t>& other) {
    int equal = 0;
    for (std::size_t i = 0; i < order.size(); ++i) equal += order[i] == other[i] ? 1 : 0;
    return equal;
  };
  // Of two random orders one place in a thousand agrees.
  EXPECT_LT(equal_places(all_of(EpochOrder(1000, 1, true, 7, 4), 1000)), 10);
  EXPECT_LT(equal_places(all_of(EpochOrder(1000, 1, true, 8, 3), 1000)), 10);
}

TEST(EpochOrder, KeepsRunsTogetherAndCutsThemElsewhereEachEpoch) {
  constexpr std::int64_t samples = 1000, run = 8;
  std::map<std::int64_t, int> beginnings;
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    const EpochOrder order(samples, run, true, 1, epoch);
    for (std::int64_t place = 0; place + run <= samples; place += run)
      for (std::int64_t i = 1; i < run; ++i)
        EXPECT_EQ(order.index(place + i), (order.index(place) + i) % samples) << epoch << " " << place;
    ++beginnings[order.index(0) % run];
  }
  EXPECT_GT(beginnings.size(), 3u);
}

TEST(EpochOrder, TellsHowManySamplesFollowOneAnother) {
  for (const bool shuffle : {false, true})
    for (const std::int64_t run : {1, 7, 16, 200})
      for (const std::int64_t samples : {1, 15, 100}) {
        const EpochOrder order(samples, run, shuffle, 3, 4);
        std::int64_t stretches = 0;
        for (std::int64_t place = 0; place < samples; ++stretches) {
          const std::int64_t count = order.together(place);
          ASSERT_GE(count, 1);
          ASSERT_LE(count, run);
          ASSERT_LE(place + count, samples);
          for (std::int64_t i = 1; i < count; ++i)
            EXPECT_EQ(order.index(place + i), order.index(place) + i) << samples << " " << run << " " << place;
          place += count;
        }
        EXPECT_LE(stretches, samples / run + 2);  // the runs, one of them cut by the end of the data set, and the rest
      }
}

// Each of the 120 orders of five things about as often as the others: a few hundred of 60,000 are expected of each, and
// the sum of squared deviations of a fair draw lies near 119 (its standard deviation is 15).
TEST(Permutation, FavoursNoOrder) {
  std::map<std::vector<std::int64_t>, int> times;
  constexpr int draws = 60000;
  for (int draw = 0; draw < draws; ++draw) {
    const Permutation permutation(5, 99, static_cast<std::uint64_t>(draw));
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < 5; ++i) order.push_back(permutation(i));
    ++times[order];
  }
  EXPECT_EQ(times.size(), 120u);
  double chi_squared = 0;
  for (const auto& [order, count] : times) {
    const double deviation = count - draws / 120.0;
    chi_squared += deviation * deviation / (draws / 120.0);
  }
  EXPECT_LT(chi_squared, 119 + 5 * 15.4);
}

// Where an element goes does not depend on where it was: the mean distance of a random order is a third of its length.
TEST(Permutation, MovesThingsFar) {
  constexpr std::int64_t size = 100003;
  const Permutation permutation(size, 5, 6);
  double distance = 0;
  for (std::int64_t i = 0; i < size; ++i) distance += static_cast<double>(std::abs(permutation(i) - i));
  EXPECT_NEAR(distance / size / size, 1.0 / 3, 0.01);
}

}  // namespace
}  // namespace assay::data
