// Whether a device computes the same bits whenever it computes the same again.
#pragma once
#include <assay/compute/backend.hpp>
#include <string_view>

namespace assay::train {

// A CPU's kernels add in an order that depends on nothing but shapes. A GPU's add in none where attention is tiled:
// its backward in 16 bits.
inline bool repeats_to_the_bit(const compute::Backend& backend) { return std::string_view(backend.kind()) == "cpu"; }

}  // namespace assay::train
