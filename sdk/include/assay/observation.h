/* assay/observation.h - a device that is opened only for observation while other processes use it. An optional
 * extension of the device table: assay_device_api.get_extension() gives NULL for a backend whose open() leaves nothing
 * on the device that others could notice.
 *
 * On a GPU a process that computes has a context, and the GPU switches between the contexts of several processes.
 */
#ifndef ASSAY_OBSERVATION_H
#define ASSAY_OBSERVATION_H
#include <assay/device.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct assay_observation {
  size_t struct_size;
  /* As assay_device_api.open, but makes no context on the device, takes none of its memory, and makes nothing current
   * on the calling thread. info (with memory_free_bytes 0: unknown), stream_synchronize of NULL, close and
   * assay.telemetry/1 do not change that. The first call that needs a context makes it: the device is then as if opened
   * for use. */
  assay_status (*open)(int32_t ordinal, assay_device** out) ASSAY_NOEXCEPT;
} assay_observation;
#define ASSAY_EXT_OBSERVATION "assay.observation/1"

#ifdef __cplusplus
}
#endif
#endif
