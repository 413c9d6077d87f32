// CUDA's status codes as assay::Error, and what else kernel files throw: from here, so that no .cu file, which is
// parsed three times, has to include what an exception is made of.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

namespace assay::cuda {

// Throws OUT_OF_MEMORY for cudaErrorMemoryAllocation, DEVICE_ERROR for anything else that is not success, with `what`,
// the name of the error and CUDA's own words.
void check(cudaError_t status, const char* what);

// After a kernel launch: what the launch itself has to say.
inline void check_launch(const char* operation) { check(cudaGetLastError(), operation); }

// Throws UNSUPPORTED: "<operation> on the GPU: <count> <of_what_served>: use a smaller batch".
[[noreturn]] void refuse_count(const char* operation, std::int64_t count, const char* of_what_served);

// Throws std::logic_error: a caller in this library asked for what it should have refused.
[[noreturn]] void misused(const char* what);

}  // namespace assay::cuda
