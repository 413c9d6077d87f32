#include "problem.hpp"

#include <gtest/gtest.h>

namespace attention {
namespace {

using assay::compute::DType;

constexpr Problem small{.batch = 8, .heads = 2, .seq = 256, .head_dim = 16, .causal = false, .dtype = DType::bf16};

TEST(AttentionProblem, CountsTwoProductsForwardAndFourBackward) {
  EXPECT_EQ(forward_flops(small), 2u * 2 * 16 * 256 * 256 * 16);
  EXPECT_EQ(backward_flops(small), 4u * 2 * 16 * 256 * 256 * 16);
}

TEST(AttentionProblem, ACausalMaskLeavesHalf) {
  Problem causal = small;
  causal.causal = true;
  EXPECT_EQ(2 * forward_flops(causal), forward_flops(small));
  EXPECT_EQ(2 * backward_flops(causal), backward_flops(small));
}

// The first 20 queries see 1 to 20 keys, the others 20.
TEST(AttentionProblem, AWindowLeavesItsPairs) {
  Problem window = small;
  window.causal = true, window.window = 20;
  EXPECT_EQ(forward_flops(window), 4u * 8 * 2 * 16 * (20 * 21 / 2 + 236 * 20));
  window.window = 256;
  EXPECT_EQ(2 * forward_flops(window), forward_flops(small)) << "hides nothing";
}

TEST(AttentionProblem, DocumentsLeaveTheirPairs) {
  Problem packed = small;
  packed.causal = true, packed.documents = {1, 200, 55};
  EXPECT_EQ(forward_flops(packed), 4u * 8 * 2 * 16 * (1 + 200 * 201 / 2 + 55 * 56 / 2));
  packed.window = 20;
  EXPECT_EQ(forward_flops(packed), 4u * 8 * 2 * 16 * (1 + 2 * 210 + (180 + 35) * 20));
}

TEST(AttentionProblem, ValuesMayHaveAWidthOfTheirOwn) {
  Problem latent = small;
  latent.value_dim = 12;
  EXPECT_EQ(forward_flops(latent), 2u * 16 * 256 * 256 * (16 + 12));
  EXPECT_EQ(forward_bytes(latent), 2u * 16 * 256 * (16 + 12) * 2);
  EXPECT_EQ(backward_bytes(latent), 4u * 16 * 256 * (16 + 12) * 2);
  latent.causal = true, latent.window = 20;
  EXPECT_EQ(forward_flops(latent), 2u * 8 * 2 * (16 + 12) * (20 * 21 / 2 + 236 * 20));
}

TEST(AttentionProblem, BytesAreThoseOfTheTensorsWithoutTheScores) {
  EXPECT_EQ(forward_bytes(small), 4u * 16 * 256 * 16 * 2);
  EXPECT_EQ(backward_bytes(small), 8u * 16 * 256 * 16 * 2);
}

TEST(AttentionProblem, TheScaleIsThatOfTheHeadDimension) {
  EXPECT_NEAR(static_cast<double>(Problem{.head_dim = 64}.scale()), 0.125, 1e-9);
}

// Of n = 2048 tokens of width 32: four products of n d_model^2 forward, eight backward; four weights.
TEST(AttentionProblem, ProjectionsAddTheirProductsAndWeights) {
  Problem layer = small;
  layer.projections = true;
  const std::uint64_t tensor = 2048 * 32 * 2, weights = 4 * 32 * 32 * 2;
  EXPECT_EQ(forward_flops(layer), forward_flops(small) + 8u * 2048 * 32 * 32);
  EXPECT_EQ(backward_flops(layer), 2 * forward_flops(layer));
  EXPECT_EQ(forward_bytes(layer), 2 * tensor + weights);
  EXPECT_EQ(backward_bytes(layer), 7 * tensor + 2 * weights);
}

TEST(AttentionProblem, WhatCannotBeCountedIsTold) {
  Problem large{.batch = 4096, .heads = 256, .seq = 1, .head_dim = 16384, .causal = false};
  EXPECT_TRUE(is_countable(large));
  EXPECT_EQ(forward_flops(large), 4ull * 4096 * 256 * 16384);
  large.projections = true;  // 24 * 2^12 * 2^44 operations
  EXPECT_TRUE(is_countable(large));
  EXPECT_EQ(backward_flops(large), 2 * (8ull * 4096 * (1ull << 44) + 4ull * 4096 * 256 * 16384));
  large.seq = 32;
  EXPECT_FALSE(is_countable(large));
  EXPECT_FALSE(is_countable({.batch = 4096, .heads = 256, .seq = 1 << 20, .head_dim = 64}));
  EXPECT_TRUE(is_countable({.batch = 8, .heads = 1, .seq = 1 << 20, .head_dim = 64}));
}

}  // namespace
}  // namespace attention
