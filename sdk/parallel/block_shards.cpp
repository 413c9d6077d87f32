#include "assay/parallel/block_shards.hpp"

#include <algorithm>
#include <assay/plugin.hpp>

namespace assay::parallel {

using train::ElementRange;
using train::ParameterSet;

namespace {
// In elements: 256 bytes of fp32, 128 of bf16, what the vector kernels of a device read at once.
constexpr std::int64_t alignment = 64;

constexpr std::int64_t rounded_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}
}  // namespace

BlockShards::BlockShards(const ParameterSet& set, const train::ParameterBlock& block, std::int64_t rank_count)
    : name(block.name), ranks(rank_count) {
  const std::vector<ParameterSet::Id>& groups = set.group_begins();
  const auto begins_group = [&](ParameterSet::Id id) {
    return id == set.all().size() || std::binary_search(groups.begin(), groups.end(), id);
  };
  std::int64_t end = 0;
  const auto go_on_at = [&](std::int64_t begin) {
    if (begin > end) gaps.push_back({end, begin});
    end = begin;
  };
  for (std::size_t i = 0; i < block.parameters.size(); ++i) {
    const ParameterSet::Id id = block.parameters[i];
    const bool follows = i > 0 && block.parameters[i - 1] + 1 == id;
    if (begins_group(id))
      go_on_at(rounded_up(end, alignment));
    else if (!follows)
      throw Error(ASSAY_INTERNAL, "the block '" + name + "' has '" + set.all()[id].name + "' without its group");
    const bool is_last_here = i + 1 == block.parameters.size() || block.parameters[i + 1] != id + 1;
    if (is_last_here && !begins_group(id + 1))
      throw Error(ASSAY_INTERNAL, "the block '" + name + "' ends at '" + set.all()[id].name + "', within its group");
    parameters.push_back({id, {end, end + set.all()[id].elements()}});
    end = parameters.back().elements.end;
  }
  go_on_at(rounded_up(end, alignment * ranks));
  shard_elements = end / ranks;
}

std::vector<BlockShards::Held> BlockShards::held_by(std::int64_t rank) const {
  const ElementRange shard{rank * shard_elements, (rank + 1) * shard_elements};
  std::vector<Held> held;
  for (const Placed& p : parameters) {
    const std::int64_t begin = std::max(p.elements.begin, shard.begin), end = std::min(p.elements.end, shard.end);
    if (begin < end) held.push_back({p.parameter, begin - p.elements.begin, {begin - shard.begin, end - shard.begin}});
  }
  return held;
}

}  // namespace assay::parallel
