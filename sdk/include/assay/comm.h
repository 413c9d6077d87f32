/* assay/comm.h - extension "assay.comm/1": the ranks of a case, and a small key-value service that joins them.
 *
 * Meant for wiring up: addresses, the id of a communicator, what each rank decided. Values are small (a few
 * KiB) and calls take tens of microseconds at least; data goes through a communication library
 * (assay/comm/communicator.hpp), which is built on this. Offered for every case, with one rank as well.
 *
 * Keys belong to the case: another case does not see them. Every call that waits has a deadline. A call whose wait
 * fails has set the text already, as set_message does: a plugin only returns the status. ASSAY_COMM_ERROR: the deadline
 * passed, a rank was lost, or the case is ending.
 *
 * Frozen, and grows as assay/abi.h does, whose minor counts what is appended here: the host that offers this table
 * states its version. The table needs no separate version: the id has the major, struct_size the rest.
 */
#ifndef ASSAY_COMM_H
#define ASSAY_COMM_H
#include <assay/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct assay_comm {
  size_t struct_size;
  void* impl;
  int32_t rank, rank_count;             /* of the case */
  int32_t local_rank, local_rank_count; /* among the ranks on this machine */
  const char* host_name;                /* this machine's name */
  /* A numeric address (IPv4 or IPv6) by which the other ranks reach this one: of the interface that leads to rank 0,
   * the loopback's when all ranks are on one machine. */
  const char* address;
  const char* library_folder; /* where this installation keeps its communication backends */
  int64_t timeout_ms;         /* how long a wait for another rank may last before it is an error */
  /* [any-thread] Sets a key, also if it has a value. */
  assay_status (*set)(const struct assay_comm*, assay_str key, const void* data, size_t bytes) ASSAY_NOEXCEPT;
  /* [any-thread] Waits until the key has a value. *bytes is its size; up to `capacity` bytes of it are copied. */
  assay_status (*get)(const struct assay_comm*, assay_str key, int64_t timeout_ms, void* data, size_t capacity,
                      size_t* bytes) ASSAY_NOEXCEPT;
  /* [any-thread] Adds to a counter, 0 at first; *value is the sum. Counters and the keys of set and get are separate.
   */
  assay_status (*add)(const struct assay_comm*, assay_str key, int64_t delta, int64_t* value) ASSAY_NOEXCEPT;
  /* [any-thread] Every rank calls it with the same name and the same `bytes`, once per name; it returns when all have,
   * with `all` (rank_count * bytes) in the order of the ranks. Late ranks are named when the deadline passes. With 0
   * bytes it is a barrier. */
  assay_status (*exchange)(const struct assay_comm*, assay_str name, int64_t timeout_ms, const void* mine, size_t bytes,
                           void* all) ASSAY_NOEXCEPT;
  /* [any-thread] Cheap, does not wait. Not 0: the case is ending because this or another rank failed; a thread that
   * waits in another library should stop waiting. */
  int32_t (*aborted)(const struct assay_comm*) ASSAY_NOEXCEPT;
  /* [any-thread] Call these around a wait for another rank inside another library, so that the host does not blame this
   * rank when the wait takes too long. The host already knows the waits of this table, and its waits for the device. */
  void (*begin_wait)(const struct assay_comm*) ASSAY_NOEXCEPT;
  void (*end_wait)(const struct assay_comm*) ASSAY_NOEXCEPT;
} assay_comm;
#define ASSAY_EXT_COMM "assay.comm/1"

#ifdef __cplusplus
}
#endif
#endif
