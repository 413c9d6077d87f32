#include "placement.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <queue>
#include <utility>

#include "placed_order.hpp"
#include "split_at_peak.hpp"

namespace assay::train {
namespace {

using Id = PlacementProblem::Id;
using Taken = BufferPlan::Taken;

constexpr int most_in_vain = 12, most_in_vain_of_split = 3;  // placements in a row that are no better
constexpr double near_enough = 0.0005;                       // of the plan's own bytes, above the least
constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
// Placing n buffers looks at up to n^2 / 2 pairs of them. So many pairs, a fraction of a second, are looked at in all;
// of more buffers than `most_by_pairs`, as of a model of thousands of layers, none.
constexpr std::size_t most_pairs = 400'000'000, most_by_pairs = 10'000;
constexpr std::size_t few_attempts = 12;  // at least one for each order

// One after the other in the order of the step, each at the lowest gap that is free now. Borrows nothing.
Placement placed_by_time(const PlacementProblem& problem, std::vector<Id> order) {
  const auto& lives = problem.lives;
  std::stable_sort(order.begin(), order.end(), [&](Id a, Id b) { return lives[a].first < lives[b].first; });
  Placement placement{std::vector<std::size_t>(lives.size()), problem.own_begin()};
  for (const Taken& t : problem.reserved)
    placement.total = std::max(placement.total, PlacementProblem::rounded_up(t.offset + t.bytes));
  std::map<std::size_t, std::size_t> gaps;  // below the total: offset to end
  const auto ends_later = [&](Id a, Id b) { return lives[a].last > lives[b].last; };
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
    const PlacementProblem::Life& life = lives[id];
    for (; !alive.empty() && lives[alive.top()].last < life.first; alive.pop())
      release(placement.offsets[alive.top()], placement.offsets[alive.top()] + lives[alive.top()].bytes);
    const auto gap =
        std::find_if(gaps.begin(), gaps.end(), [&](const auto& g) { return g.second - g.first >= life.bytes; });
    if (gap == gaps.end()) {
      placement.offsets[id] = std::exchange(placement.total, placement.total + life.bytes);
    } else {
      const auto [offset, end] = *gap;
      placement.offsets[id] = offset;
      gaps.erase(gap);
      if (offset + life.bytes < end) gaps.emplace(offset + life.bytes, end);
    }
    alive.push(id);
  }
  return placement;
}

// The best placement so far.
class Search {
 public:
  Search(const PlacementProblem& problem, std::size_t buffers, std::size_t least)
      : problem_(problem),
        attempts_(buffers == 0 ? 1 : std::max<std::size_t>(1, most_pairs / (buffers * buffers))),
        least_(std::max(problem.own_begin(), least)) {
    best_.total = unlimited;
  }

  // Whether no other placement is worth its time if all of them need `total` bytes.
  bool is_near(std::size_t total) const {
    const std::size_t own = std::max(least_, total) - problem_.own_begin();
    return best_.total <= problem_.own_begin() + own + static_cast<std::size_t>(near_enough * static_cast<double>(own));
  }
  // What ends highest is placed before all others, and again, until `patience` placements in a row need as much as
  // `least_seen`, which then is what the best of them needs.
  void improve(std::vector<Id> order, const std::vector<bool>& only_own, std::size_t needed, int patience,
               std::size_t& least_seen) {
    PlacedOrder placed(problem_, only_own);
    bool is_first = true;
    for (int in_vain = 0; in_vain < patience && !is_near(needed) && attempts_ > 0; ++in_vain, --attempts_) {
      if (std::exchange(is_first, false))
        placed.place(std::move(order));
      else
        placed.place_first(placed.highest());
      const std::size_t total = placed.total();
      if (total < least_seen) least_seen = total, in_vain = 0;
      if (total < best_.total) best_ = {placed.offsets(), total};
      if (placed.order().empty()) break;
    }
  }
  bool has_few_attempts() const { return attempts_ < few_attempts; }
  Placement take() { return std::move(best_); }

 private:
  const PlacementProblem& problem_;
  Placement best_;
  std::size_t attempts_, least_;
};

}  // namespace

std::size_t PlacementProblem::lowest_offset(Id id, const std::vector<Taken>& taken, std::size_t from) const {
  const Life& life = lives[id];
  std::size_t offset = on_one_side(from, life.bytes);
  for (const Taken& other : taken) {
    if (other.last < life.first || life.last < other.first) continue;
    if (other.offset >= offset + life.bytes) break;
    offset = std::max(offset, on_one_side(rounded_up(other.offset + other.bytes), life.bytes));
  }
  return offset;
}

FullestMoment fullest_moment(const PlacementProblem& problem, bool with_reserved) {
  std::vector<std::pair<int, std::int64_t>> changes;
  const auto add = [&](int first, int last, std::size_t bytes) {
    changes.emplace_back(first, static_cast<std::int64_t>(bytes));
    changes.emplace_back(last + 1, -static_cast<std::int64_t>(bytes));
  };
  for (const PlacementProblem::Life& life : problem.lives) add(life.first, life.last, life.bytes);
  if (with_reserved)
    for (const Taken& t : problem.reserved) add(t.first, t.last, t.bytes);
  std::sort(changes.begin(), changes.end());  // at one moment the ends come before the beginnings
  std::int64_t alive = 0, most = 0;
  FullestMoment fullest;
  for (const auto& [moment, bytes] : changes)
    if (alive += bytes; alive > most) most = alive, fullest = {moment, static_cast<std::size_t>(alive)};
  return fullest;
}

Placement best_placement(const PlacementProblem& problem) {
  const auto& lives = problem.lives;
  std::vector<Id> all;
  for (Id id = 0; id < lives.size(); ++id)
    if (lives[id].bytes > 0) all.push_back(id);
  if (all.size() > most_by_pairs) return placed_by_time(problem, all);
  const FullestMoment peak = fullest_moment(problem, true);
  Search search(problem, all.size(), peak.bytes);
  std::size_t needed = unlimited;
  for (const PeakSplit::Ending ending : {PeakSplit::Ending::anywhere, PeakSplit::Ending::in_own_memory}) {
    const PeakSplit split = split_at_peak(problem, peak.moment, all, ending);
    std::size_t least_seen = unlimited;
    search.improve(split.order, split.only_own, split.least, search.has_few_attempts() ? 1 : most_in_vain_of_split,
                   least_seen);
    needed = std::min(needed, split.least);
    if (search.is_near(needed)) return search.take();
  }
  const auto span = [&](Id id) { return static_cast<std::size_t>(lives[id].last - lives[id].first + 1); };
  const auto bytes = [&](Id id) { return lives[id].bytes; };
  const auto sorted_by = [&](auto larger) {
    std::vector<Id> order = all;
    std::stable_sort(order.begin(), order.end(), [&](Id a, Id b) { return larger(a) > larger(b); });
    return order;
  };
  // The stack of saved tensors is best laid from its top, where lives end first; other steps by size.
  const std::vector<bool> anywhere(lives.size(), false);
  std::size_t least_seen = unlimited;  // of these orders alone: one of them may lead further than a split has
  for (const std::vector<Id>& order :
       {sorted_by(bytes), sorted_by([&](Id id) { return std::pair(-lives[id].last, span(id)); }),
        sorted_by([&](Id id) { return std::pair(bytes(id), -lives[id].last); }),
        sorted_by([&](Id id) { return span(id) * bytes(id); }), sorted_by([&](Id id) { return -lives[id].first; })})
    search.improve(order, anywhere, needed, most_in_vain, least_seen);
  return search.take();
}

}  // namespace assay::train
