// The probes of the CPU (assay.probe/1): each tries one thing, and writes what came of it under the keys of a device's
// file.
#pragma once
#include <assay/probe.h>

#include "common/status_guard.hpp"

namespace assay::cpu {

// What assay_device_api.get_extension gives for the id; null for others. `guard` is the device table's own.
const void* probe_extension(const char* id, compute::StatusGuard guard) noexcept;

}  // namespace assay::cpu
