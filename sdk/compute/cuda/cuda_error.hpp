// CUDA's status codes as assay::Error.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/plugin.hpp>

namespace assay::cuda {

// Throws OUT_OF_MEMORY for cudaErrorMemoryAllocation, DEVICE_ERROR for anything else that is not success, with `what`,
// the name of the error and CUDA's own words.
void check(cudaError_t status, const char* what);

// After a kernel launch: what the launch itself has to say.
inline void check_launch(const char* operation) { check(cudaGetLastError(), operation); }

}  // namespace assay::cuda
