// The kinds of device memory, as numbered in assay/abi.h.
#pragma once
#include <cstddef>

namespace assay::host {

constexpr std::size_t memory_kind_count = 7;
// "parameters", "gradients", "optimizer_state", "activations", "workspace", "communication", "data"
const char* memory_kind_name(std::size_t kind);

}  // namespace assay::host
