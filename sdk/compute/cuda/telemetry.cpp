#include "telemetry.hpp"

#include <assay/telemetry.h>
#include <assay/plugin.hpp>

#include <cstring>

#include "device_context.hpp"
#include "telemetry_nvml.hpp"

struct assay_telemetry_reader {
  assay::cuda::NvmlReader nvml;
};

namespace assay::cuda {
namespace {

compute::StatusGuard telemetry_guard = nullptr;

assay_status open(assay_device* device, assay_telemetry_reader** out) noexcept {
  assay_device_info info{};
  info.struct_size = sizeof info;
  if (const assay_status status = assay_device_v1.info(device, &info); status != ASSAY_OK) return status;
  const Presence presence = has_context(*device) ? Presence::computes : Presence::looks;
  return compute::guarded(telemetry_guard,
                          [&] { *out = new assay_telemetry_reader{NvmlReader(info.bus_address, presence)}; });
}

constexpr assay_telemetry telemetry{
    sizeof(assay_telemetry),
    open,
    [](assay_telemetry_reader* reader) noexcept { delete reader; },
    [](assay_telemetry_reader* reader) noexcept { return reader->nvml.note().c_str(); },
    [](assay_telemetry_reader* reader, assay_telemetry_limits* out) noexcept {
      return compute::guarded(telemetry_guard, [&] {
        if (!ASSAY_HAS(out, assay_telemetry_limits, driver))
          throw Error(ASSAY_INVALID_ARGUMENT, "assay_telemetry_limits is too small; set struct_size");
        reader->nvml.limits(*out);
      });
    },
    [](assay_telemetry_reader* reader, assay_telemetry_moment moment, assay_telemetry_sample* out) noexcept {
      return compute::guarded(telemetry_guard, [&] {
        if (!ASSAY_HAS(out, assay_telemetry_sample, foreign_memory_bytes))
          throw Error(ASSAY_INVALID_ARGUMENT, "assay_telemetry_sample is too small; set struct_size");
        reader->nvml.sample(moment, *out);
      });
    },
};

}  // namespace

const void* telemetry_extension(const char* id, compute::StatusGuard guard) noexcept {
  telemetry_guard = guard;
  return std::strcmp(id, ASSAY_EXT_TELEMETRY) == 0 ? &telemetry : nullptr;
}

}  // namespace assay::cuda
