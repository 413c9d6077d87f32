// The lives of a problem, placed one after the other in some order, each at the lowest offset that is free over its
// whole life. A search tries orders that differ little: what one move cannot have changed stays where it is.
#pragma once
#include <cstddef>
#include <limits>
#include <vector>

#include "placement.hpp"

namespace assay::train {

class PlacedOrder {
 public:
  using Id = PlacementProblem::Id;

  // `only_own`, by life: not in the borrowed memory. Both must outlive this.
  PlacedOrder(const PlacementProblem& problem, const std::vector<bool>& only_own);

  // Places them in this order, which replaces the one before.
  void place(std::vector<Id> order);
  // Places them again, the one at `index` of the order before all others.
  void place_first(std::size_t index);

  const std::vector<Id>& order() const { return order_; }
  const std::vector<std::size_t>& offsets() const { return offsets_; }  // by life
  std::size_t total() const;                                            // borrowed memory included
  // Where the one that ends highest stands in the order; of several the first. The order is not empty.
  std::size_t highest() const;

 private:
  struct Slot {
    std::size_t offset, end;
    Id id;  // the number of lives: reserved
  };
  // A life that lies elsewhere than before, or comes earlier in the order.
  struct Move {
    int first, last;
    std::size_t old_offset, offset, end;
  };

  std::size_t end_of(Id id) const { return offsets_[id] + problem_.lives[id].bytes; }
  std::size_t lowest_offset(Id id, std::size_t from) const;
  static constexpr std::size_t stays = std::numeric_limits<std::size_t>::max();
  // From which offset on it has to be placed again after these moves; `stays` if none of them concerns it.
  std::size_t lowest_after(Id id, const std::vector<Move>& moves) const;
  static bool is_below(const Slot& slot, std::size_t offset) { return slot.offset < offset; }
  std::size_t first_beyond(std::size_t offset) const;
  void insert(const Slot& slot, int first, int last);
  void erase(Id id);

  const PlacementProblem& problem_;
  const std::vector<bool>& only_own_;
  std::size_t largest_ = 0;  // bytes of what is placed or reserved
  std::vector<Id> order_;
  std::vector<std::ptrdiff_t> ranks_;  // by life, the place in the order; of what is reserved before all
  std::vector<std::size_t> offsets_;
  // By ascending offset. Lives stand apart, so that a look for those of the same time reads nothing else.
  std::vector<Slot> slots_;

  std::vector<int> firsts_, lasts_;
};

}  // namespace assay::train
