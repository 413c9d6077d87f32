// Decides which rank owns which matrices where the optimizer updates whole ones (train/muon.hpp). This file knows only
// numbers: no tensors, no communication.
//
// Each matrix has one owner. Making it orthogonal is most of the update, so the matrices go, the most expensive first,
// to the rank with the least work so far. All else is updated by elements. The embedding and the head are cut into
// equal parts. The short rest (norms) goes to the owner of what lies before it, so that it needs no separate message.
#pragma once
#include <assay/train/element_range.hpp>
#include <assay/train/muon.hpp>
#include <assay/train/parameters.hpp>
#include <cstdint>
#include <vector>

namespace assay::parallel {

class MatrixShares {
 public:
  // A range of the arena that one rank owns, within one bucket. It begins and ends at a line of the optimizer's.
  struct Piece {
    train::ElementRange range;
    std::int32_t owner = 0;
    std::int32_t last_shape = no_matrix;  // of its matrices, the one that is last in shapes()
    bool has_matrices() const { return last_shape != no_matrix; }
  };
  static constexpr std::int32_t no_matrix = -1;

  // `buckets` cover the arena in ascending order, and end where groups of parameters do.
  MatrixShares(const train::ParameterSet& set, const std::vector<train::ElementRange>& buckets, std::int32_t ranks);

  // The pieces of a bucket ascend, and together they cover it.
  const std::vector<Piece>& pieces(std::size_t bucket) const { return pieces_[bucket]; }
  std::size_t buckets() const { return pieces_.size(); }
  // The shapes of all ranks' matrices, ascending. Every rank updates its matrices in this order.
  const std::vector<train::MatrixShape>& shapes() const { return shapes_; }
  // The pieces of one rank, in ascending order. None: it owns nothing.
  std::vector<train::ElementRange> owned_by(std::int32_t rank) const;
  // The most operations of Newton's and Schulz's steps that a rank has, over an equal share of all; 1 where there are
  // none.
  double imbalance() const;

 private:
  std::vector<std::vector<Piece>> pieces_;  // by bucket
  std::vector<train::MatrixShape> shapes_;
  std::vector<double> operations_;  // by rank
};

}  // namespace assay::parallel
