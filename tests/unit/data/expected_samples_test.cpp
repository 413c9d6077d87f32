// The second implementation of samples and their order: what an epoch must be by its rule; and the loader, its order
// and its generator against it.
#include <assay/verification/expected_samples.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <assay/data/samples.hpp>
#include <set>

#include "order.hpp"

namespace assay::data {
namespace {

using verification::SampleRule;

SampleRule rule_of(std::int64_t samples, std::int64_t batch_size, std::int64_t ranks) {
  return {
      .sequence_length = 5, .vocabulary = 23, .samples = samples, .batch_size = batch_size, .ranks = ranks, .seed = 7};
}

std::vector<std::int64_t> epoch_of(const SampleRule& rule, std::int64_t epoch) {
  std::vector<std::int64_t> indices;
  for (std::int64_t place = 0; place < rule.samples; ++place)
    indices.push_back(verification::expected_index(rule, epoch, place));
  return indices;
}

TEST(ExpectedSamples, AnEpochIsAPermutationAndAnotherEpochAnother) {
  for (const std::int64_t samples : {1, 2, 3, 5, 16, 17, 100, 1000})
    for (const std::int64_t batch : {1, 16, 40}) {
      const SampleRule rule = rule_of(samples, batch, 1);
      std::set<std::vector<std::int64_t>> orders;
      for (const std::int64_t epoch : {0, 1, 2}) {
        std::vector<std::int64_t> indices = epoch_of(rule, epoch);
        orders.insert(indices);
        std::sort(indices.begin(), indices.end());
        for (std::int64_t i = 0; i < samples; ++i) ASSERT_EQ(indices[static_cast<std::size_t>(i)], i) << samples;
      }
      if (samples >= 100) {
        EXPECT_EQ(orders.size(), 3u) << samples;
      }
    }
}

TEST(ExpectedSamples, RanksHaveDisjointPartsOfAStepThatAreTogetherWhatIsUsed) {
  constexpr std::int64_t samples = 103, batch = 8, ranks = 3;
  for (const std::int64_t epoch : {0, 1}) {
    std::set<std::vector<std::int64_t>> sources;  // of five tokens out of 23 no two samples have one
    SampleRule rule = rule_of(samples, batch, ranks);
    EXPECT_EQ(rule.steps_of_epoch(), 4);
    for (std::int64_t step = 0; step < rule.steps_of_epoch(); ++step)
      for (rule.rank = 0; rule.rank < ranks; ++rule.rank) {
        const std::vector<std::int64_t> all = verification::expected_batch(rule, epoch * rule.steps_of_epoch() + step);
        ASSERT_EQ(all.size(), static_cast<std::size_t>(batch * (3 * 5 - 2)));
        for (std::int64_t i = 0; i < batch; ++i) sources.insert({all.begin() + 5 * i, all.begin() + 5 * i + 5});
      }
    EXPECT_EQ(sources.size(), 96u) << "in epoch " << epoch;
  }
}

TEST(ExpectedSamples, LabelsAreTheTargetWithoutItsFirstToken) {
  const SampleRule rule = rule_of(64, 4, 1);
  const std::vector<std::int64_t> batch = verification::expected_batch(rule, 3);
  const auto inputs = batch.begin() + 4 * 5, labels = inputs + 4 * 4;
  for (std::int64_t s = 0; s < 4; ++s) {
    const std::vector<std::int64_t> sample =
        verification::expected_sample(rule, verification::expected_index(rule, 0, 3 * 4 + s));
    for (std::int64_t i = 0; i < 5; ++i)
      EXPECT_EQ(batch[static_cast<std::size_t>(5 * s + i)], sample[static_cast<std::size_t>(i)]);
    for (std::int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(inputs[4 * s + i], sample[static_cast<std::size_t>(5 + i)]);
      EXPECT_EQ(labels[4 * s + i], sample[static_cast<std::size_t>(6 + i)]);
    }
  }
}

TEST(ExpectedSamples, AreThoseOfTheGenerator) {
  SampleRule rule = rule_of(40, 1, 1);
  for (const std::int64_t length : {1, 5, 70})
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{7}, ~std::uint64_t{0}}) {
      rule.sequence_length = length, rule.seed = seed;
      const SyntheticSamples samples({length, rule.vocabulary}, rule.samples, seed);
      for (const std::int64_t index : {0, 1, 39}) {
        std::vector<std::int64_t> made(static_cast<std::size_t>(2 * length));
        samples.read(index, made);
        EXPECT_EQ(verification::expected_sample(rule, index), made) << length << " " << index;
      }
    }
}

TEST(ExpectedSamples, ComeInTheLoadersOrder) {
  for (const std::int64_t samples : {1, 2, 3, 5, 17, 100, 1000})
    for (const std::int64_t batch : {1, 16, 40, 200})
      for (const bool shuffle : {true, false})
        for (const std::int64_t epoch : {0, 1, 12345}) {
          SampleRule rule = rule_of(samples, batch, 2);
          rule.shuffle = shuffle;
          const EpochOrder order(samples, rule.run(), shuffle, rule.seed, epoch);
          for (std::int64_t place = 0; place < samples; ++place)
            ASSERT_EQ(verification::expected_index(rule, epoch, place), order.index(place)) << samples << " " << place;
        }
}

}  // namespace
}  // namespace assay::data
