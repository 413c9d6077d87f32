#include "profiling.hpp"

#include <cuda_profiler_api.h>

#include <cstring>

#include "cuda_error.hpp"
#include "device_context.hpp"
#include "kernel_trace.hpp"

namespace assay::cuda {
namespace {

compute::StatusGuard profiling_guard = nullptr;

template <class F>
assay_status guarded(F&& f) noexcept {
  return compute::guarded(profiling_guard, f);
}

constexpr assay_profiler profiler{
    sizeof(assay_profiler),
    [](assay_device* device) noexcept {
      return guarded([&] {
        need_context(*device);
        check(cudaProfilerStart(), "start the external profiler's range");
      });
    },
    [](assay_device*) noexcept {
      return guarded([] { check(cudaProfilerStop(), "end the external profiler's range"); });
    },
};

constexpr assay_kernel_trace kernel_trace{
    sizeof(assay_kernel_trace),
    [](assay_device* device) noexcept {
      return guarded([&] {
        need_context(*device);
        kernel_trace_begin();
      });
    },
    [](assay_device*, void* stream) noexcept {
      return guarded([&] { launch_trace_anchor(static_cast<cudaStream_t>(stream)); });
    },
    [](assay_device*) noexcept { return guarded([] { kernel_trace_end(); }); },
    [](assay_device*, uint64_t* out) noexcept { return guarded([&] { *out = kernel_trace_count(); }); },
    [](assay_device*, uint64_t index, assay_traced_work* out) noexcept {
      return guarded([&] { kernel_trace_get(index, out); });
    },
};

}  // namespace

const void* profiling_extension(const char* id, compute::StatusGuard guard) noexcept {
  profiling_guard = guard;
  if (std::strcmp(id, ASSAY_EXT_PROFILER) == 0) return &profiler;
  if (std::strcmp(id, ASSAY_EXT_KERNEL_TRACE) == 0) return &kernel_trace;
  return nullptr;
}

}  // namespace assay::cuda
