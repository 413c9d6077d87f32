// Which dtype each thing of a training step has. Every workload takes its dtypes from here.
#pragma once
#include <assay/compute/tensor.hpp>

#include <array>
#include <string_view>

namespace assay::train {

struct PrecisionPolicy {
  compute::DType parameter = compute::DType::f32;   // the weights the optimizer updates
  compute::DType gradient = compute::DType::f32;    // gradients by parameters
  compute::DType state = compute::DType::f32;       // optimizer state
  compute::DType activation = compute::DType::f32;  // activations, their gradients, inputs of matrix products
  // Matrix products read a copy of the weights in the activation's dtype, kept up to date by the optimizer.
  bool compute_copy() const { return parameter != activation; }
};

// fp32 | bf16 (fp32 weights, gradients and state, bf16 activations and products, as autocast) | bf16_pure (all bf16).
// tf32 and fp16 are named here because every experiment file may use them; a backend that lacks them answers
// unsupported. Statistics, losses and accumulations are fp32 in every policy.
inline constexpr std::array<const char*, 5> precision_names{"fp32", "tf32", "bf16", "fp16", "bf16_pure"};

PrecisionPolicy precision_policy(std::string_view name, std::string_view device_kind);  // throws assay::Error

}  // namespace assay::train
