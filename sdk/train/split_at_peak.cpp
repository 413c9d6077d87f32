#include "split_at_peak.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

namespace assay::train {
namespace {

using Id = PlacementProblem::Id;

constexpr std::size_t small_part = 512;  // of the largest buffer: what is smaller finds a gap anyway
constexpr std::size_t ending_part = 4;   // of the largest buffer: what is larger matters when it ends
constexpr int soon = 2;                  // moments
constexpr std::size_t most_sums = 1 << 13, most_sums_of_all = 1 << 21;  // 16 MiB

// Of sums that lie close together the smallest and the largest.
std::vector<std::size_t> thinned_out(const std::vector<std::size_t>& sums, std::size_t capacity, std::size_t most) {
  const std::size_t step = 2 * (capacity / most + 1);
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (i == 0 || i + 1 == sums.size() || sums[i] / step != sums[i - 1] / step || sums[i] / step != sums[i + 1] / step)
      kept.push_back(sums[i]);
  return kept;
}

}  // namespace

FullestCounts fullest_counts(const std::vector<SizeClass>& sizes, std::size_t capacity) {
  // Each size some times at once, by powers of two: any number of it is a sum of these.
  struct Choice {
    std::size_t size, times;
    std::vector<std::size_t> sums_before;
  };
  std::vector<Choice> choices;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    for (std::size_t left = sizes[i].count, times = 1; left > 0; left -= times, times *= 2)
      choices.push_back({i, times = std::min(times, left), {}});
  FullestCounts fullest{std::vector<std::size_t>(sizes.size(), 0)};
  const std::size_t most =
      std::clamp<std::size_t>(most_sums_of_all / std::max<std::size_t>(1, choices.size()), 16, most_sums);
  std::vector<std::size_t> sums{0};
  for (Choice& choice : choices) {
    const std::size_t bytes = sizes[choice.size].bytes * choice.times;
    std::vector<std::size_t> with, both;
    for (const std::size_t sum : sums)
      if (sum + bytes <= capacity) with.push_back(sum + bytes);
    std::set_union(sums.begin(), sums.end(), with.begin(), with.end(), std::back_inserter(both));
    if (both.size() > most) both = thinned_out(both, capacity, most), fullest.is_exact = false;
    choice.sums_before = std::exchange(sums, std::move(both));
  }
  std::size_t sum = sums.back();
  for (auto choice = choices.rbegin(); choice != choices.rend(); ++choice) {
    if (std::binary_search(choice->sums_before.begin(), choice->sums_before.end(), sum)) continue;
    fullest.counts[choice->size] += choice->times;
    sum -= sizes[choice->size].bytes * choice->times;
  }
  return fullest;
}

PeakSplit split_at_peak(const PlacementProblem& problem, int peak, const std::vector<Id>& all,
                        PeakSplit::Ending ending) {
  const auto& lives = problem.lives;
  std::size_t capacity = problem.borrowed, largest = 0;
  for (const BufferPlan::Taken& t : problem.reserved)
    if (t.first <= peak && peak <= t.last)
      capacity -=
          std::min(capacity, std::min(problem.borrowed, t.offset + t.bytes) - std::min(problem.borrowed, t.offset));
  std::vector<Id> others;
  for (const Id id : all) {
    if (problem.is_alive(id, peak))
      largest = std::max(largest, lives[id].bytes);
    else
      others.push_back(id);
  }
  const auto is_small = [&](Id id) { return lives[id].bytes < largest / small_part; };
  // For some no gap in the borrowed memory is free over their whole life.
  const auto is_own = [&](Id id) {
    const bool ends = lives[id].last <= peak + soon && lives[id].bytes >= largest / ending_part;
    return (ending == PeakSplit::Ending::in_own_memory && ends) ||
           problem.lowest_offset(id, problem.reserved, 0) >= problem.own_begin();
  };
  PeakSplit split{{}, std::vector<bool>(lives.size(), false), 0};
  std::vector<Id> own, borrowed, small, small_own;
  std::map<std::size_t, std::vector<Id>> to_choose;  // by size
  std::size_t own_bytes = 0, small_bytes = 0;
  for (const Id id : all) {
    if (!problem.is_alive(id, peak)) continue;
    if (is_own(id))
      (is_small(id) ? small_own : own).push_back(id), own_bytes += lives[id].bytes;
    else if (is_small(id))
      small.push_back(id), small_bytes += lives[id].bytes;
    else
      to_choose[lives[id].bytes].push_back(id);
  }
  const auto by_end = [&](Id a, Id b) { return lives[a].last < lives[b].last; };
  std::vector<SizeClass> sizes;
  for (auto& [bytes, ids] : to_choose) {
    std::stable_sort(ids.begin(), ids.end(), by_end);
    sizes.push_back({bytes, ids.size()});
  }
  // Of equal ones those that end first: what is borrowed is taken back from its beginning on.
  const auto [counts, is_exact] = fullest_counts(sizes, capacity);
  std::size_t chosen_bytes = 0, i = 0;
  for (const auto& [bytes, ids] : to_choose) {
    const auto middle = ids.begin() + static_cast<std::ptrdiff_t>(counts[i]);
    borrowed.insert(borrowed.end(), ids.begin(), middle);
    own.insert(own.end(), middle, ids.end());
    chosen_bytes += bytes * counts[i];
    own_bytes += bytes * (ids.size() - counts[i++]);
  }
  const std::size_t filled = is_exact ? std::min(capacity, chosen_bytes + small_bytes) : capacity;
  const std::size_t at_peak = chosen_bytes + own_bytes + small_bytes;
  split.least = problem.own_begin() + at_peak - std::min(at_peak, filled);
  for (const Id id : own) split.only_own[id] = true;

  // In its own memory what lives longest lies lowest: a stack.
  const auto by_end_reversed = [&](Id a, Id b) { return lives[a].last > lives[b].last; };
  std::stable_sort(borrowed.begin(), borrowed.end(), by_end);
  std::stable_sort(own.begin(), own.end(), by_end_reversed);
  std::stable_sort(small.begin(), small.end(), by_end_reversed);
  std::stable_sort(others.begin(), others.end(), [&](Id a, Id b) { return lives[a].bytes > lives[b].bytes; });
  for (const std::vector<Id>* ids : {&small_own, &borrowed, &own, &small, &others})
    split.order.insert(split.order.end(), ids->begin(), ids->end());
  return split;
}

}  // namespace assay::train
