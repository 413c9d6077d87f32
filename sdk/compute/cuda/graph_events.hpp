// The events that the host records in captured steps (assay.graph_events/1): which they are, whether graphs record them
// now, and a graph without them. An event-record node of somebody else's, NCCL's for one, is part of the work.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>

#include "common/status_guard.hpp"

namespace assay::cuda {

// What assay_device_api.get_extension gives for the id; null for others. `guard` is the device table's own.
const void* graph_events_extension(const char* id, compute::StatusGuard guard) noexcept;

// One switch for all devices of the process: a worker has one case on one device.
void let_graphs_record_events(bool on) noexcept;
bool do_graphs_record_events() noexcept;

// An event that the host has recorded while a stream was captured, until it is destroyed.
void add_captured_event(cudaEvent_t event);
void forget_captured_event(cudaEvent_t event) noexcept;

// Takes the nodes that record such events out of the graph, and returns their number. What waited for one waits for
// what it waited for. A node with edges of another kind than "when it has ended" beside it stays, and so do all nodes
// of a graph from which CUDA takes none out: one that takes memory, or has conditions.
std::size_t take_out_captured_events(cudaGraph_t graph);

}  // namespace assay::cuda
