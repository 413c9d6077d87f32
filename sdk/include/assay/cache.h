/* assay/cache.h - flushes a device's caches. An optional extension of the device table:
 * assay_device_api.get_extension() gives NULL for a backend that does not offer it.
 *
 * The rules of assay/device.h: every function that returns a status leaves its text in error_text().
 */
#ifndef ASSAY_CACHE_H
#define ASSAY_CACHE_H
#include <assay/device.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct assay_cache {
  size_t struct_size;
  /* [measure-thread] Enqueues a walk through memory of twice the caches' size, which evicts all that was used before.
   * The first call takes that memory, and the device keeps it until it is closed. ASSAY_UNSUPPORTED with text if the
   * caches' size is not known. */
  assay_status (*flush)(struct assay_device*, void* stream) ASSAY_NOEXCEPT;
} assay_cache;
#define ASSAY_EXT_CACHE "assay.cache/1"

#ifdef __cplusplus
}
#endif
#endif
