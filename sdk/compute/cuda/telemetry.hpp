// The extension of assay/telemetry.h for a GPU.
#pragma once
#include "common/status_guard.hpp"

namespace assay::cuda {

// What assay_device_api.get_extension gives for this id; null for others. `guard` is the device table's own.
const void* telemetry_extension(const char* id, compute::StatusGuard guard) noexcept;

}  // namespace assay::cuda
