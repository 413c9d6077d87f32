// Cases to shards: those of one shape together, as many as a job has time for.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiment/experiment.hpp"

namespace assay::host::batch {

// The machines that a case needs. Cases of different shapes never share a job.
struct Shape {
  std::int64_t nodes = 1, ranks_per_node = 1;
  std::string node;  // "n1+n2": these and no others; "": any
  // The run.seed of cases that are bound to nodes. Rounds of a node check are separate jobs, so that the nodes take
  // turns, and what disturbs one of them for a while disturbs one round of it.
  std::uint64_t round = 0;
  auto operator<=>(const Shape&) const = default;
  std::string text() const;  // "2 nodes x 8 ranks", "1 node (n3) x 1 rank"
};

// `gpus_per_node`: of the site, for [run] ranks = "all".
Shape shape_of(const experiment::Case& c, std::int64_t gpus_per_node);

struct PackedCase {
  std::int64_t index = 0;
  double budget_s = 0;
  std::int64_t unfinished_before = 0;
};

struct PackedShard {
  std::vector<PackedCase> cases;
  double budget_s() const;
};

// An array of jobs, which one call of sbatch submits.
struct PackedArray {
  Shape shape;
  std::vector<PackedShard> shards;
  bool is_canary = false;
  double longest_s() const;  // of its shards
};

struct PackingInput {
  Shape shape;
  PackedCase of_case;
};
struct PackingRules {
  double capacity_s = 0;            // of one job
  std::int64_t array_size_max = 1;  // jobs of one array
  bool canary = false;              // the cheapest case gets a separate array, which comes first
  std::int64_t parallel = 1;        // jobs of one array that run at once
  std::int64_t hosts = 0;           // that all jobs share; 0: a scheduler finds nodes for each
};
// Jobs of the shape that run at once.
std::int64_t jobs_at_once(const Shape& shape, std::int64_t parallel, std::int64_t hosts);

// Cases are spread over as many jobs as may run at once, as long as each has least_shard_s of them.
inline constexpr double least_shard_s = 300;
// In the order of the cases within a shape; shapes in the order in which they first appear. A case above the capacity
// has a separate shard: whoever submits refuses it first.
std::vector<PackedArray> pack(const std::vector<PackingInput>& cases, const PackingRules& rules);

}  // namespace assay::host::batch
