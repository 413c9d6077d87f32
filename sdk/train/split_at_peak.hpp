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
// How many of each size make the largest sum that is at most `capacity`; of many sizes that do not go together nearly
// the largest.
std::vector<std::size_t> fullest_counts(const std::vector<SizeClass>& sizes, std::size_t capacity);

struct PeakSplit {
  // Where the large ones lie that end with the peak, as logits: what follows it at once has their place.
  enum class Ending { anywhere, in_own_memory };

  std::vector<PlacementProblem::Id> order;  // in which it is to be placed
  std::vector<bool> only_own;               // by life: not in the borrowed memory
  std::size_t least;                        // no split of this kind needs less in all
};
// `peak`: the fullest moment; `all`: the lives that take a place.
PeakSplit split_at_peak(const PlacementProblem& problem, int peak, const std::vector<PlacementProblem::Id>& all,
                        PeakSplit::Ending ending);

}  // namespace assay::train
