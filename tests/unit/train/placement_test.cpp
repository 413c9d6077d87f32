// How the borrowed memory is filled at the fullest moment of a step.
#include "placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

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
    const std::vector<std::size_t> counts = fullest_counts(sizes, capacity);
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
  const std::size_t found = sum_of(sizes, fullest_counts(sizes, all / 3));
  EXPECT_LE(found, all / 3);
  EXPECT_GT(static_cast<double>(found), 0.999 * static_cast<double>(all) / 3);
}

constexpr std::size_t unit = BufferPlan::alignment;

// Six units are borrowed. The largest first would leave two of them empty, and need ten.
TEST(Placement, FillsWhatIsBorrowedAtThePeak) {
  PlacementProblem problem;
  problem.borrowed = problem.own_begin = 6 * unit;
  problem.lives = {{4 * unit, 0, 2}, {3 * unit, 0, 3}, {3 * unit, 0, 1}, {5 * unit, 1, 2}};
  const Placement placement = best_placement(problem);
  EXPECT_EQ(placement.total, (6 + 9) * unit);
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
    problem.borrowed = problem.own_begin = arena;
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
