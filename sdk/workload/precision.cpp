#include "assay/workload/precision.hpp"

#include <assay/plugin.hpp>

#include <string>

namespace assay::workload {

using compute::DType;

PrecisionPolicy precision_policy(std::string_view name, std::string_view device_kind) {
  if (name == "fp32") return {};
  if (name == "bf16") return {.gradient = DType::bf16, .activation = DType::bf16};
  if (name == "bf16_pure") return {DType::bf16, DType::bf16, DType::bf16, DType::bf16};
  if (name == "fp8" || name == "fp8_dw_bf16")
    return {.gradient = DType::bf16,
            .activation = DType::bf16,
            .eight_bit_products = true,
            .eight_bit_weight_gradients = name == "fp8"};
  if (device_kind == "cuda") {
    if (name == "tf32") return {.product_math = compute::ProductMath::tf32};
    if (name == "fp16") return {.activation = DType::f16, .loss_scaling = true};
  }
  throw Error(ASSAY_UNSUPPORTED, "precision '" + std::string(name) + "' is not available on device '" +
                                     std::string(device_kind) + "'; there are fp32, bf16 and bf16_pure");
}

}  // namespace assay::workload
