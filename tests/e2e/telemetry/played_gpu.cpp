// libassay_device_cuda.so without a GPU: the CPU device under another kind, with the bus address of a GPU and the real
// device's own telemetry, which finds the tests' NVML where the driver's would be. PLAYED_GPU_CPU is the CPU device's
// file.
#include <assay/device.h>
#include <dlfcn.h>
#include <assay/plugin.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common/device_guard.hpp"
#include "telemetry.hpp"

namespace {

const assay_device_api& cpu() {
  static const assay_device_api& api = *[] {
    void* library = dlopen(std::getenv("PLAYED_GPU_CPU"), RTLD_NOW | RTLD_LOCAL);
    void* table = library ? dlsym(library, ASSAY_DEVICE_SYMBOL) : nullptr;
    if (!table) std::abort();
    return static_cast<const assay_device_api*>(table);
  }();
  return api;
}

assay_status guard_call(void (*body)(void* context), void* context) noexcept {
  return assay::compute::guard([&] { body(context); });
}

const void* get_extension(const char* id) noexcept {
  if (const void* telemetry = assay::cuda::telemetry_extension(id, guard_call)) return telemetry;
  return cpu().get_extension(id);
}

assay_device_api make() {
  assay_device_api api = cpu();
  api.kind = "cuda";
  api.error_text = []() noexcept -> const char* { return assay::compute::last_error; };
  api.info = [](assay_device* device, assay_device_info* out) noexcept {
    const assay_status status = cpu().info(device, out);
    std::snprintf(out->bus_address, sizeof out->bus_address, "0000:18:00.0");
    return status;
  };
  api.get_extension = get_extension;
  return api;
}

}  // namespace

extern "C" ASSAY_EXPORT const assay_device_api assay_device_v1 = make();
