#include "placed_order.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

namespace assay::train {

PlacedOrder::PlacedOrder(const PlacementProblem& problem, const std::vector<bool>& only_own)
    : problem_(problem), only_own_(only_own), ranks_(problem.lives.size() + 1, -1), offsets_(problem.lives.size()) {
  for (const PlacementProblem::Life& life : problem.lives) largest_ = std::max(largest_, life.bytes);
  for (const BufferPlan::Taken& t : problem.reserved) largest_ = std::max(largest_, t.bytes);
}

void PlacedOrder::place(std::vector<Id> order) {
  order_ = std::move(order);
  slots_.clear(), firsts_.clear(), lasts_.clear();
  for (const BufferPlan::Taken& t : problem_.reserved) {
    slots_.push_back({t.offset, t.offset + t.bytes, problem_.lives.size()});
    firsts_.push_back(t.first), lasts_.push_back(t.last);
  }
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const Id id = order_[i];
    ranks_[id] = static_cast<std::ptrdiff_t>(i);
    offsets_[id] = lowest_offset(id, 0);
    insert({offsets_[id], end_of(id), id}, problem_.lives[id].first, problem_.lives[id].last);
  }
}

void PlacedOrder::place_first(std::size_t index) {
  const auto moved = order_.begin() + static_cast<std::ptrdiff_t>(index);
  std::rotate(order_.begin(), moved, moved + 1);
  for (std::size_t i = 0; i <= index; ++i) ranks_[order_[i]] = static_cast<std::ptrdiff_t>(i);
  std::vector<Move> moves;
  std::size_t old_offset_of_first = 0;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    // Lives that came before it in the old order were placed without regard to its old place.
    if (i == index + 1) moves.front().old_offset = old_offset_of_first;
    const Id id = order_[i];
    const std::size_t from = i > 0 ? lowest_after(id, moves) : 0;
    if (from == stays) continue;
    const std::size_t before = offsets_[id], now = lowest_offset(id, from);
    if (now == before && i > 0) continue;
    const PlacementProblem::Life& life = problem_.lives[id];
    moves.push_back({life.first, life.last, before, now, now + life.bytes});
    if (i == 0) old_offset_of_first = before, moves.front().old_offset = now;
    if (now == before) continue;
    erase(id);
    offsets_[id] = now;
    insert({now, end_of(id), id}, life.first, life.last);
  }
}

// One lies where it did unless something new lies there, or something below it is gone: what frees room above it frees
// none below. It then lies no lower than where it did, or than where it would reach into the room that is free.
std::size_t PlacedOrder::lowest_after(Id id, const std::vector<Move>& moves) const {
  const PlacementProblem::Life& life = problem_.lives[id];
  const std::size_t offset = offsets_[id], end = end_of(id);
  std::size_t lowest = stays;
  for (const Move& move : moves) {
    if (life.last < move.first || move.last < life.first) continue;
    if (move.old_offset != move.offset && move.old_offset < offset)
      lowest = std::min(lowest, move.old_offset - std::min(move.old_offset, life.bytes - BufferPlan::alignment));
    else if (move.offset < end && offset < move.end)
      lowest = std::min(lowest, offset);
  }
  return lowest;
}

// Beside those that come before it in the order.
std::size_t PlacedOrder::lowest_offset(Id id, std::size_t from) const {
  constexpr std::size_t block = 64;
  using Word = std::uint64_t;
  static_assert(std::endian::native == std::endian::little);
  const PlacementProblem::Life& life = problem_.lives[id];
  std::size_t offset = problem_.on_one_side(std::max(from, only_own_[id] ? problem_.own_begin() : 0), life.bytes);
  std::array<std::uint8_t, block> meets{};  // 1: lives at the same time
  for (std::size_t begin = first_beyond(offset); begin < slots_.size(); begin += block) {
    const std::size_t count = std::min(block, slots_.size() - begin);
    const int *firsts = &firsts_[begin], *lasts = &lasts_[begin];
    // Compilers make vector instructions of this loop.
    for (std::size_t i = 0; i < count; ++i)
      meets[i] = static_cast<std::uint8_t>(static_cast<int>(firsts[i] <= life.last) &
                                           static_cast<int>(life.first <= lasts[i]));
    std::fill(meets.begin() + static_cast<std::ptrdiff_t>(count), meets.end(), std::uint8_t{0});
    for (std::size_t at = 0; at < count; at += sizeof(Word)) {
      Word word;
      std::memcpy(&word, &meets[at], sizeof word);
      for (; word != 0; word &= word - 1) {
        const Slot& other = slots_[begin + at + static_cast<std::size_t>(std::countr_zero(word)) / 8];
        if (other.offset >= offset + life.bytes) return offset;
        if (other.end > offset && ranks_[other.id] < ranks_[id])
          offset = problem_.on_one_side(PlacementProblem::rounded_up(other.end), life.bytes);
      }
    }
  }
  return offset;
}

// Returns the first slot that may end beyond the offset.
std::size_t PlacedOrder::first_beyond(std::size_t offset) const {
  if (offset <= largest_) return 0;
  return static_cast<std::size_t>(std::lower_bound(slots_.begin(), slots_.end(), offset - largest_, is_below) -
                                  slots_.begin());
}

void PlacedOrder::insert(const Slot& slot, int first, int last) {
  const auto at = std::upper_bound(slots_.begin(), slots_.end(), slot,
                                   [](const Slot& a, const Slot& b) { return a.offset < b.offset; });
  const auto place = at - slots_.begin();
  slots_.insert(at, slot);
  firsts_.insert(firsts_.begin() + place, first);
  lasts_.insert(lasts_.begin() + place, last);
}

void PlacedOrder::erase(Id id) {
  const auto not_below = std::lower_bound(slots_.begin(), slots_.end(), offsets_[id], is_below);
  const auto at = std::find_if(not_below, slots_.end(), [id](const Slot& slot) { return slot.id == id; });
  const auto place = at - slots_.begin();
  slots_.erase(at);
  firsts_.erase(firsts_.begin() + place);
  lasts_.erase(lasts_.begin() + place);
}

std::size_t PlacedOrder::total() const {
  std::size_t total = problem_.own_begin();
  for (const BufferPlan::Taken& t : problem_.reserved) total = std::max(total, t.offset + t.bytes);
  for (const Id id : order_) total = std::max(total, end_of(id));
  return total;
}

std::size_t PlacedOrder::highest() const {
  const auto highest =
      std::max_element(order_.begin(), order_.end(), [&](Id a, Id b) { return end_of(a) < end_of(b); });
  return static_cast<std::size_t>(highest - order_.begin());
}

}  // namespace assay::train
