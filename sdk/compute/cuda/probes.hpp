// The probes of a GPU (assay.probe/1): each tries one thing, and writes what came of it under the keys of a device's
// file. They take a second or two each, on a GPU that does nothing else meanwhile.
#pragma once
#include <assay/probe.h>
#include <cuda_runtime_api.h>

#include <cstddef>

#include "common/status_guard.hpp"
#include "cuda_handles.hpp"

namespace assay::cuda {

// What assay_device_api.get_extension gives for the id; null for others. `guard` is the device table's own.
const void* probe_extension(const char* id, compute::StatusGuard guard) noexcept;

// One file each.
void probe_graphs(assay_device&, const assay_probe_sink&);     // [graph]: launches, also after idling, and the first
void probe_events(assay_device&, const assay_probe_sink&);     // [event]: resolution, and what one costs in a graph
void probe_telemetry(assay_device&, const assay_probe_sink&);  // [telemetry]: NVML's calls, periods and delay
void probe_copies(assay_device&, const assay_probe_sink&);     // [rate]: copies within, to and from the GPU
void probe_products(assay_device&, const assay_probe_sink&);   // [rate]: bf16 by the data; [determinism]
void probe_fp8(assay_device&, const assay_probe_sink&);        // [fp8]: the forms that cuBLASLt takes
void probe_attention(assay_device&, const assay_probe_sink&);  // [attention]: the shapes and masks that cuDNN takes

inline DeviceMemory probe_memory(std::size_t bytes) {
  void* address = nullptr;
  check(cudaMalloc(&address, bytes), "allocate memory for a probe");
  return DeviceMemory(address);
}

// A kernel of one thread that does nothing.
void launch_nothing(cudaStream_t stream);

}  // namespace assay::cuda
