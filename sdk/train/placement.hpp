// Where the buffers of a plan lie best: lives without names and tensors, and the search.
#pragma once
#include <assay/train/buffer_plan.hpp>

#include <cstddef>
#include <vector>

namespace assay::train {

struct PlacementProblem {
  struct Life {
    std::size_t bytes;  // a multiple of the alignment; 0: takes no place
    int first, last;
  };
  std::vector<Life> lives;
  // By ascending offset. Those of one moment do not overlap, or the search may end with a worse placement.
  std::vector<BufferPlan::Taken> reserved;
  std::size_t borrowed = 0;  // bytes at the beginning of the arena; nothing crosses their end

  std::size_t own_begin() const { return rounded_up(borrowed); }
  using Id = std::size_t;  // of a life

  bool is_alive(Id id, int moment) const { return lives[id].first <= moment && moment <= lives[id].last; }
  static std::size_t rounded_up(std::size_t bytes) {
    return (bytes + BufferPlan::alignment - 1) / BufferPlan::alignment * BufferPlan::alignment;
  }
  // Where so many bytes lie that would lie there: nothing crosses the end of what is borrowed.
  std::size_t on_one_side(std::size_t offset, std::size_t bytes) const {
    return offset < borrowed && offset + bytes > borrowed ? own_begin() : offset;
  }
  // The lowest offset from `from` on where the life fits beside what is `taken`, by ascending offset.
  std::size_t lowest_offset(Id id, const std::vector<BufferPlan::Taken>& taken, std::size_t from) const;
};

// The moment at which most is alive, and how much.
struct FullestMoment {
  int moment = 0;
  std::size_t bytes = 0;
};
FullestMoment fullest_moment(const PlacementProblem& problem, bool with_reserved);

struct Placement {
  std::vector<std::size_t> offsets;  // by life
  std::size_t total = 0;             // borrowed memory included
};
Placement best_placement(const PlacementProblem& problem);

}  // namespace assay::train
