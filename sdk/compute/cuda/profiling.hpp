// The extensions of assay/profiling.h for a GPU: the range of an external profiler, and the kernel trace.
#pragma once
#include <assay/profiling.h>
#include <cuda_runtime_api.h>

#include "common/status_guard.hpp"

namespace assay::cuda {

// What assay_device_api.get_extension gives for these ids; null for others. `guard` is the device table's own.
const void* profiling_extension(const char* id, compute::StatusGuard guard) noexcept;

// A kernel with a recognisable name that keeps the stream busy for a millisecond.
inline constexpr const char* trace_anchor_name = "assay_trace_anchor";
void launch_trace_anchor(cudaStream_t stream);

}  // namespace assay::cuda
