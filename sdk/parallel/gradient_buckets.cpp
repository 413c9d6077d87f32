#include "assay/parallel/gradient_buckets.hpp"

#include <algorithm>
#include <string>

namespace assay::parallel {
namespace {

std::size_t width_of(const train::ParameterSet& set) { return compute::size_of(set.policy().gradient); }

std::size_t bytes_of(const train::ParameterSet& set, std::int64_t elements) {
  return static_cast<std::size_t>(elements) * width_of(set);
}

// Returns how many bytes the next bucket should have when the buckets so far hold `before` of `total` bytes.
std::size_t wanted_bytes(const BucketOptions& options, std::size_t total, std::size_t before) {
  if (before == 0) return options.first_bytes;
  const std::size_t least = std::min(options.last_bytes, options.bytes);
  return std::clamp((total - before) / 2, least, options.bytes);
}

std::vector<train::ElementRange> by_group(const train::ParameterSet& set, const std::vector<train::ElementRange>& own,
                                          const BucketOptions& options) {
  std::size_t total = bytes_of(set, set.arena_elements()), before = 0;
  for (const train::ElementRange& range : own) total -= bytes_of(set, range.elements());
  const std::vector<train::ParameterSet::Id>& groups = set.group_begins();
  std::vector<train::ElementRange> buckets;
  std::int64_t begin = 0;
  auto next_own = own.begin();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const bool last = g + 1 == groups.size();
    const std::int64_t end = set.elements_before(last ? set.all().size() : groups[g + 1]);
    if (next_own != own.end() && end > next_own->begin) {
      begin = end;
      if (end == next_own->end) ++next_own;
      continue;
    }
    const bool ends_run = last || (next_own != own.end() && end == next_own->begin);
    if (!ends_run && bytes_of(set, end - begin) < wanted_bytes(options, total, before)) continue;
    buckets.push_back({begin, end});
    before += bytes_of(set, end - begin);
    begin = end;
  }
  if (next_own != own.end())
    throw Error(ASSAY_INTERNAL, "what one rank has of the gradients is not given by whole groups in ascending order");
  return buckets;
}

std::vector<train::ElementRange> by_multiple(const train::ParameterSet& set, const BucketOptions& options) {
  const std::int64_t total = set.arena_elements();
  if (total % options.multiple != 0)
    throw Error(ASSAY_INVALID_ARGUMENT, "an arena of " + std::to_string(total) +
                                            " elements cannot be cut into buckets of multiples of " +
                                            std::to_string(options.multiple) + "; pad it first");
  const auto elements_of = [&](std::size_t bytes) {
    const auto n = static_cast<std::int64_t>(bytes / width_of(set));
    return std::max(n / options.multiple, std::int64_t{1}) * options.multiple;
  };
  std::vector<train::ElementRange> buckets;
  for (std::int64_t begin = 0; begin < total; begin = buckets.back().end) {
    const std::size_t wanted = wanted_bytes(options, bytes_of(set, total), bytes_of(set, begin));
    buckets.push_back({begin, std::min(total, begin + elements_of(wanted))});
  }
  return buckets;
}

}  // namespace

BucketOptions bucket_options(std::size_t bytes, std::size_t last_bytes, std::int64_t multiple) {
  BucketOptions options{.bytes = bytes, .last_bytes = last_bytes == 0 ? bytes : last_bytes, .multiple = multiple};
  options.first_bytes = std::min(options.first_bytes, bytes);
  return options;
}

std::vector<train::ElementRange> plan_buckets(const train::ParameterSet& set, const BucketOptions& options) {
  return options.multiple == 0 ? by_group(set, {}, options) : by_multiple(set, options);
}

std::vector<train::ElementRange> plan_shared_buckets(const train::ParameterSet& set,
                                                     const std::vector<train::ElementRange>& own,
                                                     const BucketOptions& options) {
  return by_group(set, own, options);
}

std::vector<train::ElementRange> parameter_ranges(const train::ParameterSet& set) {
  std::vector<train::ElementRange> ranges;
  for (const train::Parameter& p : set.all()) ranges.push_back({p.offset, p.offset + p.elements()});
  return ranges;
}

std::vector<std::int64_t> begins_of(const std::vector<train::ElementRange>& pieces) {
  std::vector<std::int64_t> begins;
  for (const train::ElementRange& piece : pieces) begins.push_back(piece.begin);
  return begins;
}

}  // namespace assay::parallel
