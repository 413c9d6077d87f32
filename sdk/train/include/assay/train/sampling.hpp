// Samples are what verifications look at: a part of each tensor, on the host.
#pragma once
#include <assay/train/parameters.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::train {

using Samples = std::vector<std::vector<float>>;  // by parameter

// Up to `sample_elements` from each end of a contiguous tensor: enough to tell, small enough to keep. Blocks.
inline constexpr std::int64_t sample_elements = 4096;
std::vector<float> sample(compute::Backend& backend, const compute::Tensor& t);

Samples sample_values(compute::Backend& backend, const ParameterSet& set);
Samples sample_gradients(compute::Backend& backend, const ParameterSet& set);

// |a - b| / |b| in the Euclidean norm; 0 when both are zero.
double relative_difference(const std::vector<float>& a, const std::vector<float>& b);

// A hash of all bits of a contiguous tensor, the same wherever the bits are the same. Blocks.
std::uint64_t hash_of(compute::Backend& backend, const compute::Tensor& t);

// Formats a figure for a verification's text.
std::string number(double x, const char* printf_format = "%.3g");

}  // namespace assay::train
