#include "shards.hpp"

#include <algorithm>
#include <assay/train/gradient_buckets.hpp>
#include <cassert>

namespace sharded_optimizer {

Variant variant_of(std::string_view name) {
  const auto found = std::find(variant_names.begin(), variant_names.end(), name);
  assert(found != variant_names.end());
  return static_cast<Variant>(found - variant_names.begin());
}

std::vector<ElementRange> owned_ranges(Variant variant, const std::vector<ElementRange>& buckets,
                                       std::int64_t arena_elements, std::int32_t rank, std::int32_t ranks) {
  const ElementRange arena{0, arena_elements};
  if (variant == Variant::baseline) return {arena};
  if (variant == Variant::broadcast) return {assay::train::shard_of(arena, rank, ranks)};
  std::vector<ElementRange> owned;
  owned.reserve(buckets.size());
  for (const ElementRange& bucket : buckets) owned.push_back(assay::train::shard_of(bucket, rank, ranks));
  return owned;
}

}  // namespace sharded_optimizer
