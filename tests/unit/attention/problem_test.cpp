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

TEST(AttentionProblem, BytesAreThoseOfTheTensorsWithoutTheScores) {
  EXPECT_EQ(forward_bytes(small), 4u * 16 * 256 * 16 * 2);
  EXPECT_EQ(backward_bytes(small), 8u * 16 * 256 * 16 * 2);
}

TEST(AttentionProblem, TheLargestCaseStillFits) {
  const Problem largest{.batch = 4096, .heads = 256, .seq = 1, .head_dim = 1024, .causal = false};
  EXPECT_EQ(forward_flops(largest), 4ull * 4096 * 256 * 1024);
  EXPECT_NEAR(static_cast<double>(Problem{.head_dim = 64}.scale()), 0.125, 1e-9);
}

}  // namespace
}  // namespace attention
