/* assay/algorithms.h - what a device backend and the libraries below it have chosen to run: the implementation or
 * algorithm of each operation and shape. An optional extension of the device table: assay_device_api.get_extension()
 * gives NULL for a backend that does not offer it.
 *
 * The rules of assay/device.h: every function that returns a status leaves its text in error_text().
 */
#ifndef ASSAY_ALGORITHMS_H
#define ASSAY_ALGORITHMS_H
#include <assay/device.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct assay_algorithm {
  size_t struct_size;
  /* Never NULL; live until the next operation is prepared. The same choice has the same text in every process, without
   * measured times and addresses. */
  const char* made_for;  /* operation and shape: "matmul bf16 512x768x2304" */
  const char* algorithm; /* "cublasLt algo 66 tile 20 ..."; several are joined by " | " */
} assay_algorithm;

typedef struct assay_algorithms {
  size_t struct_size;
  /* [measure-thread] How many have been chosen since the device was opened, in the order of their first use. */
  assay_status (*count)(struct assay_device*, uint64_t* out) ASSAY_NOEXCEPT;
  assay_status (*get)(struct assay_device*, uint64_t index, assay_algorithm* out) ASSAY_NOEXCEPT;
} assay_algorithms;
#define ASSAY_EXT_ALGORITHMS "assay.algorithms/1"

#ifdef __cplusplus
}
#endif
#endif
