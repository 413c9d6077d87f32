#include "batch/packing.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace assay::host::batch {

std::string Shape::text() const {
  return fmt::format("{} node{}{} x {} rank{}", nodes, nodes == 1 ? "" : "s", node.empty() ? "" : " (" + node + ")",
                     ranks_per_node, ranks_per_node == 1 ? "" : "s");
}

Shape shape_of(const experiment::Case& c, std::int64_t gpus_per_node) {
  Shape shape{c.cluster.nodes, c.cluster.ranks_per_node, c.cluster.node.value_or(""), 0};
  if (c.cluster.node) shape.round = c.run.seed;
  if (shape.ranks_per_node != experiment::ranks_per_node_auto) return shape;
  shape.ranks_per_node = 1;
  if (c.run.ranks == experiment::ranks_all) shape.ranks_per_node = std::max<std::int64_t>(gpus_per_node, 1);
  if (c.run.ranks > 0) shape.ranks_per_node = (c.run.ranks + shape.nodes - 1) / shape.nodes;
  return shape;
}

double PackedShard::budget_s() const {
  double sum = 0;
  for (const PackedCase& c : cases) sum += c.budget_s;
  return sum;
}

std::int64_t jobs_at_once(const Shape& shape, std::int64_t parallel, std::int64_t hosts) {
  if (hosts > 0) parallel = std::min(parallel, hosts / std::max<std::int64_t>(shape.nodes, 1));
  return std::max<std::int64_t>(parallel, 1);
}

double PackedArray::longest_s() const {
  double longest = 0;
  for (const PackedShard& shard : shards) longest = std::max(longest, shard.budget_s());
  return longest;
}

namespace {

// The cheapest by nodes and time; the first of equal ones.
std::size_t cheapest(const std::vector<PackingInput>& cases) {
  const auto cost = [](const PackingInput& c) { return static_cast<double>(c.shape.nodes) * c.of_case.budget_s; };
  return static_cast<std::size_t>(
      std::min_element(cases.begin(), cases.end(),
                       [&](const PackingInput& a, const PackingInput& b) { return cost(a) < cost(b); }) -
      cases.begin());
}

std::vector<PackedShard> fill_shards(const Shape& shape, const std::vector<PackedCase>& cases,
                                     const PackingRules& rules) {
  double total_s = 0;
  for (const PackedCase& c : cases) total_s += c.budget_s;
  const double share_s = total_s / static_cast<double>(jobs_at_once(shape, rules.parallel, rules.hosts));
  const double capacity_s = std::min(std::max(share_s, least_shard_s), rules.capacity_s);
  std::vector<PackedShard> shards;
  double filled_s = 0;
  for (const PackedCase& c : cases) {
    if (shards.empty() || filled_s + c.budget_s > capacity_s) {
      shards.emplace_back();
      filled_s = 0;
    }
    shards.back().cases.push_back(c);
    filled_s += c.budget_s;
  }
  return shards;
}

}  // namespace

std::vector<PackedArray> pack(const std::vector<PackingInput>& cases, const PackingRules& rules) {
  std::vector<PackedArray> arrays;
  std::size_t canary = cases.size();
  // A single case is its own canary.
  if (rules.canary && cases.size() > 1) {
    canary = cheapest(cases);
    arrays.push_back({cases[canary].shape, {PackedShard{{cases[canary].of_case}}}, true});
  }
  std::vector<std::pair<Shape, std::vector<PackedCase>>> by_shape;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (i == canary) continue;
    auto found =
        std::find_if(by_shape.begin(), by_shape.end(), [&](const auto& e) { return e.first == cases[i].shape; });
    if (found == by_shape.end()) found = by_shape.insert(by_shape.end(), {cases[i].shape, {}});
    found->second.push_back(cases[i].of_case);
  }
  for (const auto& [shape, of_shape] : by_shape) {
    std::vector<PackedShard> shards = fill_shards(shape, of_shape, rules);
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(rules.array_size_max, 1));
    for (std::size_t begin = 0; begin < shards.size(); begin += size) {
      const std::size_t end = std::min(begin + size, shards.size());
      arrays.push_back(
          {shape,
           {shards.begin() + static_cast<std::ptrdiff_t>(begin), shards.begin() + static_cast<std::ptrdiff_t>(end)},
           false});
    }
  }
  return arrays;
}

}  // namespace assay::host::batch
