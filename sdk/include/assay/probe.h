/* assay/probe.h - what a device and its libraries do, measured by trials: what a launch costs, how often telemetry
 * changes, what a library accepts. An optional extension of the device table: assay_device_api.get_extension() gives
 * NULL for a backend that does not offer it.
 *
 * The rules of assay/device.h: every function that returns a status leaves its text in error_text().
 */
#ifndef ASSAY_PROBE_H
#define ASSAY_PROBE_H
#include <assay/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where a probe writes what it has found. A key is a table and a name of a device's file (docs/devices.md), with its
 * unit: "graph.launch_us". The callee copies both texts. */
typedef struct assay_probe_sink {
  size_t struct_size;
  void* context;
  void (*number)(void* context, const char* key, double value) ASSAY_NOEXCEPT;
  void (*text)(void* context, const char* key, const char* value) ASSAY_NOEXCEPT;
} assay_probe_sink;

typedef struct assay_probe {
  size_t struct_size;
  const char* names; /* of the probes, in the order in which a caller runs them: "events copies"; static text */
  /* [measure-thread] Runs one on a device that does nothing else meanwhile. It frees what it takes. What was found
   * before a failure has been written. INVALID_ARGUMENT for a name that is not in `names`. */
  assay_status (*run)(struct assay_device*, const char* name, const assay_probe_sink*) ASSAY_NOEXCEPT;
} assay_probe;
#define ASSAY_EXT_PROBE "assay.probe/1"

#ifdef __cplusplus
}
#endif
#endif
