// The extension of assay/telemetry.h for the CPU: how much of its processors' time this process takes.
#pragma once
#include "common/status_guard.hpp"

namespace assay::cpu {

// What assay_device_api.get_extension gives for this id; null for others. `guard` is the device table's own.
const void* telemetry_extension(const char* id, compute::StatusGuard guard) noexcept;

}  // namespace assay::cpu
