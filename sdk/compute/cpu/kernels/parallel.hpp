// Shares [0, n) among the OpenMP threads. Included by kernel files only (see isa.hpp).
#pragma once
#include <omp.h>
#include <stdint.h>

#include "math.hpp"

namespace assay::cpu::ASSAY_ISA {

// Below this many touched bytes, waking the other threads costs more than they save.
constexpr int64_t parallel_bytes = 128 << 10;

// body(begin, end), once per thread, on ranges whose inner bounds are multiples of `granule`; on the calling thread
// alone when n < `threshold`. The branch is ours and not an `if` clause: that makes OpenMP build a team of one, each
// time.
template <class Body>
ASSAY_INLINE void parallel_ranges(int64_t n, int64_t granule, int64_t threshold, const Body& body) {
  if (n < threshold || omp_get_max_threads() == 1) {
    if (n > 0) body(int64_t{0}, n);
    return;
  }
#pragma omp parallel
  {
    const int64_t threads = omp_get_num_threads();
    const int64_t granules = (n + granule - 1) / granule;
    const int64_t thread = omp_get_thread_num();
    const int64_t begin = granules * thread / threads * granule;
    const int64_t end = granules * (thread + 1) / threads * granule;
    if (begin < end) body(begin, end < n ? end : n);
  }
}

// Over the rows of something `row_bytes` wide.
template <class Body>
ASSAY_INLINE void parallel_rows(int64_t rows, int64_t row_bytes, const Body& body) {
  parallel_ranges(rows, 1, parallel_bytes / (row_bytes > 0 ? row_bytes : 1) + 1, body);
}

}  // namespace assay::cpu::ASSAY_ISA
