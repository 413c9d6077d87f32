// A runtime of HIP without a GPU: memory is the host's, and work is done when it is enqueued. ASSAY_STUB_HIP_DEVICES
// says how many devices there are (1).
#include <hip/hip_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>

struct ihipStream_t {};
struct ihipEvent_t {
  std::optional<std::chrono::steady_clock::time_point> happened;
};

namespace {

constexpr std::size_t total_bytes = std::size_t{1} << 30;

int devices() {
  const char* count = std::getenv("ASSAY_STUB_HIP_DEVICES");
  return count ? std::atoi(count) : 1;
}
std::map<void*, std::size_t>& taken() {
  static std::map<void*, std::size_t> bytes;
  return bytes;
}
std::size_t taken_bytes() {
  std::size_t sum = 0;
  for (const auto& [address, bytes] : taken()) sum += bytes;
  return sum;
}

}  // namespace

extern "C" {

const char* hipGetErrorName(hipError_t error) {
  switch (error) {
    case hipSuccess: return "hipSuccess";
    case hipErrorInvalidValue: return "hipErrorInvalidValue";
    case hipErrorOutOfMemory: return "hipErrorOutOfMemory";
    case hipErrorNoDevice: return "hipErrorNoDevice";
    case hipErrorInvalidDevice: return "hipErrorInvalidDevice";
    case hipErrorInvalidHandle: return "hipErrorInvalidHandle";
    case hipErrorNotReady: return "hipErrorNotReady";
  }
  return "hipErrorUnknown";
}
const char* hipGetErrorString(hipError_t error) { return hipGetErrorName(error); }
hipError_t hipRuntimeGetVersion(int* version) { return *version = 60200000, hipSuccess; }
hipError_t hipDriverGetVersion(int* version) { return *version = 60200000, hipSuccess; }
hipError_t hipGetDeviceCount(int* count) {
  *count = devices();
  return *count > 0 ? hipSuccess : hipErrorNoDevice;
}
hipError_t hipSetDevice(int device) { return device >= 0 && device < devices() ? hipSuccess : hipErrorInvalidDevice; }
hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int device) {
  if (hipSetDevice(device) != hipSuccess) return hipErrorInvalidDevice;
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "AMD Instinct of a stub");
  std::snprintf(properties->gcnArchName, sizeof properties->gcnArchName, "gfx942");
  properties->totalGlobalMem = total_bytes, properties->multiProcessorCount = 304;
  return hipSuccess;
}
hipError_t hipDeviceGetPCIBusId(char* bus_address, int length, int device) {
  std::snprintf(bus_address, static_cast<std::size_t>(length), "0000:%02x:00.0", device + 1);
  return hipSuccess;
}
hipError_t hipDeviceGetUuid(hipUUID* uuid, hipDevice_t device) {
  *uuid = {};
  uuid->bytes[15] = static_cast<char>('0' + device);
  return hipSuccess;
}
hipError_t hipMemGetInfo(std::size_t* free_bytes, std::size_t* all_bytes) {
  *all_bytes = total_bytes, *free_bytes = total_bytes - taken_bytes();
  return hipSuccess;
}
hipError_t hipMalloc(void** address, std::size_t bytes) {
  if (bytes > total_bytes - taken_bytes()) return hipErrorOutOfMemory;
  const std::size_t whole_lines = (bytes + 255) / 256 * 256;
  *address = std::aligned_alloc(256, whole_lines);
  if (!*address) return hipErrorOutOfMemory;
  taken()[*address] = bytes;
  return hipSuccess;
}
hipError_t hipFree(void* address) {
  if (taken().erase(address) == 0) return hipErrorInvalidValue;
  std::free(address);
  return hipSuccess;
}
hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned int) {
  *stream = new ihipStream_t;
  return hipSuccess;
}
hipError_t hipStreamDestroy(hipStream_t stream) {
  delete stream;
  return hipSuccess;
}
hipError_t hipStreamSynchronize(hipStream_t) { return hipSuccess; }
hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned int) {
  *event = new ihipEvent_t;
  return hipSuccess;
}
hipError_t hipEventDestroy(hipEvent_t event) {
  delete event;
  return hipSuccess;
}
hipError_t hipEventRecord(hipEvent_t event, hipStream_t) {
  event->happened = std::chrono::steady_clock::now();
  return hipSuccess;
}
hipError_t hipEventSynchronize(hipEvent_t) { return hipSuccess; }
hipError_t hipEventElapsedTime(float* elapsed_ms, hipEvent_t begin, hipEvent_t end) {
  if (!begin->happened || !end->happened) return hipErrorInvalidHandle;
  *elapsed_ms = std::chrono::duration<float, std::milli>(*end->happened - *begin->happened).count();
  return hipSuccess;
}

}  // extern "C"
