// A sketch summarises many numbers for a verification: for each piece of an arena one weighted sum over all its
// elements, in fp64. It is linear, so the mean of sketches is the sketch of the mean: ranks can compare gradients of
// any size by exchanging a few KiB. Weights differ by position and do not repeat within a piece of any usual length, so
// a missing, swapped, moved, scaled or added element shows; every element counts.
#pragma once
#include <assay/compute/backend.hpp>
#include <assay/compute/inspector.hpp>
#include <assay/train/parameters.hpp>
#include <cstdint>
#include <vector>

namespace assay::verification {

// The pieces in which an arena is looked at, in ascending order: every parameter, cut at `cuts` (in any order) and, as
// far as `most` pieces allow, into parts of equal size. Between two cuts the first and the last part are short: an
// error at an end weighs more there. No piece holds elements of two parameters. Gaps between groups, and the padding,
// are in none.
std::vector<train::ElementRange> sketch_pieces(const train::ParameterSet& set, std::vector<std::int64_t> cuts,
                                               std::size_t most);

// The sketches of the pieces of an arena (fp32, bf16, fp16), made where it lies. Blocks.
std::vector<compute::WeightedSum> sketch_of(compute::Backend& backend, const compute::Tensor& arena,
                                            const std::vector<train::ElementRange>& pieces);
// Of pieces of an arena that lie in another tensor, each from its element `place` on.
struct SketchedPiece {
  train::ElementRange of_arena;
  std::int64_t place = 0;
};
std::vector<compute::WeightedSum> sketch_of(compute::Backend& backend, const compute::Tensor& tensor,
                                            const std::vector<SketchedPiece>& pieces);

}  // namespace assay::verification
