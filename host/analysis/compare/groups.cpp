#include "compare/groups.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay::host::compare {
namespace {

// A grid as fine as the time allows: operations of one call, at most.
constexpr double kMostOperations = 4e6;
constexpr double kFinestGrid = 400;

std::vector<double> joined(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

// Rounded to whole steps of a grid, from 0.
std::vector<std::size_t> on_grid(const std::vector<double>& figures, double steps) {
  const auto [least, most] = std::minmax_element(figures.begin(), figures.end());
  std::vector<std::size_t> result;
  for (const double x : figures)
    result.push_back(*most > *least ? static_cast<std::size_t>(std::llround((x - *least) / (*most - *least) * steps))
                                    : 0);
  return result;
}

// How many ways there are to choose `count` of the figures, by their sum, as shares of all of them.
std::vector<double> ways_by_sum(const std::vector<std::size_t>& figures, std::size_t count) {
  const std::size_t largest = *std::max_element(figures.begin(), figures.end()) * count;
  std::vector<std::vector<double>> ways(count + 1, std::vector<double>(largest + 1, 0));
  ways[0][0] = 1;
  for (const std::size_t x : figures)
    for (std::size_t chosen = count; chosen > 0; --chosen)
      for (std::size_t sum = largest; sum + 1 > x; --sum) ways[chosen][sum] += ways[chosen - 1][sum - x];
  const double all = std::accumulate(ways[count].begin(), ways[count].end(), 0.0);
  for (double& way : ways[count]) way /= all;
  return std::move(ways[count]);
}

// The variance of the difference over what the spread within the sides makes of it.
double ratio_of_variances(const std::vector<bool>& is_b, double correlation) {
  const std::size_t n = is_b.size();
  const double of_b = static_cast<double>(std::count(is_b.begin(), is_b.end(), true));
  const double of_a = static_cast<double>(n) - of_b;
  double difference = 0, same_side_a = 0, same_side_b = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < n; ++k) {
      const double r = std::pow(correlation, std::abs(static_cast<double>(i) - static_cast<double>(k)));
      difference += (is_b[i] ? 1 / of_b : -1 / of_a) * (is_b[k] ? 1 / of_b : -1 / of_a) * r;
      if (is_b[i] == is_b[k]) (is_b[i] ? same_side_b : same_side_a) += r;
    }
  const double within =
      (static_cast<double>(n) - same_side_a / of_a - same_side_b / of_b) / (static_cast<double>(n) - 2);
  return difference / (within * (1 / of_a + 1 / of_b));
}

}  // namespace

double chance_of_two_states(std::size_t runs_a, std::size_t runs_b) {
  const double a = static_cast<double>(runs_a), b = static_cast<double>(runs_b);
  if (runs_a == runs_b) return 2 * std::pow(0.25, a);  // a fair coin
  constexpr int kCoins = 200;
  double largest = 0;
  for (int i = 1; i <= kCoins; ++i) {
    const double q = 0.5 * i / kCoins, p = 1 - q;
    largest = std::max(largest, std::pow(q, a) * std::pow(p, b) + std::pow(p, a) * std::pow(q, b));
  }
  return largest;
}

std::size_t fewest_runs_within_states(double error) {
  std::size_t runs = 1;
  while (!(chance_of_two_states(runs, runs) < error)) ++runs;
  return runs;
}

bool are_apart(const std::vector<double>& a, const std::vector<double>& b) {
  const auto [least_a, most_a] = std::minmax_element(a.begin(), a.end());
  const auto [least_b, most_b] = std::minmax_element(b.begin(), b.end());
  return *most_a < *least_b || *most_b < *least_a;
}

double chance_of_dealing(const std::vector<double>& a, const std::vector<double>& b) {
  // The smaller side is dealt: the other is what remains.
  const std::size_t n = a.size() + b.size(), dealt = std::min(a.size(), b.size());
  const double count = static_cast<double>(dealt);
  const double steps = std::clamp(kMostOperations / (static_cast<double>(n) * count * count), 20.0, kFinestGrid);
  const std::vector<std::size_t> figures = on_grid(joined(a, b), steps);
  const auto begin = a.size() <= b.size() ? figures.begin() : figures.begin() + static_cast<std::ptrdiff_t>(a.size());
  const double seen =
      static_cast<double>(std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(dealt), std::size_t{0}));
  const double expected = count / static_cast<double>(n) *
                          static_cast<double>(std::accumulate(figures.begin(), figures.end(), std::size_t{0}));
  const std::vector<double> ways = ways_by_sum(figures, dealt);
  constexpr double rounding = 1e-6;
  double share = 0;
  for (std::size_t sum = 0; sum < ways.size(); ++sum)
    if (std::abs(static_cast<double>(sum) - expected) >= std::abs(seen - expected) - rounding) share += ways[sum];
  return std::min(1.0, share);
}

double factor_of_order(const std::vector<bool>& is_b) {
  double largest = 1;
  for (const double correlation : {0.5, 0.7, 0.8, 0.9, 0.95})
    largest = std::max(largest, ratio_of_variances(is_b, correlation));
  return std::sqrt(largest);
}

}  // namespace assay::host::compare
