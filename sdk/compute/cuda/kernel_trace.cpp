#include "kernel_trace.hpp"

#include <cuda_runtime_api.h>
#include <cupti.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <assay/plugin.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cuda_error.hpp"
#include "profiling.hpp"

namespace assay::cuda {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{8} << 20;  // 40,000 kernels or so
constexpr std::size_t activity_alignment = 8;               // what CUPTI asks for

constexpr CUpti_ActivityKind traced_kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                               CUPTI_ACTIVITY_KIND_MEMSET};

// CUPTI's functions by name. The library stays open: its own threads do.
struct Cupti {
  decltype(&::cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&::cuptiActivityEnable) enable;
  decltype(&::cuptiActivityDisable) disable;
  decltype(&::cuptiActivityFlushAll) flush_all;
  decltype(&::cuptiActivityGetNextRecord) next_record;
  decltype(&::cuptiActivityGetNumDroppedRecords) dropped_records;
  decltype(&::cuptiGetResultString) result_string;
};

template <class Function>
void find(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(dlsym(library, name));
  if (!out)
    throw Error(ASSAY_UNSUPPORTED, fmt::format("libcupti.so.13 has no '{}'; install the CUPTI of CUDA 13", name));
}

Cupti open_cupti() {
  void* library = nullptr;
  std::string reason;
  for (const char* file : {"libcupti.so.13", "/usr/local/cuda/lib64/libcupti.so.13",
                           "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13"}) {
    library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library) break;
    const char* const words = dlerror();
    if (reason.empty()) reason = words ? words : "no reason was given";
  }
  if (!library)
    throw Error(ASSAY_UNSUPPORTED,
                fmt::format("the kernel trace needs CUPTI: {}; install the package cuda-cupti of CUDA 13, or put the "
                            "folder with libcupti.so.13 into LD_LIBRARY_PATH",
                            reason));
  Cupti cupti{};
  find(library, "cuptiActivityRegisterCallbacks", cupti.register_callbacks);
  find(library, "cuptiActivityEnable", cupti.enable);
  find(library, "cuptiActivityDisable", cupti.disable);
  find(library, "cuptiActivityFlushAll", cupti.flush_all);
  find(library, "cuptiActivityGetNextRecord", cupti.next_record);
  find(library, "cuptiActivityGetNumDroppedRecords", cupti.dropped_records);
  find(library, "cuptiGetResultString", cupti.result_string);
  return cupti;
}

const Cupti& cupti() {
  static const Cupti opened = open_cupti();  // a failure is tried again
  return opened;
}

void check_cupti(CUptiResult status, const char* what) {
  if (status == CUPTI_SUCCESS) return;
  const char* words = nullptr;
  cupti().result_string(status, &words);
  throw Error(ASSAY_UNSUPPORTED, fmt::format("{}: CUPTI says {}; only one profiler at a time can trace a process", what,
                                             words ? words : std::to_string(status)));
}

struct Trace {
  std::mutex mutex;  // CUPTI hands buffers over on its own thread
  std::set<std::string, std::less<>> names;
  std::vector<assay_traced_work> work;
  std::string failure;  // of a callback, which cannot throw
  bool is_registered = false, is_on = false;
};

// Never destroyed: CUPTI may hand a buffer over while the process ends.
Trace& trace() {
  static Trace& one = *new Trace;
  return one;
}

void add(Trace& into, assay_traced_kind kind, const char* name, std::uint64_t start_ns, std::uint64_t end_ns,
         std::uint64_t bytes, std::uint32_t graph, const CUpti_ActivityKernel10* kernel = nullptr) {
  if (start_ns == 0 || end_ns < start_ns) return;  // CUPTI had no time for it
  auto known = into.names.find(std::string_view(name));
  if (known == into.names.end()) known = into.names.emplace(name).first;
  assay_traced_work work{};
  work.struct_size = sizeof work;
  work.name = known->c_str();
  work.start_ns = static_cast<std::int64_t>(start_ns);
  work.end_ns = static_cast<std::int64_t>(end_ns);
  work.bytes = bytes;
  work.kind = kind;
  work.in_graph = graph != 0 ? 1 : 0;
  if (kernel) {
    const std::int32_t grid[3] = {kernel->gridX, kernel->gridY, kernel->gridZ};
    const std::int32_t block[3] = {kernel->blockX, kernel->blockY, kernel->blockZ};
    for (int i = 0; i < 3; ++i) {
      work.grid[i] = static_cast<std::uint32_t>(grid[i]);
      work.block[i] = static_cast<std::uint32_t>(block[i]);
    }
  }
  into.work.push_back(work);
}

void add(Trace& into, const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = reinterpret_cast<const CUpti_ActivityKernel10&>(record);
      const char* const name = kernel.name ? kernel.name : "unnamed kernel";
      const bool is_anchor = std::string_view(name) == trace_anchor_name;
      add(into, is_anchor ? ASSAY_TRACED_ANCHOR : ASSAY_TRACED_KERNEL, name, kernel.start, kernel.end, 0,
          kernel.graphId, &kernel);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy6&>(record);
      add(into, ASSAY_TRACED_COPY, "copy", copy.start, copy.end, copy.bytes, copy.graphId);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& fill = reinterpret_cast<const CUpti_ActivityMemset4&>(record);
      add(into, ASSAY_TRACED_FILL, "fill", fill.start, fill.end, fill.bytes, fill.graphId);
      break;
    }
    default: break;
  }
}

void CUPTIAPI buffer_requested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(activity_alignment, buffer_bytes));
  *bytes = *buffer ? buffer_bytes : 0;  // without a buffer CUPTI drops records, and counts them
  *most_records = 0;                    // as many as fit
}

void CUPTIAPI buffer_completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid_bytes) {
  Trace& into = trace();
  try {
    const std::lock_guard lock(into.mutex);
    CUpti_Activity* record = nullptr;
    while (valid_bytes > 0 && cupti().next_record(buffer, valid_bytes, &record) == CUPTI_SUCCESS) add(into, *record);
  } catch (const std::exception& e) {
    const std::lock_guard lock(into.mutex);
    into.failure = e.what();
  }
  std::free(buffer);
}

}  // namespace

void kernel_trace_begin() {
  Trace& into = trace();
  if (into.is_on) throw Error(ASSAY_INVALID_ARGUMENT, "a kernel trace was begun twice; end the first one");
  const Cupti& api = cupti();
  if (!into.is_registered)
    check_cupti(api.register_callbacks(buffer_requested, buffer_completed), "preparing the kernel trace");
  into.is_registered = true;
  check(cudaDeviceSynchronize(), "wait for the device before a trace");
  {
    const std::lock_guard lock(into.mutex);
    into.work.clear();
    into.names.clear();
    into.failure.clear();
  }
  std::size_t enabled = 0;
  try {
    for (const CUpti_ActivityKind kind : traced_kinds) {
      check_cupti(api.enable(kind), "starting the kernel trace");
      ++enabled;
    }
  } catch (...) {
    for (std::size_t i = 0; i < enabled; ++i) (void)api.disable(traced_kinds[i]);
    throw;
  }
  into.is_on = true;
}

void kernel_trace_end() {
  Trace& into = trace();
  if (!into.is_on) throw Error(ASSAY_INVALID_ARGUMENT, "a kernel trace was ended that was not begun");
  const Cupti& api = cupti();
  into.is_on = false;
  const cudaError_t waited = cudaDeviceSynchronize();
  const CUptiResult flushed = api.flush_all(0);
  for (const CUpti_ActivityKind kind : traced_kinds) (void)api.disable(kind);
  check(waited, "wait for the device after a trace");
  check_cupti(flushed, "ending the kernel trace");
  check_cupti(api.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "ending the kernel trace");
  std::size_t dropped = 0;
  check_cupti(api.dropped_records(nullptr, 0, &dropped), "asking for dropped records");

  const std::lock_guard lock(into.mutex);
  if (!into.failure.empty()) throw Error(ASSAY_INTERNAL, "reading the kernel trace: " + into.failure);
  if (dropped > 0)
    throw Error(ASSAY_INTERNAL, fmt::format("the kernel trace lost {} records for want of host memory", dropped));
  std::stable_sort(into.work.begin(), into.work.end(),
                   [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
}

std::uint64_t kernel_trace_count() {
  const std::lock_guard lock(trace().mutex);
  return trace().work.size();
}

void kernel_trace_get(std::uint64_t index, assay_traced_work* out) {
  const std::lock_guard lock(trace().mutex);
  const std::vector<assay_traced_work>& work = trace().work;
  if (index >= work.size())
    throw Error(ASSAY_INVALID_ARGUMENT, fmt::format("record {} of a kernel trace with {}", index, work.size()));
  if (!ASSAY_HAS(out, assay_traced_work, in_graph))
    throw Error(ASSAY_INVALID_ARGUMENT, fmt::format("assay_traced_work of {} bytes; expected at least {}: set "
                                                    "struct_size",
                                                    out->struct_size, sizeof(assay_traced_work)));
  const std::size_t callers_size = out->struct_size;
  *out = work[index];
  out->struct_size = callers_size;
}

}  // namespace assay::cuda
