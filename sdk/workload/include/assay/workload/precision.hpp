// A PrecisionPolicy says which dtype each tensor of a training step has. Every workload takes its dtypes from here.
#pragma once
#include <assay/compute/backend.hpp>

#include <array>
#include <string_view>

namespace assay::workload {

struct PrecisionPolicy {
  compute::DType parameter = compute::DType::f32;   // the weights the optimizer updates
  compute::DType gradient = compute::DType::f32;    // gradients by parameters
  compute::DType state = compute::DType::f32;       // optimizer state
  compute::DType activation = compute::DType::f32;  // activations, their gradients, inputs of matrix products
  compute::ProductMath product_math = compute::ProductMath::exact;
  // The products of a model's blocks by activations and by their gradients take their inputs in 8 bits (e4m3), each row
  // with a scale from its largest magnitude. Products for gradients by weights do too, with one scale for both inputs,
  // or they stay as `activation` states.
  bool eight_bit_products = false;
  bool eight_bit_weight_gradients = false;
  bool loss_scaling = false;  // dynamic, for gradients that fp16 activations would flush to zero
  // Matrix products read a copy of the weights in the activation's dtype, kept up to date by the optimizer.
  bool compute_copy() const { return parameter != activation; }
};

// Parameters of kernels are fp32: what is larger is finite in double alone.
inline constexpr double largest_fp32 = 3.4e38;

//   fp32       everything fp32
//   tf32       as fp32, with the inputs of matrix products rounded to tf32
//   bf16       fp32 weights and optimizer state; bf16 activations, products and gradients by parameters. As autocast
//              of a framework, where the product that makes a gradient writes bf16 too, before it is widened.
//   fp16       fp32 weights, gradients and state; fp16 activations and products; dynamic loss scaling
//   bf16_pure  everything bf16
//   fp8        as bf16, with eight_bit_products and eight_bit_weight_gradients; of workloads that say that they have it
//   fp8_dw_bf16  the same, but for eight_bit_weight_gradients
// tf32 and fp16 are unsupported on the CPU. It has fp8 with the same numbers, multiplied in fp32: for looking at
// errors, not at times. Statistics, losses and accumulations are fp32 in every policy.
inline constexpr std::array<const char*, 5> precision_names{"fp32", "tf32", "bf16", "fp16", "bf16_pure"};
inline constexpr std::array<const char*, 7> precision_names_with_fp8{"fp32",      "tf32", "bf16",       "fp16",
                                                                     "bf16_pure", "fp8",  "fp8_dw_bf16"};

// What matrix products are done in, which are nearly all of a step's operations.
constexpr assay_arithmetic arithmetic_of(const PrecisionPolicy& policy) {
  if (policy.eight_bit_products) return ASSAY_ARITHMETIC_FP8;
  switch (policy.activation) {
    case compute::DType::bf16: return ASSAY_ARITHMETIC_BF16;
    case compute::DType::f16: return ASSAY_ARITHMETIC_FP16;
    case compute::DType::f32:
      return policy.product_math == compute::ProductMath::tf32 ? ASSAY_ARITHMETIC_TF32 : ASSAY_ARITHMETIC_FP32;
    default: return ASSAY_ARITHMETIC_UNSTATED;
  }
}

PrecisionPolicy precision_policy(std::string_view name, std::string_view device_kind);  // throws assay::Error

}  // namespace assay::workload
