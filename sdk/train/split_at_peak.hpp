// At the moment of a step at which most is alive: what of it lies in the borrowed memory, which is to be as full as it
// can be, and what in the plan's own.
#pragma once
#include <cstddef>
#include <vector>

#include "placement.hpp"

namespace assay::train {

struct SizeClass {
  std::size_t bytes, count;
};
// How many of each size make the largest sum that is at most `capacity`. Of many sizes that do not go together not all
// sums are kept: then it may be a smaller one, and is not exact.
struct FullestCounts {
  std::vector<std::size_t> counts;  // by size
  bool is_exact = true;
};
FullestCounts fullest_counts(const std::vector<SizeClass>& sizes, std::size_t capacity);

struct PeakSplit {
  // Where the large ones lie that end with the peak, as logits: what follows it at once has their place.
  enum class Ending { anywhere, in_own_memory };

  std::vector<PlacementProblem::Id> order;  // in which it is to be placed
  std::vector<bool> only_own;               // by life: not in the borrowed memory
  // No placement needs less in all; with Ending::in_own_memory, none that leaves those buffers in the own memory.
  std::size_t least;
};
// `peak`: the fullest moment; `all`: the lives that take a place.
PeakSplit split_at_peak(const PlacementProblem& problem, int peak, const std::vector<PlacementProblem::Id>& all,
                        PeakSplit::Ending ending);

}  // namespace assay::train
