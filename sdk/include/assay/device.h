/* assay/device.h - the table that a device backend library exports, and through which the host drives a device.
 *
 * The host links no vendor library: it opens the backend (libassay_device_cpu.so, libassay_device_cuda.so) when a case
 * asks for its kind, finds `assay_device_v1`, and creates streams, records events and takes memory through it.
 * Nothing here assumes that device memory is host memory or that work is done when an enqueuing call returns.
 *
 * The same rules as in assay/abi.h, and frozen like it; it grows as that does. The major version is part of the
 * symbol's name and of the ids of its extensions; the minor counts what is appended here and to the extensions' headers
 * (algorithms.h, cache.h, graph_events.h, memory_account.h, observation.h, planning.h, probe.h, profiling.h,
 * telemetry.h), each of whose tables has a size. If a function fills a struct, the caller sets struct_size, and the
 * function writes no byte behind it. A host accepts every table that has the fields up to `release`, and uses later
 * ones if they are present.
 *
 * Every function that returns a status leaves its text in error_text().
 * Threads: an assay_device is used by one thread at a time; count() and error_text() by any.
 */
#ifndef ASSAY_DEVICE_H
#define ASSAY_DEVICE_H
#include <assay/abi.h>

#define ASSAY_DEVICE_ABI_MAJOR 1u
#define ASSAY_DEVICE_ABI_MINOR 3u /* counts appended fields and extensions */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct assay_device assay_device; /* opaque: one opened device */
typedef struct assay_event assay_event;   /* opaque: a point on a stream's timeline */

typedef struct assay_device_info {
  size_t struct_size;
  uint64_t memory_total_bytes;
  uint64_t memory_free_bytes; /* largest allocation possible now */
  int32_t compute_units;      /* threads in use on the CPU, streaming multiprocessors on CUDA */
  int32_t reserved;
  char name[256];      /* "AMD EPYC 9454", "NVIDIA H200" */
  char libraries[512]; /* "oneDNN 2.6.3; OpenMP 4.5, 2 threads; kernels avx512" */
  /* Since 1.1. The hardware's address, the same in every process: "0000:18:00.0", or "" if it has none. (An
   * ordinal counts the devices that a process may see.) */
  char bus_address[32];
  /* Since 1.1. The hardware's id, whatever slot it is in: "GPU-..." of a GPU, "MIG-..." of a part of one, or "" if it
   * has none. */
  char uuid[96];
} assay_device_info;

typedef struct assay_device_api {
  size_t struct_size;
  uint32_t abi_major, abi_minor;
  const char* kind;  /* "cpu", "cuda" */
  const char* build; /* "1.0.0 g++ 12.2 Release" */
  /* Text of the last failure on the calling thread; never NULL; lives until the thread's next failing call. */
  const char* (*error_text)(void)ASSAY_NOEXCEPT;
  /* Number of usable devices. ASSAY_UNSUPPORTED with text when the kind cannot work here (no driver). */
  assay_status (*count)(int32_t* out) ASSAY_NOEXCEPT;
  /* Makes the device current on the calling thread. */
  assay_status (*open)(int32_t ordinal, assay_device** out) ASSAY_NOEXCEPT;
  void (*close)(assay_device*) ASSAY_NOEXCEPT;
  assay_status (*info)(assay_device*, assay_device_info* out) ASSAY_NOEXCEPT;
  assay_status (*stream_create)(assay_device*, void** out_stream) ASSAY_NOEXCEPT;
  void (*stream_destroy)(assay_device*, void* stream) ASSAY_NOEXCEPT;
  assay_status (*stream_synchronize)(assay_device*, void* stream) ASSAY_NOEXCEPT;
  assay_status (*event_create)(assay_device*, assay_event** out) ASSAY_NOEXCEPT;
  void (*event_destroy)(assay_device*, assay_event*) ASSAY_NOEXCEPT;
  assay_status (*event_record)(assay_device*, assay_event*, void* stream) ASSAY_NOEXCEPT;
  /* Blocks until the event has happened. */
  assay_status (*event_synchronize)(assay_device*, assay_event*) ASSAY_NOEXCEPT;
  /* Nanoseconds on the device's timeline from `begin` to `end`; both have happened. */
  assay_status (*event_elapsed_ns)(assay_device*, assay_event* begin, assay_event* end, double* out) ASSAY_NOEXCEPT;
  /* 256-byte aligned and backed by real memory when it returns, or ASSAY_OUT_OF_MEMORY. */
  assay_status (*allocate)(assay_device*, size_t bytes, void** out) ASSAY_NOEXCEPT;
  void (*release)(assay_device*, void* address) ASSAY_NOEXCEPT;
  /* Named ranges for an external profiler (NVTX on CUDA). May be NULL. `name` lives as long as the process. */
  void (*range_push)(assay_device*, const char* name) ASSAY_NOEXCEPT;
  void (*range_pop)(assay_device*) ASSAY_NOEXCEPT;
  /* Unknown ids give NULL. "assay.compute/1": assay/compute/backend.hpp; others: assay/profiling.h, telemetry.h. In
   * the table that the host gives to a plugin it is never NULL. */
  const void* (*get_extension)(const char* id)ASSAY_NOEXCEPT;
} assay_device_api;

#define ASSAY_DEVICE_SYMBOL "assay_device_v1"
extern ASSAY_EXPORT const assay_device_api assay_device_v1;

#ifdef __cplusplus
}
#endif
#endif
