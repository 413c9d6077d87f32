// How the machine's memory is divided among its processors.
#pragma once
#include <cstdint>

namespace assay::host::telemetry {

// The NUMA nodes that have a processor which this process may use; 1 where the kernel does not say.
std::int32_t cpu_node_count();

}  // namespace assay::host::telemetry
