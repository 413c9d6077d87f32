// What a device that carries nothing out reports of each operation.
#include "planned/costs.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace assay::planned {
namespace {

using namespace compute;

char somewhere[1];  // a tensor without an address counts as left out

Tensor tensor(std::initializer_list<std::int64_t> dims, DType type = DType::f32) { return {somewhere, type, dims}; }

template <class Op>
assay_planned_operation cost(const Op& op, ProductMath math = ProductMath::exact) {
  return cost_of(&op, math);
}

TEST(Cost, OfAProductIsTheSameHoweverItsInputsLie) {
  const op::Matmul plain{.a = tensor({3, 5}), .b = tensor({5, 7}), .c = tensor({3, 7})};
  const op::Matmul turned{
      .a = tensor({5, 3}), .b = tensor({7, 5}), .c = tensor({3, 7}), .transpose_a = true, .transpose_b = true};
  for (const op::Matmul& op : {plain, turned}) {
    const assay_planned_operation reported = cost(op);
    EXPECT_EQ(reported.kind, ASSAY_OPERATION_PRODUCT);
    EXPECT_EQ(reported.flops, 2u * 3 * 5 * 7);
    EXPECT_EQ(reported.bytes, 4u * (15 + 35 + 21));
    EXPECT_EQ(reported.arithmetic, ASSAY_ARITHMETIC_FP32);
    EXPECT_EQ(cost(op, ProductMath::tf32).arithmetic, ASSAY_ARITHMETIC_TF32);
  }
  op::Matmul sum = plain;
  sum.accumulate = true;
  EXPECT_EQ(cost(sum).bytes, cost(plain).bytes + 4 * 21) << "c is read, too";
  op::Matmul with_bias = plain;
  with_bias.bias = tensor({7});
  EXPECT_EQ(cost(with_bias).bytes, cost(plain).bytes + 4 * 7);
}

TEST(Cost, OfABatchOfSixteenBitProducts) {
  const op::Matmul op{.a = tensor({2, 6, 3, 5}, DType::bf16),
                      .b = tensor({2, 6, 5, 7}, DType::bf16),
                      .c = tensor({2, 6, 3, 7}, DType::f32)};
  EXPECT_EQ(cost(op).flops, 12u * 2 * 3 * 5 * 7);
  EXPECT_EQ(cost(op).bytes, 12u * (2 * (15 + 35) + 4 * 21));
  EXPECT_EQ(cost(op, ProductMath::tf32).arithmetic, ASSAY_ARITHMETIC_BF16);
}

TEST(Cost, OfAProductOfEightBitsCountsItsScales) {
  const op::Matmul op{.a = tensor({32, 16}, DType::f8_e4m3),
                      .b = tensor({48, 16}, DType::f8_e4m3),
                      .c = tensor({32, 48}, DType::bf16),
                      .transpose_b = true,
                      .a_scale = tensor({32}),
                      .b_scale = tensor({48})};
  EXPECT_EQ(cost(op).flops, 2u * 32 * 16 * 48);
  EXPECT_EQ(cost(op).bytes, 32u * 16 + 48 * 16 + 2 * 32 * 48 + 4 * (32 + 48));
  EXPECT_EQ(cost(op).arithmetic, ASSAY_ARITHMETIC_FP8);
  // A norm that writes 8 bits in the place of its result: 3 bytes an element, in bf16.
  const Tensor x = tensor({8, 64}, DType::bf16);
  const op::RmsNormForward norm{
      .x = x,
      .weight = tensor({64}),
      .rstd = tensor({8}),
      .eps = 0,
      .eight_bits = {.numbers = tensor({8, 64}, DType::f8_e4m3), .inverse_scale = tensor({8})}};
  EXPECT_EQ(cost(norm).bytes, 8u * 64 * 3 + 4 * (64 + 8 + 8));
}

// 50 rows of at most 3 groups: all rows count, and the matrices of all groups.
TEST(Cost, OfProductsByGroupsOfRows) {
  const Tensor offsets = tensor({4}, DType::i32), rows = tensor({50, 8}, DType::bf16);
  const op::GroupedMatmul product{.a = rows,
                                  .b = tensor({3, 16, 8}, DType::bf16),
                                  .offsets = offsets,
                                  .c = tensor({50, 16}, DType::bf16),
                                  .transpose_b = true};
  EXPECT_EQ(cost(product).kind, ASSAY_OPERATION_PRODUCT);
  EXPECT_EQ(cost(product).flops, 2u * 50 * 8 * 16);
  EXPECT_EQ(cost(product).bytes, 2u * (50 * 8 + 3 * 16 * 8 + 50 * 16) + 4 * 4);
  EXPECT_EQ(cost(product).arithmetic, ASSAY_ARITHMETIC_BF16);
  op::GroupedWeightGradient gradient{
      .dy = tensor({50, 16}, DType::bf16), .x = rows, .offsets = offsets, .dw = tensor({3, 16, 8})};
  EXPECT_EQ(cost(gradient).kind, ASSAY_OPERATION_PRODUCT);
  EXPECT_EQ(cost(gradient).flops, 2u * 50 * 8 * 16);
  EXPECT_EQ(cost(gradient).bytes, 2u * (50 * 8 + 50 * 16) + 4 * (3 * 16 * 8) + 4 * 4);
  EXPECT_EQ(cost(gradient).arithmetic, ASSAY_ARITHMETIC_BF16);
  gradient.accumulate = true;
  EXPECT_EQ(cost(gradient).bytes, 2u * (50 * 8 + 50 * 16) + 2 * 4 * (3 * 16 * 8) + 4 * 4) << "dw is read, too";
}

// Counted one by one, by the sentence of AttentionShape.
std::uint64_t pairs_that_see_each_other(std::int64_t queries, std::int64_t keys, bool causal) {
  std::uint64_t pairs = 0;
  for (std::int64_t i = 0; i < queries; ++i)
    for (std::int64_t j = 0; j < keys; ++j) pairs += !causal || j <= i + (keys - queries) ? 1 : 0;
  return pairs;
}

TEST(Cost, OfAttentionCountsWhatIsVisible) {
  for (const auto& [queries, keys] : {std::pair{8, 8}, {8, 13}, {13, 8}, {1, 9}, {9, 1}, {1, 1}})
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(testing::Message() << queries << " queries, " << keys << " keys, causal " << causal);
      const Tensor q = tensor({2, queries, 3, 16}), k = tensor({2, keys, 3, 16}), lse = tensor({2, 3, queries});
      const AttentionShape shape{.scale = 0.25F, .causal = causal};
      const std::uint64_t pairs = 2 * 3 * pairs_that_see_each_other(queries, keys, causal);
      const op::AttentionForward forward{.q = q, .k = k, .v = k, .out = q, .lse = lse, .shape = shape};
      EXPECT_EQ(cost(forward).kind, ASSAY_OPERATION_ATTENTION);
      EXPECT_EQ(cost(forward).flops, pairs * 2 * (2 * 16));
      EXPECT_EQ(cost(forward).bytes, 2 * q.bytes() + 2 * k.bytes() + lse.bytes());
      const op::AttentionBackward backward{
          .q = q, .k = k, .v = k, .out = q, .lse = lse, .dout = q, .dq = q, .dk = k, .dv = k, .shape = shape};
      EXPECT_EQ(cost(backward).flops, pairs * 5 * (2 * 16));
      EXPECT_EQ(cost(backward).bytes, 4 * q.bytes() + 4 * k.bytes() + lse.bytes());
    }
}

// No shape shows the pairs of documents: the operation states them, of one head.
TEST(Cost, OfPackedDocumentsIsThatOfTheirPairs) {
  const Tensor q = tensor({2, 6, 3, 16});
  const AttentionShape shape{
      .scale = 0.25F,
      .documents = {
          .first_keys = tensor({2, 6}, DType::i32), .starts = tensor({5}, DType::i32), .longest = 6, .pairs = 33}};
  const op::AttentionForward forward{.q = q, .k = q, .v = q, .out = q, .lse = tensor({2, 3, 6}), .shape = shape};
  EXPECT_EQ(cost(forward).flops, 3u * 33 * 2 * (2 * 16));
}

// Latent attention's: scores over the width of keys, results and their gradients over that of values.
TEST(Cost, OfAttentionWithValuesOfAnotherWidth) {
  const Tensor q = tensor({1, 4, 2, 24}), k = tensor({1, 6, 2, 24}), v = tensor({1, 6, 2, 16}),
               out = tensor({1, 4, 2, 16});
  const Tensor lse = tensor({1, 2, 4});
  const AttentionShape shape{.scale = 0.25F, .causal = false};
  const op::AttentionForward forward{.q = q, .k = k, .v = v, .out = out, .lse = lse, .shape = shape};
  EXPECT_EQ(cost(forward).flops, 48u * 2 * (24 + 16));
  const op::AttentionBackward backward{
      .q = q, .k = k, .v = v, .out = out, .lse = lse, .dout = out, .dq = q, .dk = k, .dv = v, .shape = shape};
  EXPECT_EQ(cost(backward).flops, 48u * 2 * (3 * 24 + 2 * 16));
}

// 32 rows of a table of a million: what is looked up, in the table's type.
TEST(Cost, OfALookUpIsItsRowsAlone) {
  const op::EmbeddingForward op{
      .ids = tensor({32}, DType::i64), .table = tensor({1'000'000, 64}), .out = tensor({32, 64}, DType::bf16)};
  EXPECT_EQ(cost(op).kind, ASSAY_OPERATION_OTHER);
  EXPECT_EQ(cost(op).flops, 0u);
  EXPECT_EQ(cost(op).bytes, 32u * 8 + 32u * 64 * (4 + 2));
}

TEST(Cost, OfTheOthersIsEachTensorOnce) {
  op::BiasBackward bias{.dy = tensor({10, 4}, DType::bf16), .dbias = tensor({4})};
  EXPECT_EQ(cost(bias).bytes, 2u * 40 + 4 * 4);
  bias.accumulate = true;
  EXPECT_EQ(cost(bias).bytes, 2u * 40 + 2 * 4 * 4);
  const op::Scale in_place{.x = tensor({10}), .factor = 2, .out = tensor({10})};
  EXPECT_EQ(cost(in_place).bytes, 80u);
  EXPECT_STREQ(cost(in_place).name, "scale");
}

}  // namespace
}  // namespace assay::planned
