// The fills of a captured graph.
#pragma once
#include <cuda_runtime_api.h>

namespace assay::cuda {

// Puts a kernel in the place of each memset node of up to 1 MiB: cuBLASLt clears counters of a few hundred bytes before
// some products, and a memset node keeps the device idle for longer than a kernel does. What a node waits for, and what
// waits for it, stays as it was. A node with edges of another kind than "when it has ended" is left alone. The kernels
// have the priority of steps, whichever lane the fill was on.
void fill_by_kernels(cudaGraph_t graph);

}  // namespace assay::cuda
