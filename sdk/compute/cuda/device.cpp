// A GPU as a device of the host's table. The runtime is linked statically and finds the driver when it is first asked,
// so the library opens on a machine that has none, and count() says so.
#include <assay/cache.h>
#include <assay/observation.h>
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>

#include "common/chosen_algorithms.hpp"
#include "common/device_guard.hpp"
#include "common/kept_choices.hpp"
#include "cuda_backend.hpp"
#include "cuda_handles.hpp"
#include "device_context.hpp"
#include "device_uuid.hpp"
#include "gpu_use.hpp"
#include "graph_events.hpp"
#include "memory_account.hpp"
#include "probes.hpp"
#include "profiling.hpp"
#include "telemetry.hpp"

struct assay_event {
  assay::cuda::Event handle;
  bool recorded = false;
};

struct assay_device {
  std::int32_t ordinal = 0;
  bool has_context = false;
  std::unordered_set<void*> allocated;  // freed at close() when nobody else did
  void* flush_memory = nullptr;         // what a flush of the caches writes; one of them
  std::size_t flush_bytes = 0;
};

namespace assay::cuda {

bool has_context(const assay_device& device) noexcept { return device.has_context; }

// Since CUDA 12 cudaSetDevice makes the primary context. A runtime call from a thread that has set no device also makes
// one, but on device 0.
void need_context(assay_device& device) {
  if (device.has_context) return;
  check(cudaSetDevice(device.ordinal), "open the device");
  device.has_context = true;
}

}  // namespace assay::cuda

namespace {

using assay::Error;
using assay::compute::fail;
using assay::compute::guard;
using assay::compute::last_error;
using assay::cuda::check;
using assay::cuda::need_context;

// Without any driver the runtime calls the driver's version insufficient.
bool has_driver() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess && version > 0;
}

std::int32_t count_devices() {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaSuccess && devices > 0) return devices;
  (void)cudaGetLastError();
  const std::string words = !has_driver() ? "no NVIDIA driver is installed"
                            : status == cudaSuccess
                                ? "the driver lists none"
                                : fmt::format("{} ({})", cudaGetErrorString(status), cudaGetErrorName(status));
  throw Error(ASSAY_UNSUPPORTED,
              fmt::format("no usable CUDA device: {}; expected an NVIDIA GPU of compute capability 8.0 or more that "
                          "this process may see (CUDA_VISIBLE_DEVICES) and a driver for CUDA {}.{} or newer: check "
                          "with nvidia-smi, or run on the CPU with device = \"cpu\"",
                          words, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10));
}

// The driver's own number, "580.95.05", which the runtime does not report. Empty where the kernel's file is hidden.
std::string driver_release() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line, word;
  if (!std::getline(file, line)) return "";
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find_first_of(" \t", at), line.size());
    word = line.substr(at, end - at);
    at = end + 1;
    const bool numeric =
        std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) || c == '.'; });
    if (numeric && word.find('.') != std::string::npos) return word;
  }
  return "";
}

std::string cuda_version(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string libraries() {
  int runtime = 0, driver = 0;
  check(cudaRuntimeGetVersion(&runtime), "read the version of the runtime");
  check(cudaDriverGetVersion(&driver), "read the version of the driver");
  const std::string release = driver_release();
  const std::size_t lt = cublasLtGetVersion(), dnn = cudnnGetVersion();
  return fmt::format("CUDA runtime {}, driver {}{}, cuBLASLt {}.{}.{}, cuDNN {}.{}.{}", cuda_version(runtime),
                     cuda_version(driver), release.empty() ? "" : " (" + release + ")", lt / 10000, lt / 100 % 100,
                     lt % 100, dnn / 10000, dnn / 100 % 100, dnn % 100);
}

// From the driver itself, which the runtime has opened by then: asked for a function, the runtime might make a context.
template <class Function>
Function driver_function(const char* name) {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!driver) return nullptr;
  const auto function = reinterpret_cast<Function>(dlsym(driver, name));
  dlclose(driver);  // the runtime keeps it open
  return function;
}

// For a part of a GPU, the part's own uuid, which only the driver reports, since CUDA 11.4. The runtime's name of such
// a part ends with its kind: "NVIDIA H200 MIG 1g.18gb".
std::string uuid_of(int ordinal, const cudaDeviceProp& properties) {
  cudaUUID_t uuid = properties.uuid;
  const auto device_of = driver_function<int (*)(int* device, int ordinal)>("cuDeviceGet");
  const auto uuid_of_device = driver_function<int (*)(cudaUUID_t*, int device)>("cuDeviceGetUuid_v2");
  int device = 0;
  cudaUUID_t own{};
  if (device_of && uuid_of_device && device_of(&device, ordinal) == 0 && uuid_of_device(&own, device) == 0) uuid = own;
  return assay::cuda::uuid_text(uuid.bytes, std::strstr(properties.name, " MIG ") != nullptr);
}

template <std::size_t N>
void copy_text(char (&target)[N], const std::string& text) {
  std::snprintf(target, N, "%s", text.c_str());
}

constexpr std::size_t mebibyte = std::size_t{1} << 20;

void* allocate_bytes(std::size_t bytes) {
  void* address = nullptr;
  const cudaError_t status = cudaMalloc(&address, std::max<std::size_t>(bytes, 1));
  if (status == cudaSuccess) return address;
  (void)cudaGetLastError();  // kept, it would be blamed on the next launch
  if (status != cudaErrorMemoryAllocation) check(status, "allocate memory");
  std::size_t free_bytes = 0, total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "read the free memory");
  throw Error(ASSAY_OUT_OF_MEMORY,
              fmt::format("out of memory on the GPU: {} bytes wanted ({} MiB), {} bytes free ({} MiB of {} MiB); use a "
                          "smaller case, or end what else holds the GPU's memory",
                          bytes, bytes / mebibyte, free_bytes, free_bytes / mebibyte, total_bytes / mebibyte));
}

// ---- the table -----------------------------------------------------------------------------------------------------

const char* error_text() noexcept { return last_error; }

assay_status count(std::int32_t* out) noexcept {
  return guard([&] { *out = count_devices(); });
}

// Without a context, and so without a word to the GPU itself.
assay_status observe(std::int32_t ordinal, assay_device** out) noexcept {
  return guard([&] {
    const std::int32_t devices = count_devices();
    if (ordinal < 0 || ordinal >= devices)
      throw Error(ASSAY_INVALID_ARGUMENT, fmt::format("there is no CUDA device {}; expected 0 to {}, as {} {} here",
                                                      ordinal, devices - 1, devices, devices == 1 ? "is" : "are"));
    assay::compute::forget_algorithms();
    assay::cuda::let_graphs_record_events(true);
    *out = new assay_device{ordinal, false, {}, nullptr, 0};
  });
}

assay_status open(std::int32_t ordinal, assay_device** out) noexcept {
  return guard([&] {
    assay_device* opened = nullptr;
    if (const assay_status status = observe(ordinal, &opened); status != ASSAY_OK) throw Error(status, last_error);
    std::unique_ptr<assay_device> device(opened);
    need_context(*device);
    *out = device.release();
  });
}

void close(assay_device* device) noexcept {
  if (!device) return;
  for (void* const address : device->allocated) (void)cudaFree(address);
  delete device;
}

assay_status info(assay_device* device, assay_device_info* out) noexcept {
  return guard([&] {
    if (!ASSAY_HAS(out, assay_device_info, libraries))
      throw Error(ASSAY_INVALID_ARGUMENT,
                  fmt::format("assay_device_info of {} bytes; expected at least {}: set struct_size", out->struct_size,
                              sizeof(assay_device_info)));
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device->ordinal), "read the properties of the device");
    std::size_t free_bytes = 0, total_bytes = properties.totalGlobalMem;
    if (device->has_context) check(cudaMemGetInfo(&free_bytes, &total_bytes), "read the free memory");
    out->memory_total_bytes = total_bytes;
    out->memory_free_bytes = free_bytes;
    out->compute_units = properties.multiProcessorCount;
    out->reserved = 0;
    copy_text(out->name, properties.name);
    copy_text(out->libraries, libraries());
    if (ASSAY_HAS(out, assay_device_info, bus_address))
      check(cudaDeviceGetPCIBusId(out->bus_address, sizeof out->bus_address, device->ordinal), "read the bus address");
    if (ASSAY_HAS(out, assay_device_info, uuid)) copy_text(out->uuid, uuid_of(device->ordinal, properties));
  });
}

assay_status stream_create(assay_device* device, void** out) noexcept {
  return guard([&] {
    need_context(*device);
    *out = assay::cuda::make_stream(assay::cuda::priority_of_steps).release();
  });
}
void stream_destroy(assay_device*, void* stream) noexcept {
  if (stream) (void)cudaStreamDestroy(static_cast<cudaStream_t>(stream));
}
assay_status stream_synchronize(assay_device* device, void* stream) noexcept {
  if (!device->has_context) return ASSAY_OK;  // and nothing to wait for
  return guard([&] { check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "wait for a stream"); });
}

assay_status event_create(assay_device* device, assay_event** out) noexcept {
  return guard([&] {
    need_context(*device);
    *out = new assay_event{assay::cuda::make_event(cudaEventDefault), false};
  });
}
void event_destroy(assay_device*, assay_event* event) noexcept {
  if (event) assay::cuda::forget_captured_event(event->handle.get());
  delete event;
}
assay_status event_record(assay_device*, assay_event* event, void* stream) noexcept {
  return guard([&] {
    const auto s = static_cast<cudaStream_t>(stream);
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(s, &capturing), "ask whether a stream is being captured");
    // External: a node that records the event at every replay, instead of a mere edge of the graph.
    const unsigned flags = capturing == cudaStreamCaptureStatusNone ? cudaEventRecordDefault : cudaEventRecordExternal;
    check(cudaEventRecordWithFlags(event->handle.get(), s, flags), "record an event");
    if (capturing != cudaStreamCaptureStatusNone) assay::cuda::add_captured_event(event->handle.get());
    event->recorded = true;
  });
}
assay_status event_synchronize(assay_device*, assay_event* event) noexcept {
  if (!event->recorded)
    return fail(ASSAY_INVALID_ARGUMENT, "wait for an event that was never recorded; call event_record first");
  return guard([&] { check(cudaEventSynchronize(event->handle.get()), "wait for an event"); });
}
assay_status event_elapsed_ns(assay_device*, assay_event* begin, assay_event* end, double* out) noexcept {
  if (!begin->recorded || !end->recorded)
    return fail(ASSAY_INVALID_ARGUMENT, "elapsed time of an event that was never recorded; call event_record on both");
  return guard([&] {
    float elapsed_ms = 0.0F;
    const cudaError_t status = cudaEventElapsedTime(&elapsed_ms, begin->handle.get(), end->handle.get());
    if (status == cudaErrorNotReady || status == cudaErrorInvalidResourceHandle) {
      (void)cudaGetLastError();
      throw Error(ASSAY_INVALID_ARGUMENT,
                  "elapsed time of an event that has not happened yet; wait for both with event_synchronize, and "
                  "launch a graph before the events in it are read");
    }
    check(status, "read the time between two events");
    *out = static_cast<double>(elapsed_ms) * 1e6;
  });
}

assay_status allocate(assay_device* device, std::size_t bytes, void** out) noexcept {
  return guard([&] {
    need_context(*device);
    assay::cuda::DeviceMemory memory(allocate_bytes(bytes));
    device->allocated.insert(memory.get());
    *out = memory.release();
  });
}
void release(assay_device* device, void* address) noexcept {
  if (device->allocated.erase(address)) (void)cudaFree(address);
}

void range_push(assay_device*, const char* name) noexcept { nvtxRangePushA(name); }
void range_pop(assay_device*) noexcept { nvtxRangePop(); }

assay::compute::Backend* create_backend(assay_device* device, void* stream) {
  need_context(*device);
  return new assay::cuda::CudaBackend(device->ordinal, static_cast<cudaStream_t>(stream));
}
constexpr assay::compute::BackendFactory factory{assay::compute::interface_id, create_backend};

assay::compute::KeptChoices* open_kept_choices(assay_device* device, const char* kind, const char* library) {
  const auto gpu = std::make_shared<assay::cuda::GpuUse>(device->ordinal);
  return new assay::compute::ChoicesInFile(kind, gpu->conditions(library),
                                           [gpu](std::span<const double> us) { return gpu->may_keep(us); });
}

constexpr assay::compute::KeptChoicesFactory kept_choices{assay::compute::kept_choices_id, open_kept_choices};

assay_status guard_call(void (*body)(void* context), void* context) noexcept {
  return guard([&] { body(context); });
}

// A fill of twice what the L2 holds, as nvbench and Triton's benchmarks do it.
assay_status flush_caches(assay_device* device, void* stream) noexcept {
  return guard([&] {
    need_context(*device);
    if (!device->flush_memory) {
      int l2_bytes = 0;
      check(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device->ordinal),
            "read the size of the L2 cache");
      if (l2_bytes <= 0)
        throw Error(ASSAY_UNSUPPORTED,
                    "the driver does not report how large the L2 cache is, so it cannot be flushed; leave "
                    "out cold_cache");
      device->flush_bytes = 2 * static_cast<std::size_t>(l2_bytes);
      assay::cuda::DeviceMemory memory(allocate_bytes(device->flush_bytes));
      device->allocated.insert(memory.get());
      device->flush_memory = memory.release();
    }
    check(cudaMemsetAsync(device->flush_memory, 0, device->flush_bytes, static_cast<cudaStream_t>(stream)),
          "flush the L2 cache");
  });
}
constexpr assay_cache cache{sizeof(assay_cache), flush_caches};
constexpr assay_observation observation{sizeof(assay_observation), observe};

const void* get_extension(const char* id) noexcept {
  if (std::strcmp(id, ASSAY_EXT_CACHE) == 0) return &cache;
  if (std::strcmp(id, ASSAY_EXT_OBSERVATION) == 0) return &observation;
  if (std::strcmp(id, "assay.compute/1") == 0) return &factory;
  if (std::strcmp(id, "assay.kept_choices/1") == 0) return &kept_choices;
  if (const void* algorithms = assay::compute::algorithms_extension(id, guard_call)) return algorithms;
  if (const void* account = assay::cuda::memory_account_extension(id)) return account;
  if (const void* events = assay::cuda::graph_events_extension(id, guard_call)) return events;
  if (const void* probe = assay::cuda::probe_extension(id, guard_call)) return probe;
  if (const void* telemetry = assay::cuda::telemetry_extension(id, guard_call)) return telemetry;
  return assay::cuda::profiling_extension(id, guard_call);
}

}  // namespace

extern "C" ASSAY_EXPORT const assay_device_api assay_device_v1 = {
    sizeof(assay_device_api),
    ASSAY_DEVICE_ABI_MAJOR,
    ASSAY_DEVICE_ABI_MINOR,
    "cuda",
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
    range_push,
    range_pop,
    get_extension,
};
