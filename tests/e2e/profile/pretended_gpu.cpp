// libassay_device_cuda.so without a GPU: the CPU device under another kind, with extensions that note what the host
// asks of them. So the host's side of profiling is tested where there is no GPU.
#include <assay/profiling.h>
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

const assay_device_api& cpu() {
  static const assay_device_api& api = *[] {
    void* library = dlopen(std::getenv("PRETENDED_GPU_CPU"), RTLD_NOW | RTLD_LOCAL);
    void* table = library ? dlsym(library, ASSAY_DEVICE_SYMBOL) : nullptr;
    if (!table) std::abort();
    return static_cast<const assay_device_api*>(table);
  }();
  return api;
}

void say(const char* what) { std::fprintf(stderr, "pretended gpu: %s\n", what); }

constexpr assay_profiler profiler{
    sizeof(assay_profiler),
    [](assay_device*) noexcept -> assay_status { return say("profiler start"), ASSAY_OK; },
    [](assay_device*) noexcept -> assay_status { return say("profiler stop"), ASSAY_OK; },
};

std::vector<assay_traced_work> traced;
void trace(const char* name, assay_traced_kind kind, std::int64_t start_ns, std::int64_t end_ns) {
  assay_traced_work work{};
  work.struct_size = sizeof work;
  work.name = name, work.kind = kind, work.start_ns = start_ns, work.end_ns = end_ns;
  traced.push_back(work);
}

// In each step a kernel that begins with it; in the third one that comes long after the step has ended, as when the
// clocks of trace and events were not brought together.
std::uint64_t anchors = 0;
constexpr assay_kernel_trace kernel_trace{
    sizeof(assay_kernel_trace),
    [](assay_device*) noexcept -> assay_status {
      traced.clear();
      anchors = 0;
      return say("trace begin"), ASSAY_OK;
    },
    [](assay_device*, void*) noexcept -> assay_status {
      const std::int64_t now = now_ns();
      trace("assay_trace_anchor", ASSAY_TRACED_ANCHOR, now - 10, now);
      trace("pretended_gemm", ASSAY_TRACED_KERNEL, now + 1, now + 3001);
      if (++anchors == 3)
        trace("pretended_late", ASSAY_TRACED_KERNEL, now + 1'000'000'000'000, now + 1'000'000'001'000);
      return ASSAY_OK;
    },
    [](assay_device*) noexcept -> assay_status { return say("trace end"), ASSAY_OK; },
    [](assay_device*, uint64_t* out) noexcept -> assay_status { return *out = traced.size(), ASSAY_OK; },
    [](assay_device*, uint64_t index, assay_traced_work* out) noexcept -> assay_status {
      *out = traced[index];
      return ASSAY_OK;
    },
};

const void* get_extension(const char* id) noexcept {
  if (std::strcmp(id, ASSAY_EXT_PROFILER) == 0) return &profiler;
  if (std::strcmp(id, ASSAY_EXT_KERNEL_TRACE) == 0) return &kernel_trace;
  return cpu().get_extension(id);
}

assay_device_api make() {
  assay_device_api api = cpu();
  api.kind = "cuda";
  api.range_push = [](assay_device*, const char* name) noexcept {
    std::fprintf(stderr, "pretended gpu: push %s\n", name);
  };
  api.range_pop = [](assay_device*) noexcept { say("pop"); };
  api.get_extension = get_extension;
  return api;
}

}  // namespace

extern "C" ASSAY_EXPORT const assay_device_api assay_device_v1 = make();
