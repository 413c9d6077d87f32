/* assay/profiling.h - how a device backend lets the host look into a case. Optional extensions of the device table:
 * assay_device_api.get_extension() gives NULL for an id that the backend does not offer.
 *
 * The rules of assay/device.h: every function that returns a status leaves its text in error_text().
 */
#ifndef ASSAY_PROFILING_H
#define ASSAY_PROFILING_H
#include <assay/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- extension "assay.profiler/1": the range that an external profiler records --------------------------------- */

typedef struct assay_profiler {
  size_t struct_size;
  /* Around the measured steps. Without an active profiler both do nothing. */
  assay_status (*start)(struct assay_device*) ASSAY_NOEXCEPT;
  assay_status (*stop)(struct assay_device*) ASSAY_NOEXCEPT;
} assay_profiler;
#define ASSAY_EXT_PROFILER "assay.profiler/1"

/* ---- extension "assay.kernel_trace/1": what ran on the device, and when ----------------------------------------- */

typedef int32_t assay_traced_kind;
#define ASSAY_TRACED_KERNEL 0
#define ASSAY_TRACED_COPY 1
#define ASSAY_TRACED_FILL 2
#define ASSAY_TRACED_ANCHOR 3 /* the mark of anchor() */

typedef struct assay_traced_work {
  size_t struct_size;
  const char* name;         /* a kernel's, as the compiler mangled it; "copy" or "fill" */
  int64_t start_ns, end_ns; /* on the trace's clock: only differences have a meaning */
  uint64_t bytes;           /* size of a copy or a fill */
  uint32_t grid[3];         /* blocks of a kernel */
  uint32_t block[3];        /* threads of a block */
  assay_traced_kind kind;
  int32_t in_graph; /* 1: a node of a graph that was launched as a whole */
} assay_traced_work;

typedef struct assay_kernel_trace {
  size_t struct_size;
  /* Starts tracing, and forgets what was traced before. ASSAY_UNSUPPORTED with the remedy when a library is missing, or
   * another profiler holds the device's tracing. The device's work is slower until end(). */
  assay_status (*begin)(struct assay_device*) ASSAY_NOEXCEPT;
  /* Enqueues a mark on the stream, long enough that all of what the caller enqueues next waits behind it. An event
   * recorded right after it happens, to about a microsecond, at the mark's end_ns: this relates the clocks of events
   * and of the trace. */
  assay_status (*anchor)(struct assay_device*, void* stream) ASSAY_NOEXCEPT;
  /* Waits for the device and ends tracing. The records are complete, and sorted by start_ns. */
  assay_status (*end)(struct assay_device*) ASSAY_NOEXCEPT;
  /* After end(), until the next begin(). */
  assay_status (*count)(struct assay_device*, uint64_t* out) ASSAY_NOEXCEPT;
  /* `out` has its struct_size set; the name lives until the next begin(). */
  assay_status (*get)(struct assay_device*, uint64_t index, assay_traced_work* out) ASSAY_NOEXCEPT;
} assay_kernel_trace;
#define ASSAY_EXT_KERNEL_TRACE "assay.kernel_trace/1"

#ifdef __cplusplus
}
#endif
#endif
