// What the guards let through to cuDNN, and what they refuse and how they say it.
#include <gtest/gtest.h>

#include "cuda/attention_guards.hpp"

namespace assay::cuda {
namespace {

using compute::DType;
using compute::Tensor;

AttentionProblem square(std::int64_t times, std::int64_t depth, bool causal, bool backward) {
  return {DType::bf16, 4, 12, times, times, depth, causal, backward};
}
bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(AttentionGuards, LetsThroughWhatTheDecodersNeed) {
  for (const std::int64_t depth : {8, 16, 64, 80, 128, 256})
    for (const std::int64_t times : {2, 128, 257, 512, 16384})
      for (const bool backward : {false, true}) {
        AttentionProblem p = square(times, depth, true, backward);
        EXPECT_EQ(attention_refusal(p), "") << times << " x " << depth;
        p.dtype = DType::f16;
        EXPECT_EQ(attention_refusal(p), "") << times << " x " << depth;
      }
}

TEST(AttentionGuards, RefusesOtherTypes) {
  for (const DType type : {DType::f32, DType::i64, DType::u8}) {
    AttentionProblem p = square(128, 64, true, false);
    p.dtype = type;
    EXPECT_TRUE(says(attention_refusal(p), name_of(type)));
    EXPECT_TRUE(says(attention_refusal(p), "fp16 and bf16"));
  }
}

TEST(AttentionGuards, RefusesHeadDimensionsWithoutKernels) {
  for (const std::int64_t depth : {0, 1, 7, 13, 65, 260, 264, 512})
    for (const bool backward : {false, true})
      EXPECT_TRUE(says(attention_refusal(square(128, depth, true, backward)), "multiples of 8 from 8 to 256")) << depth;
}

TEST(AttentionGuards, ServesValuesOfAnotherWidthWhereLatentAttentionHasThem) {
  for (const bool backward : {false, true}) {
    AttentionProblem p = square(128, 192, true, backward);
    p.other_value_depth = 128;
    EXPECT_EQ(attention_refusal(p), "");
    p.window = 64;
    EXPECT_TRUE(says(attention_refusal(p), "without windows, sinks and a soft cap"));
    p.window = 0, p.depth = 128;
    p.other_value_depth = 64;
    EXPECT_TRUE(
        says(attention_refusal(p), "values of width 64 beside queries of 128 given; 16-bit attention serves 128"));
  }
}

TEST(AttentionGuards, RefusesTheBackwardWithoutMaskUnlessKeysAreMultiplesOf128) {
  for (const std::int64_t keys : {1, 64, 100, 127, 129, 192, 320}) {
    AttentionProblem p{DType::bf16, 2, 8, 64, keys, 64, false, true};
    EXPECT_TRUE(says(attention_refusal(p), "multiples of 128")) << keys;
    p.backward = false;
    EXPECT_EQ(attention_refusal(p), "") << keys;
  }
  for (const std::int64_t keys : {128, 256, 384, 8192})
    EXPECT_EQ(attention_refusal({DType::bf16, 2, 8, 64, keys, 64, false, true}), "") << keys;
}

TEST(AttentionGuards, TreatsTheRectangularMaskAsNoneInTheBackward) {
  EXPECT_EQ(attention_refusal({DType::bf16, 2, 8, 64, 130, 64, true, false}), "");
  EXPECT_TRUE(says(attention_refusal({DType::bf16, 2, 8, 64, 130, 64, true, true}), "130 keys"));
  EXPECT_EQ(attention_refusal({DType::bf16, 2, 8, 64, 256, 64, true, true}), "");
}

TEST(AttentionGuards, RefusesQueriesWithoutKeys) {
  EXPECT_TRUE(says(attention_refusal({DType::bf16, 2, 8, 256, 128, 64, true, false}), "256 queries and 128 keys"));
  EXPECT_EQ(attention_refusal({DType::bf16, 2, 8, 256, 128, 64, false, true}), "");
}

TEST(AttentionGuards, RefusesTheBackwardOfOneQuery) {
  AttentionProblem p{DType::f16, 2, 8, 1, 128, 64, false, true};
  EXPECT_TRUE(says(attention_refusal(p), "1 query"));
  p.backward = false;
  EXPECT_EQ(attention_refusal(p), "");
}

TEST(AttentionGuards, RefusesEmptyProblems) {
  for (const bool backward : {false, true}) {
    EXPECT_NE(attention_refusal({DType::bf16, 0, 8, 16, 128, 64, false, backward}), "");
    EXPECT_NE(attention_refusal({DType::bf16, 1, 0, 16, 128, 64, false, backward}), "");
    EXPECT_NE(attention_refusal({DType::bf16, 1, 8, 0, 128, 64, false, backward}), "");
    EXPECT_NE(attention_refusal({DType::bf16, 1, 8, 16, 0, 64, false, backward}), "");
  }
}

TEST(AttentionGuards, RefusesDropoutUnderARectangularMask) {
  for (const bool backward : {false, true}) {
    AttentionProblem p{DType::f16, 2, 8, 64, 128, 64, true, backward, 0.1F};
    EXPECT_TRUE(says(attention_refusal(p), "with dropout serves as many queries as keys")) << backward;
    p.causal = false;
    EXPECT_EQ(attention_refusal(p), "") << backward;
    p.causal = true, p.queries = p.keys;
    EXPECT_EQ(attention_refusal(p), "") << backward;
  }
}

TEST(AttentionGuards, ServesTheShapesOfTheEncoderDecoder) {
  for (const float dropout : {0.0F, 0.1F})
    for (const bool backward : {false, true})
      for (const auto& [heads, depth] : {std::pair{4, 32}, {8, 64}, {12, 64}, {32, 64}}) {
        const auto refusal = [=, heads = heads, depth = depth](std::int64_t queries, std::int64_t keys, bool causal) {
          return attention_refusal({DType::f16, 128, heads, queries, keys, depth, causal, backward, dropout});
        };
        EXPECT_EQ(refusal(256, 256, false), "");
        EXPECT_EQ(refusal(255, 255, true), "");
        EXPECT_EQ(refusal(255, 256, false), "");
      }
}

TEST(AttentionGuards, ServesDocumentsAlone) {
  for (const bool backward : {false, true}) {
    AttentionProblem p = square(256, 64, true, backward);
    p.documents = 20, p.longest = 90;
    EXPECT_EQ(attention_refusal(p), "");
    const auto refusal = [&](auto change) {
      AttentionProblem other = p;
      change(other);
      return attention_refusal(other);
    };
    EXPECT_TRUE(says(refusal([](auto& o) { o.causal = false; }), "documents given without a causal mask"));
    EXPECT_TRUE(says(refusal([](auto& o) { o.soft_cap = 50; }), "use fp32, or the naive attention"));
    EXPECT_TRUE(says(refusal([](auto& o) { o.dropout = 0.1F; }), "use fp32, or the naive attention"));
    EXPECT_TRUE(says(refusal([](auto& o) { o.depth = 72; }), "multiples of 16"));
    EXPECT_EQ(refusal([](auto& o) { o.depth = 192, o.other_value_depth = 128; }), "");
    EXPECT_TRUE(says(refusal([](auto& o) { o.longest = 1; }), "one token each"));
  }
  alignas(16) char memory[2 * 64 * 4 * 16 * 2] = {};  // of the larger shape
  Tensor rows(memory, DType::bf16, {2, 64, 4, 16});
  EXPECT_EQ(attention_refusal("q", rows.slice(2, 1, 2), true), "");
  EXPECT_TRUE(says(attention_refusal("q", rows.slice(1, 0, 32), true), "from sequence to sequence"));
  rows = Tensor(memory, DType::bf16, {1, 4, 64, 16}).transposed(1, 2);
  EXPECT_EQ(attention_refusal("q", rows), "");
  EXPECT_TRUE(says(attention_refusal("q", rows, true), "heads lie beside each other"));
}

TEST(AttentionGuards, ChecksHowOperandsLie) {
  alignas(16) char memory[64] = {};
  const Tensor packed = Tensor(memory, DType::bf16, {2, 4, 3 * 2, 8}).slice(2, 2, 2);
  EXPECT_EQ(attention_refusal("k", packed), "");
  EXPECT_EQ(attention_refusal("k", packed.transposed(1, 2)), "");
  EXPECT_TRUE(says(attention_refusal("k", packed.transposed(1, 3)), "k has stride 48 over the head dimension"));
  Tensor shifted = packed;
  shifted.data = memory + 2;
  EXPECT_TRUE(says(attention_refusal("dout", shifted), "dout lies at an address"));
  Tensor loose = packed;
  loose.stride[1] = 50;
  EXPECT_TRUE(says(attention_refusal("q", loose), "q has stride 50 in dimension 1"));
  loose.shape[1] = 1;  // the stride of one entry does not matter
  EXPECT_EQ(attention_refusal("q", loose), "");
}

}  // namespace
}  // namespace assay::cuda
