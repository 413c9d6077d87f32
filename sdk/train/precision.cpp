#include "assay/train/precision.hpp"

#include <assay/plugin.hpp>

#include <string>

namespace assay::train {

using compute::DType;

PrecisionPolicy precision_policy(std::string_view name, std::string_view device_kind) {
  if (name == "fp32") return {};
  if (name == "bf16") return {.activation = DType::bf16};
  if (name == "bf16_pure") return {DType::bf16, DType::bf16, DType::bf16, DType::bf16};
  throw Error(ASSAY_UNSUPPORTED, "precision '" + std::string(name) + "' is not available on device '" +
                                     std::string(device_kind) + "'; there are fp32, bf16, bf16_pure");
}

}  // namespace assay::train
