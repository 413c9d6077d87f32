#include "assay/train/buffer_plan.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <utility>

#include <assay/plugin.hpp>

#include <assay/train/unbound_memory.hpp>

#include "remembered_placements.hpp"

namespace assay::train {
namespace {

constexpr int no_life = -1;
constexpr int most_in_vain = 12;  // placements in a row that are no better
// Placing n buffers looks at up to n^2 / 2 pairs of them. So many pairs, a fraction of a second, are looked at in all;
// of more buffers than `most_by_pairs`, as of a model of thousands of layers, none.
constexpr std::size_t most_pairs = 400'000'000, most_by_pairs = 10'000;

std::size_t rounded_up(std::size_t bytes) {
  return (bytes + BufferPlan::alignment - 1) / BufferPlan::alignment * BufferPlan::alignment;
}

}  // namespace

BufferPlan::Id BufferPlan::add(std::string name, compute::DType dtype, std::initializer_list<std::int64_t> dims,
                               Use use) {
  compute::Tensor tensor(nullptr, dtype, dims);
  tensor.data = unbound_place(UnboundMemory::buffers, unbound_end_);
  const std::size_t bytes = rounded_up(tensor.bytes());
  unbound_end_ += std::max(bytes, alignment);
  buffers_.push_back({std::move(name), tensor, no_life, no_life, bytes, 0, use});
  return buffers_.size() - 1;
}

BufferPlan::Id BufferPlan::add(std::string name, compute::DType dtype, std::initializer_list<std::int64_t> dims,
                               int first, int last) {
  const Id id = add(std::move(name), dtype, dims);
  set_life(id, first, last);
  return id;
}

void BufferPlan::set_life(Id id, int first, int last) {
  assert(first <= last);
  buffers_[id].first = first, buffers_[id].last = last;
}

void BufferPlan::leave_out(Id id) { buffers_[id].first = buffers_[id].last = 0, buffers_[id].bytes = 0; }

std::size_t BufferPlan::buffer_at(const void* data) const {
  const auto after = std::upper_bound(buffers_.begin(), buffers_.end(), data, [](const void* at, const Buffer& b) {
    return std::less<const void*>()(at, b.tensor.data);
  });
  if (after == buffers_.begin()) return buffers_.size();
  const Buffer& found = *(after - 1);
  const bool inside =
      std::less<const void*>()(data, static_cast<const char*>(found.tensor.data) + std::max(found.bytes, alignment));
  return inside ? static_cast<std::size_t>(after - 1 - buffers_.begin()) : buffers_.size();
}

void BufferPlan::borrow(std::size_t bytes) { borrowed_ = bytes; }

void BufferPlan::reserve(std::size_t offset, std::size_t bytes, int first, int last) {
  assert(first <= last);
  reserved_.push_back({offset, bytes, first, last});
}

BufferPlan::Placement BufferPlan::placed_in(const std::vector<Id>& order) const {
  const auto by_offset = [](const Taken& a, const Taken& b) { return a.offset < b.offset; };
  std::vector<Taken> taken = reserved_;
  std::stable_sort(taken.begin(), taken.end(), by_offset);
  Placement placement{std::vector<std::size_t>(buffers_.size()), own_begin()};
  for (const Taken& t : taken) placement.total = std::max(placement.total, t.offset + t.bytes);
  for (const Id id : order) {
    const Buffer& buffer = buffers_[id];
    const auto on_one_side = [&](std::size_t at) {
      return at < borrowed_ && at + buffer.bytes > borrowed_ ? own_begin() : at;
    };
    std::size_t offset = on_one_side(0);
    for (const Taken& other : taken) {
      if (other.last < buffer.first || buffer.last < other.first) continue;
      if (other.offset >= offset + buffer.bytes) break;
      offset = std::max(offset, on_one_side(rounded_up(other.offset + other.bytes)));
    }
    placement.offsets[id] = offset;
    placement.total = std::max(placement.total, offset + buffer.bytes);
    const Taken placed{offset, buffer.bytes, buffer.first, buffer.last};
    taken.insert(std::upper_bound(taken.begin(), taken.end(), placed, by_offset), placed);
  }
  return placement;
}

// One after the other in the order of the step, each at the lowest gap that is free now. Borrows nothing.
BufferPlan::Placement BufferPlan::placed_by_time(std::vector<Id> order) const {
  std::stable_sort(order.begin(), order.end(), [&](Id a, Id b) { return buffers_[a].first < buffers_[b].first; });
  Placement placement{std::vector<std::size_t>(buffers_.size()), own_begin()};
  for (const Taken& t : reserved_) placement.total = std::max(placement.total, rounded_up(t.offset + t.bytes));
  std::map<std::size_t, std::size_t> gaps;  // below the total: offset to end
  const auto ends_later = [&](Id a, Id b) { return buffers_[a].last > buffers_[b].last; };
  std::priority_queue<Id, std::vector<Id>, decltype(ends_later)> alive(ends_later);
  const auto release = [&](std::size_t offset, std::size_t end) {
    auto gap = gaps.emplace(offset, end).first;
    if (const auto next = std::next(gap); next != gaps.end() && next->first == end) {
      gap->second = next->second;
      gaps.erase(next);
    }
    if (gap == gaps.begin()) return;
    if (const auto before = std::prev(gap); before->second == offset) {
      before->second = gap->second;
      gaps.erase(gap);
    }
  };
  for (const Id id : order) {
    const Buffer& buffer = buffers_[id];
    for (; !alive.empty() && buffers_[alive.top()].last < buffer.first; alive.pop())
      release(placement.offsets[alive.top()], placement.offsets[alive.top()] + buffers_[alive.top()].bytes);
    const auto gap =
        std::find_if(gaps.begin(), gaps.end(), [&](const auto& g) { return g.second - g.first >= buffer.bytes; });
    if (gap == gaps.end()) {
      placement.offsets[id] = std::exchange(placement.total, placement.total + buffer.bytes);
    } else {
      const auto [offset, end] = *gap;
      placement.offsets[id] = offset;
      gaps.erase(gap);
      if (offset + buffer.bytes < end) gaps.emplace(offset + buffer.bytes, end);
    }
    alive.push(id);
  }
  return placement;
}

void BufferPlan::solve() {
  static RememberedPlacements remembered;
  RememberedPlacements::Key key{borrowed_, buffers_.size()};
  for (const Buffer& b : buffers_)
    key.insert(key.end(), {b.bytes, static_cast<std::uint64_t>(b.first), static_cast<std::uint64_t>(b.last)});
  for (const Taken& t : reserved_)
    key.insert(key.end(), {t.offset, t.bytes, static_cast<std::uint64_t>(t.first), static_cast<std::uint64_t>(t.last)});
  std::optional<RememberedPlacements::Placed> known = remembered.find(key);
  if (!known) {
    Placement found = best_placement();
    known = {std::move(found.offsets), found.total};
    remembered.keep(std::move(key), *known);
  }
  for (Id id = 0; id < buffers_.size(); ++id) buffers_[id].offset = known->offsets[id];
  total_ = known->total;
}

BufferPlan::Placement BufferPlan::best_placement() const {
  std::vector<Id> all;
  for (Id id = 0; id < buffers_.size(); ++id) {
    if (buffers_[id].bytes == 0) continue;
    if (buffers_[id].first == no_life)
      throw Error(ASSAY_INTERNAL, "the buffer '" + buffers_[id].name + "' of a plan has no life; expected plan_step()");
    all.push_back(id);
  }
  const auto span = [&](Id id) { return static_cast<std::size_t>(buffers_[id].last - buffers_[id].first + 1); };
  const auto bytes = [&](Id id) { return buffers_[id].bytes; };
  const auto sorted_by = [&](auto larger) {
    std::vector<Id> order = all;
    std::stable_sort(order.begin(), order.end(), [&](Id a, Id b) { return larger(a) > larger(b); });
    return order;
  };
  const std::size_t least = lower_bound_bytes();
  Placement best{{}, std::numeric_limits<std::size_t>::max()};
  std::size_t attempts = all.empty() ? 1 : std::max<std::size_t>(1, most_pairs / (all.size() * all.size()));
  if (all.size() > most_by_pairs) attempts = 0, best = placed_by_time(all);
  // The stack of saved tensors is best laid from its top, where lives end first; other steps by size.
  for (std::vector<Id> order :
       {sorted_by(bytes), sorted_by([&](Id id) { return std::pair(-buffers_[id].last, span(id)); }),
        sorted_by([&](Id id) { return std::pair(bytes(id), -buffers_[id].last); }),
        sorted_by([&](Id id) { return span(id) * bytes(id); }),
        sorted_by([&](Id id) { return -buffers_[id].first; })}) {
    // What ends highest is placed before all others, and again, as long as that helps now and then.
    for (int in_vain = 0; in_vain < most_in_vain && best.total > least && attempts > 0; ++in_vain, --attempts) {
      Placement placement = placed_in(order);
      const auto highest = std::max_element(order.begin(), order.end(), [&](Id a, Id b) {
        return placement.offsets[a] + buffers_[a].bytes < placement.offsets[b] + buffers_[b].bytes;
      });
      if (placement.total < best.total) best = std::move(placement), in_vain = 0;
      if (highest == order.end()) break;
      std::rotate(order.begin(), highest, highest + 1);
    }
  }
  return best;
}

std::size_t BufferPlan::lower_bound_bytes() const { return most_alive(true); }

std::size_t BufferPlan::peak_live_bytes() const { return most_alive(false); }

std::size_t BufferPlan::most_alive(bool with_reserved) const {
  std::vector<std::pair<int, std::int64_t>> changes;
  const auto add = [&](int first, int last, std::size_t bytes) {
    changes.emplace_back(first, static_cast<std::int64_t>(bytes));
    changes.emplace_back(last + 1, -static_cast<std::int64_t>(bytes));
  };
  for (const Buffer& b : buffers_) add(b.first, b.last, b.bytes);
  if (with_reserved)
    for (const Taken& t : reserved_) add(t.first, t.last, t.bytes);
  std::sort(changes.begin(), changes.end());  // at one moment the ends come before the beginnings
  std::int64_t alive = 0, most = 0;
  for (const auto& [moment, bytes] : changes) most = std::max(most, alive += bytes);
  return static_cast<std::size_t>(most);
}

void BufferPlan::bind(void* borrowed, void* own) {
  for (Buffer& b : buffers_) {
    b.tensor.data = is_borrowed(b.offset) ? static_cast<char*>(borrowed) + b.offset
                                          : static_cast<char*>(own) + (b.offset - own_begin());
    if (b.bytes == 0 && b.tensor.elements() > 0) b.tensor.data = nullptr;
  }
}

}  // namespace assay::train
