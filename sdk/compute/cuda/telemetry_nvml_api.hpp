// The little of NVML's interface that is used here, by NVML's own numbers. Written down rather than included: the
// library comes with the driver and is opened by name, and toolkits without nvml.h build the device all the same.
#pragma once
#include <cstdint>

namespace assay::cuda::nvml {

using Return = int;
inline constexpr Return success = 0, not_supported = 3, no_permission = 4, insufficient_size = 7,
                        function_not_found = 13;

using Device = struct OpaqueDevice*;

inline constexpr unsigned clock_sm = 1, clock_memory = 2;   // nvmlClockType_t
inline constexpr unsigned temperature_gpu = 0;              // nvmlTemperatureSensors_t
inline constexpr unsigned samples_of_gpu_utilisation = 1;   // nvmlSamplingType_t
inline constexpr unsigned value_unsigned_int = 1;           // nvmlValueType_t
inline constexpr unsigned long long not_available = ~0ULL;  // of a process's memory
inline constexpr unsigned mig_enabled = 1;

// nvmlClocksEventReason*
inline constexpr unsigned long long reason_idle = 0x1, reason_application_clocks = 0x2, reason_power_cap = 0x4,
                                    reason_hw_slowdown = 0x8, reason_sync_boost = 0x10, reason_thermal = 0x20,
                                    reason_hw_thermal = 0x40, reason_power_brake = 0x80, reason_display_clocks = 0x100;

struct Utilisation {
  unsigned gpu_percent, memory_percent;
};

union Value {
  double as_double;
  unsigned as_unsigned;
  unsigned long long as_unsigned_long_long;
};

struct Sample {
  unsigned long long time_us;
  Value value;
};

struct Process {
  unsigned id;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(Utilisation) == 8 && sizeof(Sample) == 16 && sizeof(Process) == 24, "NVML's layout");

// Null: this release of the driver has none.
struct Functions {
  Return (*init)();
  Return (*shutdown)();
  const char* (*error_string)(Return);
  Return (*driver_version)(char* text, unsigned size);
  Return (*device_by_bus_address)(const char* address, Device*);
  Return (*mig_mode)(Device, unsigned* current, unsigned* pending);
  Return (*utilisation)(Device, Utilisation*);
  Return (*samples)(Device, unsigned sampling, unsigned long long last_seen_us, unsigned* value_type, unsigned* count,
                    Sample*);
  Return (*clock)(Device, unsigned type, unsigned* mhz);
  Return (*max_clock)(Device, unsigned type, unsigned* mhz);
  Return (*application_clock)(Device, unsigned type, unsigned* mhz);
  Return (*power)(Device, unsigned* milliwatts);
  Return (*power_limit)(Device, unsigned* milliwatts);
  Return (*default_power_limit)(Device, unsigned* milliwatts);
  Return (*energy)(Device, unsigned long long* millijoules);
  Return (*temperature)(Device, unsigned sensor, unsigned* celsius);
  Return (*clock_reasons)(Device, unsigned long long* reasons);
  Return (*compute_processes)(Device, unsigned* count, Process*);
};

}  // namespace assay::cuda::nvml
