// The CPU as a device of the host's table. Work is done when the call that asked for it returns, so a stream is NULL
// and an event is the moment at which it was recorded.
#include <assay/cache.h>
#include <fmt/format.h>
#include <omp.h>
#include <unistd.h>
#include <dnnl.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <unordered_map>

#include "cache_flush.hpp"
#include "common/chosen_algorithms.hpp"
#include "common/device_guard.hpp"
#include "cpu_backend.hpp"
#include "host_memory.hpp"
#include "mapped_pages.hpp"
#include "matmul.hpp"
#include "probes.hpp"
#include "telemetry.hpp"

using Clock = std::chrono::steady_clock;

struct assay_event {
  std::optional<Clock::time_point> recorded;
};

struct assay_device {
  std::unordered_map<void*, std::size_t> mapped_bytes;  // unmap_pages() needs the length
  void* flush_memory = nullptr;                         // what a flush of the caches walks through; one of them
};

namespace {

using assay::Error;
using assay::compute::fail;
using assay::compute::guard;
using assay::compute::last_error;

void* allocate_bytes(assay_device& device, std::size_t bytes) {
  const std::uint64_t free_bytes = assay::cpu::read_host_memory().free_bytes;
  if (bytes > free_bytes)
    throw Error(ASSAY_OUT_OF_MEMORY,
                fmt::format("out of memory on the CPU: {} bytes wanted, {} bytes free (available memory and "
                            "control-group limit); use a smaller case or raise the limit",
                            bytes, free_bytes));
  std::size_t length = 0;
  void* const address = assay::cpu::map_pages(bytes, &length);
  if (!address)
    throw Error(ASSAY_OUT_OF_MEMORY,
                fmt::format("out of memory on the CPU: {} bytes wanted, {} bytes free, but the kernel refused: {}; "
                            "check the address-space limit (ulimit -v) and overcommit settings",
                            bytes, free_bytes, std::strerror(errno)));
  try {
    device.mapped_bytes.emplace(address, length);
  } catch (...) {
    assay::cpu::unmap_pages(address, length);
    throw;
  }
  assay::cpu::touch_pages(address, length);
  assay::cpu::forbid_rest(address, bytes, length);
  return address;
}

template <std::size_t N>
void copy_text(char (&target)[N], const std::string& text) {
  std::snprintf(target, N, "%s", text.c_str());
}

const char* openmp_version() {
  switch (_OPENMP) {
    case 201307: return "4.0";
    case 201511: return "4.5";
    case 201811: return "5.0";
    case 202011: return "5.1";
    default: return "of unknown version";
  }
}

// Up to which instruction set oneDNN's kernels go: the processor's, or ONEDNN_MAX_CPU_ISA where that is lower.
std::string onednn_isa() {
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  switch (isa) {
    case dnnl::cpu_isa::sse41: return "sse41";
    case dnnl::cpu_isa::avx: return "avx";
    case dnnl::cpu_isa::avx2: return "avx2";
    case dnnl::cpu_isa::avx2_vnni: return "avx2_vnni";
    case dnnl::cpu_isa::avx512_core: return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni: return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16: return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_amx: return "avx512_core_amx";
#if DNNL_VERSION_MAJOR >= 3
    case dnnl::cpu_isa::avx2_vnni_2: return "avx2_vnni_2";
    case dnnl::cpu_isa::avx512_core_fp16: return "avx512_core_fp16";
    case dnnl::cpu_isa::avx512_core_amx_fp16: return "avx512_core_amx_fp16";
#endif
    default: return fmt::format("{:#x}", static_cast<unsigned>(isa));  // of a later version of oneDNN
  }
}

// ---- the table -----------------------------------------------------------------------------------------------------

const char* error_text() noexcept { return last_error; }

assay_status count(std::int32_t* out) noexcept {
  *out = 1;
  return ASSAY_OK;
}

assay_status open(std::int32_t ordinal, assay_device** out) noexcept {
  return guard([&] {
    if (ordinal != 0)
      throw Error(ASSAY_INVALID_ARGUMENT, fmt::format("there is no CPU device {}; expected 0, the only one", ordinal));
    assay::compute::forget_algorithms();
    *out = new assay_device;
  });
}

void close(assay_device* device) noexcept {
  if (!device) return;
  for (const auto& [address, length] : device->mapped_bytes) assay::cpu::unmap_pages(address, length);
  delete device;
}

assay_status info(assay_device*, assay_device_info* out) noexcept {
  return guard([&] {
    if (!ASSAY_HAS(out, assay_device_info, libraries))
      throw Error(ASSAY_INVALID_ARGUMENT,
                  fmt::format("assay_device_info of {} bytes; expected at least {}: set struct_size", out->struct_size,
                              sizeof(assay_device_info)));
    const assay::cpu::HostMemory memory = assay::cpu::read_host_memory();
    const dnnl_version_t* const v = dnnl_version();
    const int threads = omp_get_max_threads();
    out->memory_total_bytes = memory.total_bytes;
    out->memory_free_bytes = memory.free_bytes;
    out->compute_units = threads;
    out->reserved = 0;
    copy_text(out->name, assay::cpu::read_cpu_model());
    if (ASSAY_HAS(out, assay_device_info, bus_address)) out->bus_address[0] = '\0';
    if (ASSAY_HAS(out, assay_device_info, uuid)) out->uuid[0] = '\0';
    copy_text(out->libraries, fmt::format("oneDNN {}.{}.{}; products up to {}; OpenMP {}, {} thread{}; kernels {}{}",
                                          v->major, v->minor, v->patch, onednn_isa(), openmp_version(), threads,
                                          threads == 1 ? "" : "s", assay::cpu::name_of(assay::cpu::machine_isa()),
                                          assay::cpu::MatmulCache::multiplies_bf16() ? "" : "; bf16 products in fp32"));
  });
}

assay_status stream_create(assay_device*, void** out) noexcept {
  *out = nullptr;
  return ASSAY_OK;
}
void stream_destroy(assay_device*, void*) noexcept {}
assay_status stream_synchronize(assay_device*, void*) noexcept { return ASSAY_OK; }

assay_status event_create(assay_device*, assay_event** out) noexcept {
  return guard([&] { *out = new assay_event; });
}
void event_destroy(assay_device*, assay_event* event) noexcept { delete event; }
assay_status event_record(assay_device*, assay_event* event, void*) noexcept {
  event->recorded = Clock::now();
  return ASSAY_OK;
}
assay_status event_synchronize(assay_device*, assay_event* event) noexcept {
  if (!event->recorded)
    return fail(ASSAY_INVALID_ARGUMENT, "wait for an event that was never recorded; call event_record first");
  return ASSAY_OK;
}
assay_status event_elapsed_ns(assay_device*, assay_event* begin, assay_event* end, double* out) noexcept {
  if (!begin->recorded || !end->recorded)
    return fail(ASSAY_INVALID_ARGUMENT, "elapsed time of an event that was never recorded; call event_record on both");
  *out = std::chrono::duration<double, std::nano>(*end->recorded - *begin->recorded).count();
  return ASSAY_OK;
}

assay_status allocate(assay_device* device, std::size_t bytes, void** out) noexcept {
  return guard([&] { *out = allocate_bytes(*device, bytes); });
}
void release(assay_device* device, void* address) noexcept {
  const auto found = device->mapped_bytes.find(address);
  if (found == device->mapped_bytes.end()) return;
  assay::cpu::unmap_pages(address, found->second);
  device->mapped_bytes.erase(found);
}

assay::compute::Backend* create_backend(assay_device*, void* stream) {
  if (stream)
    throw Error(ASSAY_INVALID_ARGUMENT, "the CPU device has no streams; expected the NULL that stream_create gave");
  return new assay::cpu::CpuBackend;
}
constexpr assay::compute::BackendFactory factory{assay::compute::interface_id, create_backend};

assay_status guard_call(void (*body)(void* context), void* context) noexcept {
  return guard([&] { body(context); });
}

assay_status flush_caches(assay_device* device, void*) noexcept {
  return guard([&] {
    static const std::size_t bytes = 2 * assay::cpu::last_level_cache_bytes();
    if (bytes == 0)
      throw Error(ASSAY_UNSUPPORTED,
                  "the kernel does not report how large this machine's caches are, so they cannot be "
                  "flushed; leave out cold_cache");
    if (!device->flush_memory) device->flush_memory = allocate_bytes(*device, bytes);
    assay::cpu::walk_through(device->flush_memory, bytes);
  });
}
constexpr assay_cache cache{sizeof(assay_cache), flush_caches};

const void* get_extension(const char* id) noexcept {
  if (std::strcmp(id, ASSAY_EXT_CACHE) == 0) return &cache;
  if (std::strcmp(id, "assay.compute/1") == 0) return &factory;
  if (const void* algorithms = assay::compute::algorithms_extension(id, guard_call)) return algorithms;
  if (const void* probe = assay::cpu::probe_extension(id, guard_call)) return probe;
  return assay::cpu::telemetry_extension(id, guard_call);
}

}  // namespace

extern "C" ASSAY_EXPORT const assay_device_api assay_device_v1 = {
    sizeof(assay_device_api),
    ASSAY_DEVICE_ABI_MAJOR,
    ASSAY_DEVICE_ABI_MINOR,
    "cpu",
    ASSAY_BUILD_INFO,
    error_text,
    count,
    open,
    close,
    info,
    stream_create,
    stream_destroy,
    stream_synchronize,
    event_create,
    event_destroy,
    event_record,
    event_synchronize,
    event_elapsed_ns,
    allocate,
    release,
    nullptr,
    nullptr,
    get_extension,
};
