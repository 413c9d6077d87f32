/* assay/telemetry.h - what a device backend may report about the device while a case is measured: how busy it is, its
 * clocks, its power, who else uses it. An optional extension of the device table: assay_device_api.get_extension()
 * gives NULL for a backend that does not offer it.
 *
 * The rules of assay/device.h: every function that returns a status leaves its text in error_text() of the calling
 * thread. What a device does not report is missing from `known`, never an invented number.
 */
#ifndef ASSAY_TELEMETRY_H
#define ASSAY_TELEMETRY_H
#include <assay/device.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct assay_telemetry_reader assay_telemetry_reader; /* opaque: the telemetry of one device */

/* ---- a sample ---------------------------------------------------------------------------------------------------- */

/* Bits of assay_telemetry_sample.known: the fields that are set. */
#define ASSAY_TELEMETRY_GPU_UTILISATION 1u /* utilisation: share of the time in which a kernel ran on the GPU */
#define ASSAY_TELEMETRY_CPU_UTILISATION 2u /* utilisation: share of the time of the processors the process may use */
#define ASSAY_TELEMETRY_SM_CLOCK 4u
#define ASSAY_TELEMETRY_MEMORY_CLOCK 8u
#define ASSAY_TELEMETRY_POWER 16u
#define ASSAY_TELEMETRY_TEMPERATURE 32u
#define ASSAY_TELEMETRY_ENERGY 64u
#define ASSAY_TELEMETRY_THROTTLE 128u
#define ASSAY_TELEMETRY_FOREIGN_PROCESSES 256u
#define ASSAY_TELEMETRY_FOREIGN_MEMORY 512u
#define ASSAY_TELEMETRY_OWN_MEMORY 1024u /* since 1.2 */

/* Bits of assay_telemetry_sample.throttle: what holds the clocks down. */
#define ASSAY_THROTTLE_IDLE 1u               /* idle */
#define ASSAY_THROTTLE_APPLICATION_CLOCKS 2u /* a user set lower ones */
#define ASSAY_THROTTLE_POWER_CAP 4u
#define ASSAY_THROTTLE_HW_SLOWDOWN 8u /* the hardware halves them or more: heat, power brake or power supply */
#define ASSAY_THROTTLE_SYNC_BOOST 16u /* another GPU of its group is slower */
#define ASSAY_THROTTLE_THERMAL 32u    /* the driver, because of heat */
#define ASSAY_THROTTLE_HW_THERMAL 64u /* the hardware, because of heat */
#define ASSAY_THROTTLE_POWER_BRAKE 128u
#define ASSAY_THROTTLE_DISPLAY_CLOCKS 256u

typedef struct assay_telemetry_sample {
  size_t struct_size;
  uint64_t known;    /* ASSAY_TELEMETRY_* */
  uint64_t throttle; /* ASSAY_THROTTLE_* */
  /* The mean over the `utilisation_span_s` seconds before the sample: the time since the last sample with this field,
   * or the time over which the device itself averages. */
  double utilisation_percent;
  double utilisation_span_s;
  double sm_clock_mhz;
  double memory_clock_mhz;
  double power_w; /* NVIDIA GPUs from Ampere on: the mean over the last second */
  double temperature_c;
  double energy_j;            /* a counter: only differences have a meaning */
  uint64_t foreign_processes; /* others that compute on it: siblings of the case count, its children do not */
  uint64_t foreign_memory_bytes;
  uint64_t own_memory_bytes; /* Since 1.2. Device memory of this process and its children */
} assay_telemetry_sample;

typedef int32_t assay_telemetry_moment;
#define ASSAY_TELEMETRY_BEGIN 0  /* a window begins: forgets earlier samples. May take a while */
#define ASSAY_TELEMETRY_WITHIN 1 /* cheap: leaves out other processes, and what takes long to read */
#define ASSAY_TELEMETRY_END 2    /* a window ends. May take a while */

/* ---- what does not change while a case runs ---------------------------------------------------------------------- */

/* Bits of assay_telemetry_limits.known. */
#define ASSAY_LIMIT_MAX_SM_CLOCK 1u
#define ASSAY_LIMIT_MAX_MEMORY_CLOCK 2u
#define ASSAY_LIMIT_APPLICATION_SM_CLOCK 4u
#define ASSAY_LIMIT_APPLICATION_MEMORY_CLOCK 8u
#define ASSAY_LIMIT_POWER 16u
#define ASSAY_LIMIT_DEFAULT_POWER 32u

typedef struct assay_telemetry_limits {
  size_t struct_size;
  uint64_t known; /* ASSAY_LIMIT_* */
  double max_sm_clock_mhz;
  double max_memory_clock_mhz;
  double application_sm_clock_mhz;
  double application_memory_clock_mhz;
  double power_w; /* the limit in force */
  double default_power_w;
  char driver[64]; /* "580.95.05"; "" without one */
} assay_telemetry_limits;

/* ---- extension "assay.telemetry/1" ------------------------------------------------------------------------------- */

typedef struct assay_telemetry {
  size_t struct_size;
  /* ASSAY_UNSUPPORTED with the reason and the remedy if the device reports nothing here. On the thread that uses the
   * device. The reader is closed before the device. */
  assay_status (*open)(struct assay_device*, assay_telemetry_reader** out) ASSAY_NOEXCEPT;
  void (*close)(assay_telemetry_reader*) ASSAY_NOEXCEPT;
  /* Names the figures that the device does not report here, and why, in one line; "" if it reports all that its kind
   * can. Lives as long as the reader. */
  const char* (*note)(assay_telemetry_reader*)ASSAY_NOEXCEPT;
  assay_status (*limits)(assay_telemetry_reader*, assay_telemetry_limits* out) ASSAY_NOEXCEPT;
  /* `out` has its struct_size set. One thread at a time, which need not be the one that uses the device: it touches
   * neither the device nor its streams. Processor utilisation covers those that the calling thread may use. */
  assay_status (*sample)(assay_telemetry_reader*, assay_telemetry_moment, assay_telemetry_sample* out) ASSAY_NOEXCEPT;
} assay_telemetry;
#define ASSAY_EXT_TELEMETRY "assay.telemetry/1"

#ifdef __cplusplus
}
#endif
#endif
