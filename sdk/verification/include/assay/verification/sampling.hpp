// Verifications look at samples: tensors on the host, whole or in evenly spread runs (compute::spread_spans).
#pragma once
#include <assay/compute/inspector.hpp>
#include <assay/train/parameters.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::verification {

// What one set of samples may take of the host's memory, in elements: 64 MiB.
inline constexpr std::int64_t sample_budget = std::int64_t{1} << 24;

// Up to `most` elements of a contiguous tensor, in their order. Blocks.
std::vector<float> sample(compute::Backend& backend, const compute::Tensor& t, std::int64_t most = sample_budget);

// How many elements of this parameter to look at, if `budget` elements of the set may be. Small parameters count whole.
std::int64_t sampled_elements(const train::ParameterSet& set, train::ParameterSet::Id id,
                              std::int64_t budget = sample_budget);
std::string share_text(double share);  // "all elements", "3.1% of the elements, evenly spread"

// |found - expected| / max(|expected|, scale) in the Euclidean norm: compute::Difference. Infinite where a number is
// not finite, or the lengths differ.
double relative_difference(const std::vector<float>& found, const std::vector<float>& expected, double scale = 0);

// A hash of all bits of a contiguous tensor, the same wherever the bits are the same. Blocks.
std::uint64_t hash_of(compute::Backend& backend, const compute::Tensor& t);

}  // namespace assay::verification
