// What ran on the GPU, from CUPTI's activity records. CUPTI is opened when the first trace begins: without one, neither
// the library is needed nor a launch slower.
//
// Kernels of a captured graph come one by one, even if the graph was made before the trace began (seen with CUDA 13 on
// replays of such graphs). Two things must be avoided: an empty trace before the capture, after which nothing is
// recorded any more, and graph-level records, which replace those of the kernels.
#pragma once
#include <assay/profiling.h>

#include <cstdint>

namespace assay::cuda {

// One trace a process: CUPTI's callbacks carry no pointer of ours. All throw assay::Error.
void kernel_trace_begin();
void kernel_trace_end();
std::uint64_t kernel_trace_count();
void kernel_trace_get(std::uint64_t index, assay_traced_work* out);

}  // namespace assay::cuda
