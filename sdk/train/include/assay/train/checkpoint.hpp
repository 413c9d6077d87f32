// Parameters from safetensors files.
#pragma once
#include <assay/compute/backend.hpp>

#include <assay/train/parameters.hpp>
#include <assay/train/safetensors.hpp>

namespace assay::train {

// Throws assay::Error(INVALID_ARGUMENT) that lists missing, extra and misshapen tensors, all of them. Accepts F32, BF16
// and F16, converted to the parameters' dtype. Blocks.
void load_parameters(compute::Backend& backend, const ParameterSet& set, const SafetensorsReader& file);

}  // namespace assay::train
