// What is kept of many samples.
#include "report/thinning.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace assay::host::report {
namespace {

using Samples = std::vector<double>;
using Places = std::vector<std::int64_t>;
constexpr double none = std::numeric_limits<double>::quiet_NaN();

TEST(Thinning, FewSamplesStayAsTheyAre) {
  const Samples samples{3, 1, 2, 5};
  const Thinned kept = thinned(samples, 4);
  EXPECT_EQ(kept.values, samples);
  EXPECT_TRUE(kept.places.empty());
}

TEST(Thinning, TheShortestAndTheLongestOfEachStretchStay) {
  const Thinned kept = thinned(Samples{5, 1, 9, 4, 2, 2, 8, 3}, 4);
  EXPECT_EQ(kept.values, (Samples{1, 9, 2, 8}));
  EXPECT_EQ(kept.places, (Places{1, 2, 4, 6}));
}

TEST(Thinning, NoStallIsLostAndTheLimitHolds) {
  for (const std::size_t count : {101u, 1000u, 4099u}) {
    Samples samples(count, 1.0);
    samples[count / 3] = 50;
    samples[count - 1] = 0.25;
    const Thinned kept = thinned(samples, 20);
    EXPECT_LE(kept.values.size(), 20u);
    EXPECT_EQ(*std::max_element(kept.values.begin(), kept.values.end()), 50);
    EXPECT_EQ(kept.values.back(), 0.25);
    EXPECT_TRUE(std::is_sorted(kept.places.begin(), kept.places.end()));
    for (std::size_t i = 0; i < kept.values.size(); ++i)
      EXPECT_EQ(samples[static_cast<std::size_t>(kept.places[i])], kept.values[i]);
  }
}

TEST(Thinning, WhatIsNoNumberStaysOutAndTheOthersKeepTheirPlaces) {
  const Thinned few = thinned(Samples{1, none, 3}, 8);
  EXPECT_EQ(few.values, (Samples{1, 3}));
  EXPECT_EQ(few.places, (Places{0, 2}));
  const Thinned many = thinned(Samples{none, none, none, 4, 5, 6, 7, 8}, 4);
  EXPECT_EQ(many.values, (Samples{4, 5, 8}));
  EXPECT_TRUE(thinned(Samples(9, none), 4).values.empty());
  EXPECT_TRUE(thinned(Samples{}, 4).values.empty());
}

TEST(Thinning, QuantilesAndCountsAreOfAllSamples) {
  Samples samples(101);
  std::iota(samples.begin(), samples.end(), 0.0);
  std::reverse(samples.begin(), samples.end());
  const Distribution spread = distribution_of(samples, 10);
  EXPECT_EQ(spread.quantiles, (std::array<double, 7>{0, 5, 25, 50, 75, 95, 100}));
  EXPECT_EQ(spread.counts, (Places{10, 10, 10, 10, 10, 10, 10, 10, 10, 11}));
}

TEST(Thinning, SamplesThatAreAllTheSameAreOneBin) {
  const Distribution spread = distribution_of(Samples{2, 2, none, 2}, 10);
  EXPECT_EQ(spread.quantiles[0], 2);
  EXPECT_EQ(spread.quantiles[6], 2);
  EXPECT_EQ(spread.counts, Places{3});
  EXPECT_TRUE(distribution_of(Samples{none}, 10).counts.empty());
}

TEST(Thinning, ManyCasesHaveFewSamplesEach) {
  EXPECT_EQ(samples_of_each_case(1, 40'000), 600u);
  EXPECT_EQ(samples_of_each_case(1000, 40'000), 40u);
  EXPECT_EQ(samples_of_each_case(100'000, 40'000), 8u);
  EXPECT_EQ(samples_of_each_case(0, 40'000), 600u);
}

}  // namespace
}  // namespace assay::host::report
