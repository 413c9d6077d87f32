// Samples as a device would give them.
#pragma once
#include <assay/telemetry.h>

namespace assay::host::telemetry::test {

inline assay_telemetry_sample gpu_sample(double utilisation_percent, double span_s) {
  assay_telemetry_sample sample{};
  sample.struct_size = sizeof sample;
  sample.known = ASSAY_TELEMETRY_GPU_UTILISATION | ASSAY_TELEMETRY_SM_CLOCK | ASSAY_TELEMETRY_POWER |
                 ASSAY_TELEMETRY_ENERGY | ASSAY_TELEMETRY_THROTTLE;
  sample.utilisation_percent = utilisation_percent;
  sample.utilisation_span_s = span_s;
  sample.sm_clock_mhz = 1700;
  sample.power_w = 600;
  return sample;
}

inline assay_telemetry_sample with_foreign(assay_telemetry_sample sample, std::uint64_t processes) {
  sample.known |= ASSAY_TELEMETRY_FOREIGN_PROCESSES;
  sample.foreign_processes = processes;
  return sample;
}

}  // namespace assay::host::telemetry::test
