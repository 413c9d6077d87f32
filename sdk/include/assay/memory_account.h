/* assay/memory_account.h - the device memory that a device's library takes besides requested allocations. An optional
 * extension of the device table: assay_device_api.get_extension() gives NULL for a backend that does not offer it.
 */
#ifndef ASSAY_MEMORY_ACCOUNT_H
#define ASSAY_MEMORY_ACCOUNT_H
#include <assay/abi.h>
#include <assay/device.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct assay_memory_account {
  size_t struct_size;
  /* [any-thread] From here on the library calls account->report, in bytes and as ASSAY_MEMORY_WORKSPACE, for memory
   * that it takes and frees: buffers on which algorithms are timed, captured graphs, handles of libraries. It calls on
   * any thread that uses the device. NULL ends the reports. The account must live until then. */
  void (*tell)(struct assay_device*, const assay_memory* account) ASSAY_NOEXCEPT;
} assay_memory_account;
#define ASSAY_EXT_MEMORY_ACCOUNT "assay.memory_account/1"

#ifdef __cplusplus
}
#endif
#endif
