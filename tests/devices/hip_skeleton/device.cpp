// A GPU of HIP as a device of the host's table: streams, events and memory. It offers no extension, so it runs
// workloads that bring their own kernels; those of assay::compute need "assay.compute/1" as well.
#include <assay/device.h>
#include <hip/hip_runtime_api.h>

#include <algorithm>
#include <assay/plugin.hpp>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <unordered_set>

struct assay_event {
  hipEvent_t handle = nullptr;
};
struct assay_device {
  std::int32_t ordinal = 0;
  std::unordered_set<void*> allocated;  // freed at close() when nobody else did
};

namespace {

using assay::Error;

// Trivial storage: a thread that ends after the library is gone has nothing to run.
thread_local char last_error[512] = "";

assay_status fail(assay_status status, const char* text) noexcept {
  std::snprintf(last_error, sizeof last_error, "%s", text);
  return status;
}
template <class F>
assay_status guard(F&& f) noexcept {
  try {
    f();
    return ASSAY_OK;
  } catch (const Error& e) {
    return fail(e.status(), e.what());
  } catch (const std::bad_alloc&) {
    return fail(ASSAY_OUT_OF_MEMORY, "the HIP device has no host memory left for its own bookkeeping");
  } catch (const std::exception& e) {
    return fail(ASSAY_INTERNAL, e.what());
  }
}
void check(hipError_t status, const char* doing) {
  if (status == hipSuccess) return;
  throw Error(ASSAY_DEVICE_ERROR,
              std::string("HIP: ") + doing + ": " + hipGetErrorString(status) + " (" + hipGetErrorName(status) + ")");
}

const char* error_text() noexcept { return last_error; }

assay_status count(std::int32_t* out) noexcept {
  return guard([&] {
    int devices = 0;
    const hipError_t status = hipGetDeviceCount(&devices);
    if (status != hipSuccess || devices <= 0)
      throw Error(ASSAY_UNSUPPORTED, std::string("no usable HIP device: ") + hipGetErrorString(status) +
                                         "; expected an AMD GPU that this process may see (HIP_VISIBLE_DEVICES)");
    *out = devices;
  });
}
assay_status open(std::int32_t ordinal, assay_device** out) noexcept {
  return guard([&] {
    check(hipSetDevice(ordinal), "open the device");
    *out = new assay_device{ordinal, {}};
  });
}
void close(assay_device* device) noexcept {
  if (!device) return;
  for (void* const address : device->allocated) (void)hipFree(address);
  delete device;
}

std::string version_text(int version) {
  return std::to_string(version / 10'000'000) + "." + std::to_string(version / 100'000 % 100);
}
std::string uuid_text(const hipUUID& uuid) { return "GPU-" + std::string(uuid.bytes, uuid.bytes + 16); }
template <std::size_t N>
void copy_text(char (&target)[N], const std::string& text) {
  std::snprintf(target, N, "%s", text.c_str());
}

assay_status info(assay_device* device, assay_device_info* out) noexcept {
  return guard([&] {
    if (!ASSAY_HAS(out, assay_device_info, libraries))
      throw Error(ASSAY_INVALID_ARGUMENT, "assay_device_info is too short; set struct_size");
    hipDeviceProp_t properties{};
    check(hipGetDeviceProperties(&properties, device->ordinal), "read the properties of the device");
    std::size_t free_bytes = 0, total_bytes = 0;
    check(hipMemGetInfo(&free_bytes, &total_bytes), "read the free memory");
    int runtime = 0, driver = 0;
    check(hipRuntimeGetVersion(&runtime), "read the version of the runtime");
    check(hipDriverGetVersion(&driver), "read the version of the driver");
    out->memory_total_bytes = total_bytes, out->memory_free_bytes = free_bytes;
    out->compute_units = properties.multiProcessorCount, out->reserved = 0;
    copy_text(out->name, properties.name);
    copy_text(out->libraries, "HIP runtime " + version_text(runtime) + ", driver " + version_text(driver) + ", " +
                                  properties.gcnArchName);
    if (ASSAY_HAS(out, assay_device_info, bus_address))
      check(hipDeviceGetPCIBusId(out->bus_address, sizeof out->bus_address, device->ordinal), "read the bus address");
    if (ASSAY_HAS(out, assay_device_info, uuid)) {
      hipUUID uuid{};
      check(hipDeviceGetUuid(&uuid, device->ordinal), "read the id of the device");
      std::replace(std::begin(uuid.bytes), std::end(uuid.bytes), '\0', '0');
      copy_text(out->uuid, uuid_text(uuid));
    }
  });
}

assay_status stream_create(assay_device*, void** out) noexcept {
  return guard([&] {
    hipStream_t stream = nullptr;
    check(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), "make a stream");
    *out = stream;
  });
}
void stream_destroy(assay_device*, void* stream) noexcept {
  if (stream) (void)hipStreamDestroy(static_cast<hipStream_t>(stream));
}
assay_status stream_synchronize(assay_device*, void* stream) noexcept {
  return guard([&] { check(hipStreamSynchronize(static_cast<hipStream_t>(stream)), "wait for a stream"); });
}

assay_status event_create(assay_device*, assay_event** out) noexcept {
  return guard([&] {
    auto event = std::make_unique<assay_event>();
    check(hipEventCreateWithFlags(&event->handle, hipEventDefault), "make an event");
    *out = event.release();
  });
}
void event_destroy(assay_device*, assay_event* event) noexcept {
  if (event) (void)hipEventDestroy(event->handle);
  delete event;
}
assay_status event_record(assay_device*, assay_event* event, void* stream) noexcept {
  return guard([&] { check(hipEventRecord(event->handle, static_cast<hipStream_t>(stream)), "record an event"); });
}
assay_status event_synchronize(assay_device*, assay_event* event) noexcept {
  return guard([&] { check(hipEventSynchronize(event->handle), "wait for an event"); });
}
assay_status event_elapsed_ns(assay_device*, assay_event* begin, assay_event* end, double* out) noexcept {
  return guard([&] {
    float elapsed_ms = 0;
    check(hipEventElapsedTime(&elapsed_ms, begin->handle, end->handle), "read the time between two events");
    *out = static_cast<double>(elapsed_ms) * 1e6;
  });
}

assay_status allocate(assay_device* device, std::size_t bytes, void** out) noexcept {
  return guard([&] {
    void* address = nullptr;
    const hipError_t status = hipMalloc(&address, std::max<std::size_t>(bytes, 1));
    if (status == hipErrorOutOfMemory)
      throw Error(ASSAY_OUT_OF_MEMORY, "out of memory on the GPU: " + std::to_string(bytes) + " bytes wanted");
    check(status, "allocate memory");
    try {
      device->allocated.insert(address);
    } catch (...) {
      (void)hipFree(address);
      throw;
    }
    *out = address;
  });
}
void release(assay_device* device, void* address) noexcept {
  if (device->allocated.erase(address)) (void)hipFree(address);
}

const void* get_extension(const char*) noexcept { return nullptr; }

}  // namespace

extern "C" ASSAY_EXPORT const assay_device_api assay_device_v1 = {
    sizeof(assay_device_api),
    ASSAY_DEVICE_ABI_MAJOR,
    ASSAY_DEVICE_ABI_MINOR,
    "hip",
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
