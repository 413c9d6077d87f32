// How a strided copy walks two tensors. No more than <stdint.h>: kernels of every device include this.
#pragma once
#include <stdint.h>

namespace assay::compute {

// Two walks over equal shapes, outermost dimension first; the last two extents may be 1.
struct CopyShape {
  int64_t extent[4];
  int64_t to_step[4], from_step[4];
};

}  // namespace assay::compute
