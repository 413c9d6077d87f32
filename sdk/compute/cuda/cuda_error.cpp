#include "cuda_error.hpp"

#include <fmt/format.h>

namespace assay::cuda {

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  // The runtime keeps the error for the next call that asks; taken here, it cannot be blamed on a later launch.
  (void)cudaGetLastError();
  throw Error(status == cudaErrorMemoryAllocation ? ASSAY_OUT_OF_MEMORY : ASSAY_DEVICE_ERROR,
              fmt::format("{} on the GPU: {} ({})", what, cudaGetErrorString(status), cudaGetErrorName(status)));
}

}  // namespace assay::cuda
