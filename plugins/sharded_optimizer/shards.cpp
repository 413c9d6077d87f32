#include "shards.hpp"

#include <assay/parallel/gradient_buckets.hpp>

namespace sharded_optimizer {

std::vector<ElementRange> owned_ranges(Variant variant, const std::vector<ElementRange>& buckets,
                                       std::int64_t arena_elements, std::int32_t rank, std::int32_t ranks) {
  const ElementRange arena{0, arena_elements};
  if (variant == Variant::baseline) return {arena};
  if (variant == Variant::broadcast) return {assay::parallel::shard_of(arena, rank, ranks)};
  std::vector<ElementRange> owned;
  owned.reserve(buckets.size());
  for (const ElementRange& bucket : buckets) owned.push_back(assay::parallel::shard_of(bucket, rank, ranks));
  return owned;
}

}  // namespace sharded_optimizer
