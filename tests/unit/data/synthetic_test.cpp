#include <gtest/gtest.h>
#include <assay/data/samples.hpp>
#include <assay/plugin.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "philox.hpp"

namespace assay::data {
namespace {

// The generator's published vector: philox4x32-10 of Random123 (kat_vectors), counter and key of digits of pi.
TEST(Philox, KnownValues) {
  PhiloxTile word;
  philox_tile(0, 0, 0, word);
  EXPECT_EQ(std::vector<std::uint32_t>(word.begin(), word.begin() + 4),
            (std::vector<std::uint32_t>{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  philox_tile(0x299f31d0a4093822u, 0x0370734413198a2eu, 0x85a308d3243f6a88u, word);
  EXPECT_EQ(std::vector<std::uint32_t>(word.begin(), word.begin() + 4),
            (std::vector<std::uint32_t>{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST(SyntheticSamples, DependOnSeedAndIndexAlone) {
  const SyntheticSamples samples({33, 1000}, 50, 7);
  const SyntheticSamples fewer({33, 1000}, 20, 7);
  std::vector<std::int64_t> together(66 * 5);
  samples.read(10, together);
  for (std::int64_t i = 0; i < 5; ++i) {
    std::vector<std::int64_t> alone(66);
    fewer.read(10 + i, alone);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + 66 * i)) << i;
  }
  const SyntheticSamples other_seed({33, 1000}, 50, 8);
  std::vector<std::int64_t> other(66 * 5);
  other_seed.read(10, other);
  EXPECT_NE(other, together);
}

TEST(SyntheticSamples, FillTheVocabularyEvenly) {
  constexpr std::int64_t vocabulary = 10, tokens = 2 * 128 * 400;
  const SyntheticSamples samples({128, vocabulary}, 400, 3);
  std::vector<std::int64_t> out(tokens);
  samples.read(0, out);
  std::vector<int> times(vocabulary);
  for (const std::int64_t token : out) {
    ASSERT_GE(token, 0);
    ASSERT_LT(token, vocabulary);
    ++times[static_cast<std::size_t>(token)];
  }
  for (const int count : times) EXPECT_NEAR(count, tokens / vocabulary, 500);  // five standard deviations of 96
}

TEST(SyntheticSamples, RefuseWhatCannotBe) {
  EXPECT_THROW(SyntheticSamples({0, 10}, 1, 0), Error);
  EXPECT_THROW(SyntheticSamples({10, 0}, 1, 0), Error);
  EXPECT_THROW(SyntheticSamples({10, 10}, -1, 0), Error);
}

}  // namespace
}  // namespace assay::data
