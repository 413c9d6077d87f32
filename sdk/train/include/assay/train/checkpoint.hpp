// Parameters from and to safetensors files.
#pragma once
#include <assay/compute/backend.hpp>

#include <assay/train/parameters.hpp>
#include <assay/train/safetensors.hpp>

namespace assay::train {

// Throws assay::Error(INVALID_ARGUMENT) that lists missing, extra and misshapen tensors, all of them. Accepts F32, BF16
// and F16, converted to the parameters' dtype. Blocks.
void load_parameters(compute::Backend& backend, const ParameterSet& set, const SafetensorsReader& file);

// A tensor's elements (fp32, bf16 or fp16) on the host as fp32; converted there, so no device memory is taken. Blocks.
std::vector<float> download_f32(compute::Backend& backend, const compute::Tensor& t);
// The way back, into a tensor of fp32 or bf16. Blocks.
void upload_f32(compute::Backend& backend, const compute::Tensor& t, const std::vector<float>& values);

}  // namespace assay::train
