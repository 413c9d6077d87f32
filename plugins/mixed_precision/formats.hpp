// Number formats by their names in experiments, and the parameter by which the workloads that train choose theirs.
#pragma once
#include <assay/plugin.hpp>

#include <assay/compute/backend.hpp>
#include <assay/workload/precision.hpp>
#include <optional>

namespace mixed_precision {

using StoredAs = std::optional<assay::compute::DType>;  // of a tensor that there may not be
inline constexpr auto formats = assay::choices<StoredAs>({{"fp32", assay::compute::DType::f32},
                                                          {"bf16", assay::compute::DType::bf16},
                                                          {"fp16", assay::compute::DType::f16},
                                                          {"none", std::nullopt}});
inline constexpr auto precision_params =
    assay::table(assay::Param::choice("precision", "fp32", assay::workload::precision_names)
                     .help("bf16: fp32 weights and state, bf16 gradients, activations and products; bf16_pure: all "
                           "bf16; tf32, fp16: cuda"));

}  // namespace mixed_precision
