#include "cuda_error.hpp"

#include <fmt/format.h>
#include <assay/plugin.hpp>

#include <stdexcept>

namespace assay::cuda {

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  // The runtime keeps the error for the next call that asks; taken here, it cannot be blamed on a later launch.
  (void)cudaGetLastError();
  throw Error(status == cudaErrorMemoryAllocation ? ASSAY_OUT_OF_MEMORY : ASSAY_DEVICE_ERROR,
              fmt::format("{} on the GPU: {} ({})", what, cudaGetErrorString(status), cudaGetErrorName(status)));
}

void refuse_count(const char* operation, std::int64_t count, const char* of_what_served) {
  throw Error(ASSAY_UNSUPPORTED,
              fmt::format("{} on the GPU: {} {}: use a smaller batch", operation, count, of_what_served));
}

void misused(const char* what) { throw std::logic_error(what); }

}  // namespace assay::cuda
