// Parameters from safetensors files.
#pragma once
#include <assay/compute/backend.hpp>

#include <assay/train/parameters.hpp>
#include <assay/train/safetensors.hpp>
#include <functional>
#include <string>
#include <vector>

namespace assay::train {

// How a file names the parameters of a set and lays them out, if not by their names and unchanged.
struct FileLayout {
  std::function<std::string(const std::string&)> name_of;  // by the parameter's name in the set
  // The set's order of a parameter's elements, from the file's.
  std::function<std::vector<float>(const Parameter&, std::vector<float>)> rearranged;
  std::function<bool(const std::string&)> is_left_out;  // what a file may hold beside the parameters
};

// Throws assay::Error(INVALID_ARGUMENT) that names the first missing, misshapen and extra tensors, and how many more
// there are. Accepts F32, BF16 and F16, converted to the parameters' dtype. Blocks.
void load_parameters(compute::Backend& backend, const ParameterSet& set, const SafetensorsReader& file);
void load_parameters(compute::Backend& backend, const ParameterSet& set, const SafetensorsReader& file,
                     const FileLayout& layout);

}  // namespace assay::train
