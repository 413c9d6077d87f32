// What rounding errors of a gradient are in proportion to, where the gradient itself is nearly zero.
#pragma once
#include <assay/verification/path_check.hpp>
#include <vector>

namespace assay::verification {

// By sample, a root mean square: a gradient is nearly zero because its terms cancel, as those of queries and keys do
// where there is one key, and the errors are those of the terms. These are read off the gradients of other parameters
// that are made of terms as large.
std::vector<double> gradient_scales(const std::vector<BlockDifference>& differences,
                                    const train::ParameterSet& parameters, const PathTolerance& tolerance);

}  // namespace assay::verification
