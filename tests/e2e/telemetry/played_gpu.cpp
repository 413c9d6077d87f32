// libassay_device_cuda.so without a GPU: the CPU device under another kind, with the bus address of a GPU and the real
// device's own telemetry, which finds the tests' NVML where the driver's would be. PLAYED_GPU_CPU is the CPU device's
// file. Every call of its table adds a line to the file PLAYED_GPU_CALLS: the caller's process and the function.
// PLAYED_GPU_OLD: a device of before assay.observation/1.
#include <assay/device.h>
#include <assay/observation.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
#include <assay/plugin.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "common/device_guard.hpp"
#include "device_context.hpp"
#include "telemetry.hpp"

namespace {

bool is_observed = false;  // one device a process

const assay_device_api& cpu() {
  static const assay_device_api& api = *[] {
    void* library = dlopen(std::getenv("PLAYED_GPU_CPU"), RTLD_NOW | RTLD_LOCAL);
    void* table = library ? dlsym(library, ASSAY_DEVICE_SYMBOL) : nullptr;
    if (!table) std::abort();
    return static_cast<const assay_device_api*>(table);
  }();
  return api;
}

void note_call(const char* function) {
  const char* const file = std::getenv("PLAYED_GPU_CALLS");
  if (!file) return;
  const int fd = ::open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string line = std::to_string(getpid()) + ' ' + function + '\n';
  if (fd < 0 || write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
  ::close(fd);
}

assay_status guard_call(void (*body)(void* context), void* context) noexcept {
  return assay::compute::guard([&] { body(context); });
}

constexpr assay_observation observation{sizeof(assay_observation),
                                        [](std::int32_t ordinal, assay_device** out) noexcept {
                                          note_call("observe");
                                          is_observed = true;
                                          return cpu().open(ordinal, out);
                                        }};

const void* get_extension(const char* id) noexcept {
  if (std::strcmp(id, ASSAY_EXT_OBSERVATION) == 0) return std::getenv("PLAYED_GPU_OLD") ? nullptr : &observation;
  if (const void* telemetry = assay::cuda::telemetry_extension(id, guard_call)) return telemetry;
  return cpu().get_extension(id);
}

// The CPU's own function, behind the line that names it.
template <auto function, class Status, class... Arguments>
auto noted(Status (*)(Arguments...) noexcept) {
  return [](Arguments... arguments) noexcept -> Status {
    note_call(function.text);
    return (cpu().*function.member)(arguments...);
  };
}

template <class Member>
struct Function {
  Member member;
  char text[24];
};
#define NOTED(name) \
  api.name = noted<Function<decltype(&assay_device_api::name)>{&assay_device_api::name, #name}>(api.name)

assay_device_api make() {
  assay_device_api api = cpu();
  api.kind = "cuda";
  api.error_text = []() noexcept -> const char* { return assay::compute::last_error; };
  NOTED(count), NOTED(open), NOTED(close), NOTED(stream_create), NOTED(stream_destroy), NOTED(stream_synchronize);
  NOTED(event_create), NOTED(event_destroy), NOTED(event_record), NOTED(event_synchronize), NOTED(event_elapsed_ns);
  NOTED(allocate), NOTED(release);
  api.info = [](assay_device* device, assay_device_info* out) noexcept {
    note_call("info");
    const assay_status status = cpu().info(device, out);
    if (is_observed) out->memory_free_bytes = 0;
    std::snprintf(out->bus_address, sizeof out->bus_address, "0000:18:00.0");
    return status;
  };
  api.get_extension = get_extension;
  return api;
}

}  // namespace

namespace assay::cuda {
bool has_context(const assay_device&) noexcept { return !is_observed; }
}  // namespace assay::cuda

extern "C" ASSAY_EXPORT const assay_device_api assay_device_v1 = make();
