// A mesh of two axes: ranks that follow one another share a model; such replicas of the model train on batches of their
// own, and average their gradients.
#pragma once
#include <assay/plugin.hpp>

#include <cstdint>
#include <vector>

namespace assay::mesh {

inline constexpr auto replica_params =
    table(Param::integer("replicas", 1)
              .at_least(1)
              .at_most(1 << 20)
              .help("copies of the model, a divisor of the number of ranks: run.ranks / replicas ranks that follow one "
                    "another share each; replicas have different batches and average their gradients"));

// Where a rank of the case is.
struct Axes {
  std::int32_t place = 0, ranks = 1;       // in its replica, among so many
  std::int32_t replica = 0, replicas = 1;  // which one, of so many

  bool has_replicas() const { return replicas > 1; }
  // The case's ranks of this replica by their places; those with this place by their replicas. Without replicas: empty,
  // which stands for all.
  std::vector<std::int32_t> of_replica() const;
  std::vector<std::int32_t> of_place() const;
};

// Of a case with replica_params. INVALID_ARGUMENT for replicas that do not divide the ranks.
Axes axes_of(const Case& c);
Axes axes_of(std::int32_t rank, std::int32_t ranks, std::int64_t replicas);

}  // namespace assay::mesh
