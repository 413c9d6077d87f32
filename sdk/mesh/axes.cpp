#include "assay/mesh/axes.hpp"

#include <string>

namespace assay::mesh {

std::vector<std::int32_t> Axes::of_replica() const {
  std::vector<std::int32_t> all;
  for (std::int32_t p = 0; has_replicas() && p < ranks; ++p) all.push_back(replica * ranks + p);
  return all;
}

std::vector<std::int32_t> Axes::of_place() const {
  std::vector<std::int32_t> all;
  for (std::int32_t r = 0; has_replicas() && r < replicas; ++r) all.push_back(r * ranks + place);
  return all;
}

Axes axes_of(std::int32_t rank, std::int32_t ranks, std::int64_t replicas) {
  if (ranks % replicas != 0) {
    std::string divisors;
    for (std::int32_t d = 1; d <= ranks; ++d)
      if (ranks % d == 0) divisors += (divisors.empty() ? "" : d == ranks ? " or " : ", ") + std::to_string(d);
    throw Error(ASSAY_INVALID_ARGUMENT, "replicas " + std::to_string(replicas) + " of " + std::to_string(ranks) +
                                            (ranks == 1 ? " rank" : " ranks") +
                                            "; expected a divisor of the number of ranks, " + divisors +
                                            ", or run.ranks a multiple of " + std::to_string(replicas));
  }
  const auto share = static_cast<std::int32_t>(ranks / replicas);
  return {
      .place = rank % share, .ranks = share, .replica = rank / share, .replicas = static_cast<std::int32_t>(replicas)};
}

Axes axes_of(const Case& c) { return axes_of(c.rank(), c.rank_count(), c.get<std::int64_t>("replicas")); }

}  // namespace assay::mesh
