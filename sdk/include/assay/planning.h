/* assay/planning.h - extension "assay.planning/1" of a device table: a device that executes nothing.
 *
 * Such a device stands in for another one, which need not be in this machine. It hands out addresses that nobody may
 * read or write, refuses the operations for which assay's backend of the other device has no kernel, and reports each
 * operation's cost. A workload's setup and a step on it take the same memory as on the other one, except for what the
 * libraries of products choose there. Only the backends of the folder lib/assay/planned offer it.
 *
 * Frozen, and grows as assay/device.h does, whose minor counts what is appended here.
 */
#ifndef ASSAY_PLANNING_H
#define ASSAY_PLANNING_H
#include <assay/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct assay_stand_in {
  size_t struct_size;
  const char* name; /* of the other device */
  uint64_t memory_total_bytes;
  int32_t compute_units;
  int32_t reserved; /* 0 */
} assay_stand_in;

typedef void (*assay_operation_listener)(void* context, const assay_planned_operation*) ASSAY_NOEXCEPT;

typedef struct assay_planning {
  size_t struct_size;
  /* [main-thread] Before open(); the texts are copied. */
  assay_status (*describe)(const assay_stand_in*) ASSAY_NOEXCEPT;
  /* [main-thread] From here on `listener` gets each operation that is enqueued for execution, but not those that are
   * prepared or captured; a graph's when it is launched. NULL: no listener. */
  void (*listen)(assay_operation_listener listener, void* context) ASSAY_NOEXCEPT;
  /* [measure-thread] Reports an operation to the listener: for communicators, which know the device by its table. */
  void (*tell)(const assay_planned_operation*) ASSAY_NOEXCEPT;
  /* [measure-thread] Reports that a communicator was opened, which takes memory; and how many were opened so far. */
  void (*tell_communicator)(void) ASSAY_NOEXCEPT;
  uint64_t (*communicators)(void) ASSAY_NOEXCEPT;
  /* [main-thread] How many calls of allocate() were refused so far, because they exceed the address space. */
  uint64_t (*refusals)(void) ASSAY_NOEXCEPT;
} assay_planning;
#define ASSAY_EXT_PLANNING "assay.planning/1"

#ifdef __cplusplus
}
#endif
#endif
