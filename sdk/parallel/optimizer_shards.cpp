#include "assay/parallel/optimizer_shards.hpp"

#include <assay/parallel/gradient_buckets.hpp>

namespace assay::parallel {

std::vector<train::ElementRange> owned_ranges(StateSharing sharing, const std::vector<train::ElementRange>& buckets,
                                              std::int64_t arena_elements, std::int32_t rank, std::int32_t ranks) {
  const train::ElementRange arena{0, arena_elements};
  if (sharing == StateSharing::baseline) return {arena};
  if (sharing == StateSharing::broadcast) return {shard_of(arena, rank, ranks)};
  std::vector<train::ElementRange> owned;
  owned.reserve(buckets.size());
  for (const train::ElementRange& bucket : buckets) owned.push_back(shard_of(bucket, rank, ranks));
  return owned;
}

}  // namespace assay::parallel
