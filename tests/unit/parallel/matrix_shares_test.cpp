#include <assay/parallel/matrix_shares.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <assay/models/decoder.hpp>
#include <assay/parallel/gradient_buckets.hpp>
#include <assay/train/optimizer.hpp>
#include <string>

namespace assay::parallel {
namespace {

using assay::models::DecoderConfig;
using assay::train::ElementRange;
using assay::train::Optimizer;
using assay::train::OptimizerConfig;
using assay::train::ParameterSet;

struct Sharing {
  std::int32_t ranks;
  std::int64_t layers, d_model, d_ff, vocabulary;
};

struct SharedMatrices {
  explicit SharedMatrices(const Sharing& of) : set(assay::workload::PrecisionPolicy{}), ranks(of.ranks) {
    DecoderConfig model;
    model.d_model = of.d_model, model.d_ff = of.d_ff, model.layers = of.layers, model.heads = 2;
    model.vocab_size = of.vocabulary;
    add_decoder_parameters(set, model);
    buckets = plan_buckets(set, {.bytes = std::size_t{1} << 18});
  }
  MatrixShares shares() const { return {set, buckets, ranks}; }
  Optimizer optimizer() const { return Optimizer(OptimizerConfig{.name = "muon"}, set); }

  ParameterSet set;
  std::vector<ElementRange> buckets;
  std::int32_t ranks;
};

class MatrixSharing : public testing::TestWithParam<Sharing> {};

TEST_P(MatrixSharing, EveryElementHasOneOwnerWithinItsBucketAndMatricesAreWhole) {
  const SharedMatrices shared(GetParam());
  const MatrixShares shares = shared.shares();
  ASSERT_EQ(shares.buckets(), shared.buckets.size());
  std::int64_t end = 0;
  for (std::size_t i = 0; i < shares.buckets(); ++i) {
    EXPECT_EQ(end, shared.buckets[i].begin);
    for (const MatrixShares::Piece& piece : shares.pieces(i)) {
      EXPECT_EQ(piece.range.begin, end);
      EXPECT_GT(piece.range.elements(), 0);
      EXPECT_GE(piece.owner, 0);
      EXPECT_LT(piece.owner, shared.ranks);
      end = piece.range.end;
    }
    EXPECT_EQ(end, shared.buckets[i].end);
  }
  EXPECT_EQ(end, shared.set.arena_elements());
  // The optimizer refuses a part of a matrix, and ranges that are not at lines.
  std::int64_t matrices = 0;
  for (std::int32_t rank = 0; rank < shared.ranks; ++rank) {
    Optimizer optimizer = shared.optimizer();
    optimizer.restrict_to(shares.owned_by(rank));
    matrices += optimizer.muon()->elements();
  }
  EXPECT_EQ(matrices, shared.optimizer().muon()->elements());
}

// Cuts at lines add nothing: there is no padding.
TEST_P(MatrixSharing, StateOfAllRanksIsTheBaselinesToTheByte) {
  const SharedMatrices shared(GetParam());
  const MatrixShares shares = shared.shares();
  std::size_t state = 0;
  for (std::int32_t rank = 0; rank < shared.ranks; ++rank) {
    Optimizer optimizer = shared.optimizer();
    optimizer.restrict_to(shares.owned_by(rank));
    // README.md's: 4 bytes for each element that it owns, and 4 more for each line that is no matrix.
    std::int64_t elements = 0;
    for (const ElementRange& owned : shares.owned_by(rank)) elements += owned.elements();
    for (const ElementRange& rest : optimizer.muon()->rest()) elements += (rest.elements() + 63) / 64 * 64;
    EXPECT_EQ(optimizer.moment_bytes(), 4 * static_cast<std::size_t>(elements)) << rank;
    state += optimizer.moment_bytes();
  }
  EXPECT_EQ(state, shared.optimizer().moment_bytes());
}

INSTANTIATE_TEST_SUITE_P(MatrixShares, MatrixSharing,
                         testing::Values(Sharing{1, 2, 128, 512, 1000}, Sharing{2, 2, 128, 512, 1000},
                                         Sharing{4, 3, 48, 80, 151}, Sharing{4, 1, 20, 36, 77},
                                         Sharing{16, 1, 64, 192, 300}),
                         [](const auto& info) {
                           return std::to_string(info.param.ranks) + "_ranks_" + std::to_string(info.param.d_model);
                         });

// Seven matrices of a layer, of which those of feed-forward cost more: the largest go first.
TEST(MatrixShares, AreBalancedByTheOperationsOfMakingThemOrthogonal) {
  EXPECT_EQ(assay::train::newton_schulz_operations(2, 3), 2 * 4 * (2 * 3 + 2));
  EXPECT_EQ(assay::train::newton_schulz_operations(3, 2), assay::train::newton_schulz_operations(2, 3));
  // Of four ranks each has as many matrices of each shape as another.
  EXPECT_DOUBLE_EQ(SharedMatrices({4, 4, 128, 512, 1000}).shares().imbalance(), 1);
  EXPECT_DOUBLE_EQ(SharedMatrices({1, 3, 128, 512, 1000}).shares().imbalance(), 1);
  // Three of 512 x 128 (cost 9/4 units) and four of 128 x 128 (3/4): 3, 2 and 2 of them are 9/4 + 3/4, ... of 39/4.
  EXPECT_NEAR(SharedMatrices({3, 1, 128, 512, 1000}).shares().imbalance(), (9.0 + 2 * 3) * 3 / (3 * 9 + 4 * 3), 1e-12);
  // More ranks than matrices: one has the largest of seven.
  EXPECT_NEAR(SharedMatrices({16, 1, 128, 512, 1000}).shares().imbalance(), 9.0 * 16 / (3 * 9 + 4 * 3), 1e-12);
}

// A piece is sent when the last of its shapes has been updated, on every rank in one order.
TEST(MatrixShares, PiecesKnowTheLastOfTheirShapes) {
  const SharedMatrices shared({2, 2, 128, 512, 1000});
  const MatrixShares shares = shared.shares();
  ASSERT_EQ(shares.shapes().size(), 3u);  // 128 x 128, 128 x 512, 512 x 128
  EXPECT_TRUE(std::is_sorted(shares.shapes().begin(), shares.shapes().end()));
  for (std::size_t i = 0; i < shares.buckets(); ++i)
    for (const MatrixShares::Piece& piece : shares.pieces(i)) {
      Optimizer optimizer = shared.optimizer();
      optimizer.restrict_to({piece.range});
      const auto& batches = optimizer.muon()->batches();
      ASSERT_EQ(piece.has_matrices(), !batches.empty());
      if (batches.empty()) continue;
      const assay::train::MatrixShape last{batches.back().rows, batches.back().columns};
      EXPECT_EQ(shares.shapes()[static_cast<std::size_t>(piece.last_shape)], last);
    }
}

// What is no matrix is shared in equal parts, and what is short goes with its neighbour.
TEST(MatrixShares, OfTheRestAreEqualPartsOrGoWithTheirNeighbours) {
  const SharedMatrices shared({4, 2, 128, 512, 1000});
  const MatrixShares shares = shared.shares();
  std::vector<std::int64_t> without_matrices(4);
  for (std::size_t i = 0; i < shares.buckets(); ++i)
    for (const MatrixShares::Piece& piece : shares.pieces(i))
      if (!piece.has_matrices()) without_matrices[static_cast<std::size_t>(piece.owner)] += piece.range.elements();
  const auto [least, most] = std::minmax_element(without_matrices.begin(), without_matrices.end());
  EXPECT_LE(*most - *least, 128 + 2 * 64);  // the last norm, and a line of the embedding and one of the head
  EXPECT_GE(*least, 2 * 1000 * 128 / 4 - 2 * 64);
}

}  // namespace
}  // namespace assay::parallel
