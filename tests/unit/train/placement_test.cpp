// How the borrowed memory is filled at the fullest moment of a step.
#include "placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "placed_order.hpp"
#include "split_at_peak.hpp"

namespace assay::train {
namespace {

std::size_t sum_of(const std::vector<SizeClass>& sizes, const std::vector<std::size_t>& counts) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) sum += sizes[i].bytes * counts[i];
  return sum;
}

// By trying all.
std::size_t fullest_by_trying(const std::vector<SizeClass>& sizes, std::size_t capacity) {
  std::size_t best = 0;
  const std::function<void(std::size_t, std::size_t)> go = [&](std::size_t i, std::size_t sum) {
    best = std::max(best, sum);
    if (i == sizes.size()) return;
    for (std::size_t n = 0; n <= sizes[i].count && sum + n * sizes[i].bytes <= capacity; ++n)
      go(i + 1, sum + n * sizes[i].bytes);
  };
  go(0, 0);
  return best;
}

TEST(FullestCounts, MakeTheLargestSumThereIs) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<SizeClass> sizes;
    for (std::size_t i = 0; i < 1 + random() % 4; ++i) sizes.push_back({1 + random() % 300, random() % 7});
    const std::size_t capacity = random() % 1500;
    const auto [counts, is_exact] = fullest_counts(sizes, capacity);
    EXPECT_TRUE(is_exact);
    ASSERT_EQ(counts.size(), sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) EXPECT_LE(counts[i], sizes[i].count);
    EXPECT_EQ(sum_of(sizes, counts), fullest_by_trying(sizes, capacity)) << "round " << round;
  }
}

// More sums than are kept: nearly the largest, and never more than there is room for.
TEST(FullestCounts, OfManySizesComeNear) {
  std::mt19937 random(5);
  std::vector<SizeClass> sizes;
  std::size_t all = 0;
  for (int i = 0; i < 60; ++i) {
    sizes.push_back({(std::size_t{1} << 20) + random() % (1 << 22), 1 + random() % 30});
    all += sizes.back().bytes * sizes.back().count;
  }
  const FullestCounts fullest = fullest_counts(sizes, all / 3);
  EXPECT_FALSE(fullest.is_exact);
  const std::size_t found = sum_of(sizes, fullest.counts);
  EXPECT_LE(found, all / 3);
  EXPECT_GT(static_cast<double>(found), 0.999 * static_cast<double>(all) / 3);
}

constexpr std::size_t unit = BufferPlan::alignment;

// Six units are borrowed. The largest first would leave one of them empty, and need ten more.
TEST(Placement, FillsWhatIsBorrowedAtThePeak) {
  PlacementProblem problem;
  problem.borrowed = 6 * unit;
  problem.lives = {{4 * unit, 0, 2}, {3 * unit, 0, 3}, {3 * unit, 0, 1}, {5 * unit, 1, 2}};
  const Placement placement = best_placement(problem);
  EXPECT_EQ(placement.total, (6 + 9) * unit);
}

// What is reserved need not be of whole units: pieces of one unit together take no more than that.
TEST(Placement, OddPiecesTakeWhatTheyAre) {
  PlacementProblem problem;
  problem.borrowed = 65 * unit;
  for (std::size_t i = 0; i < 64; ++i) problem.reserved.push_back({4 * i, 4, 0, 9});
  problem.lives = {{40 * unit, 0, 9}, {24 * unit, 0, 9}, {30 * unit, 0, 9}, {30 * unit, 0, 9}};
  EXPECT_EQ(best_placement(problem).total, (65 + 60) * unit);
}

// Sixteen nearly equal buffers, and one that goes with four of them exactly: sums that lie close together matter.
TEST(Placement, AnExactFitIsFoundAmongManySums) {
  PlacementProblem problem;
  problem.borrowed = std::size_t{1} << 34;
  std::size_t four_smallest = 0, all = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    problem.lives.push_back({problem.borrowed / 8 + (i * i + 1) * unit, 0, 9});
    if (i < 4) four_smallest += problem.lives.back().bytes;
    all += problem.lives.back().bytes;
  }
  problem.lives.push_back({problem.borrowed - four_smallest, 0, 9});
  EXPECT_EQ(best_placement(problem).total, all + problem.lives.back().bytes);
}

// One place after the other by trying: at each offset that is free over the whole life.
std::vector<std::size_t> placed_by_trying(const PlacementProblem& problem,
                                          const std::vector<PlacementProblem::Id>& order,
                                          const std::vector<bool>& only_own) {
  std::vector<BufferPlan::Taken> taken = problem.reserved;
  std::vector<std::size_t> offsets(problem.lives.size());
  for (const PlacementProblem::Id id : order) {
    const PlacementProblem::Life& life = problem.lives[id];
    std::size_t offset = only_own[id] ? problem.own_begin() : 0;
    const auto is_in_the_way = [&](const BufferPlan::Taken& t) {
      return t.first <= life.last && life.first <= t.last && t.offset < offset + life.bytes &&
             offset < t.offset + t.bytes;
    };
    const auto crosses = [&] { return offset < problem.borrowed && offset + life.bytes > problem.borrowed; };
    while (crosses() || std::any_of(taken.begin(), taken.end(), is_in_the_way)) offset += unit;
    offsets[id] = offset;
    taken.push_back({offset, life.bytes, life.first, life.last});
  }
  return offsets;
}

// It places again only some of them, and their places are those of placing all.
TEST(PlacedOrder, PlacesAgainAsItPlacesAll) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    PlacementProblem problem;
    problem.borrowed = random() % 40 * unit + random() % 2 * 7;
    for (std::size_t at = 0; at < problem.borrowed; at += random() % 2000) {
      const int first = static_cast<int>(random() % 30);
      const std::size_t bytes = std::min<std::size_t>(random() % 900 + 1, problem.borrowed - at);
      problem.reserved.push_back({at, bytes, first, first + static_cast<int>(random() % 10)});
      at += bytes;
    }
    std::vector<PlacementProblem::Id> order;
    std::vector<bool> only_own;
    for (std::size_t id = 0; id < 90; ++id) {
      const int first = static_cast<int>(random() % 30);
      problem.lives.push_back(
          {(1 + random() % (id % 9 == 0 ? 40 : 6)) * unit, first, first + static_cast<int>(random() % 12)});
      order.insert(order.begin() + static_cast<std::ptrdiff_t>(random() % (order.size() + 1)), id);
      only_own.push_back(random() % 4 == 0);
    }
    PlacedOrder placed(problem, only_own);
    placed.place(order);
    for (int again = 0; again < 12; ++again) {
      ASSERT_EQ(placed.offsets(), placed_by_trying(problem, placed.order(), only_own)) << round << ", " << again;
      placed.place_first(again % 2 == 0 ? placed.highest() : random() % order.size());
    }
  }
}

// A forward and a backward pass: saved tensors of each layer, a large head that ends with the peak, and a gradient
// arena that is taken back from its beginning on.
TEST(Placement, OfAStepComesNearTheLeast) {
  for (const std::size_t tokens : {64u, 96u, 1000u, 4096u}) {
    PlacementProblem problem;
    constexpr int layers = 12, moments = 10 * layers;
    std::size_t arena = 0;
    for (int layer = layers - 1; layer >= 0; --layer)
      for (const std::size_t rows : {2304u, 3072u, 768u}) {
        const std::size_t bytes = PlacementProblem::rounded_up(rows * 768 * 4);
        problem.reserved.push_back({arena, bytes, moments - layer * 5, moments});
        arena += bytes;
      }
    problem.borrowed = arena;
    const auto add = [&](std::size_t width, int first, int last) {
      problem.lives.push_back({PlacementProblem::rounded_up(tokens * width * 2), first, last});
    };
    for (int layer = 0; layer < layers; ++layer) {
      const int forward = 5 * layer, backward = moments - 5 * layer;
      for (const std::size_t width : {768u, 2304u, 768u, 6144u}) add(width, forward, backward);
      add(3072, forward + 2, forward + 3), add(3072, backward - 3, backward - 2), add(768, backward - 2, backward);
    }
    add(10000, moments / 2 - 1, moments / 2 + 1);
    const Placement placement = best_placement(problem);
    const auto most = static_cast<double>(fullest_moment(problem, true).bytes);
    EXPECT_GE(placement.total, fullest_moment(problem, true).bytes);
    EXPECT_LE(static_cast<double>(placement.total), std::max(1.02 * most, 1.001 * static_cast<double>(arena)))
        << tokens;
    for (std::size_t i = 0; i < problem.lives.size(); ++i) {
      const auto& a = problem.lives[i];
      const std::size_t begin = placement.offsets[i], end = begin + a.bytes;
      EXPECT_TRUE(begin >= arena || end <= arena);
      const auto meet = [&](std::size_t offset, std::size_t bytes, int first, int last) {
        return first <= a.last && a.first <= last && begin < offset + bytes && offset < end;
      };
      for (const auto& t : problem.reserved) EXPECT_FALSE(meet(t.offset, t.bytes, t.first, t.last));
      for (std::size_t j = 0; j < i; ++j)
        EXPECT_FALSE(meet(placement.offsets[j], problem.lives[j].bytes, problem.lives[j].first, problem.lives[j].last));
    }
  }
}

}  // namespace
}  // namespace assay::train
