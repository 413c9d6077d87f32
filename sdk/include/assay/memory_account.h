/* assay/memory_account.h - what a device's library takes of the device's memory by itself, beside what it is asked to
 * allocate. An optional extension of the device table: assay_device_api.get_extension() gives NULL for a backend that
 * does not offer it.
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
  /* [any-thread] From here on account->report is told, in bytes and as ASSAY_MEMORY_WORKSPACE, of what the library
   * takes and gives up: buffers on which algorithms are timed, captured graphs, handles of libraries. It is called on
   * whatever thread uses the device. NULL: nobody is told any more. The account must live until then. */
  void (*tell)(struct assay_device*, const assay_memory* account) ASSAY_NOEXCEPT;
} assay_memory_account;
#define ASSAY_EXT_MEMORY_ACCOUNT "assay.memory_account/1"

#ifdef __cplusplus
}
#endif
#endif
