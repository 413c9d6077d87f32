// Shapes that kernels of every device take. No more than <stdint.h>: the kernels of the CPU include this.
#pragma once
#include <stdint.h>

namespace assay::compute {

// Two walks over equal shapes, outermost dimension first; the last two extents may be 1.
struct CopyShape {
  int64_t extent[4];
  int64_t to_step[4], from_step[4];
};

struct RotaryShape {
  int64_t batch, positions, heads, pairs;        // pairs: half the head dimension
  int64_t batch_step, position_step, head_step;  // in elements; pairs are adjacent elements
};

struct HeadSteps {
  int64_t batch, position, head;  // in elements
};
struct HeadNormShape {
  int64_t batch, positions, heads, queries, pairs;  // the first `queries` heads are those of queries
  HeadSteps x, rotated, dx;                         // rotated: or the gradient by it; dx: of a backward
};

// Keys of latent attention: `nope` columns of each head, then 2 `pairs` that all heads share.
struct LatentKeysShape {
  int64_t batch, positions, heads, nope, pairs;
  HeadSteps of_nope, of_shared, of_k;  // or of the gradients by them; of_shared has no heads
};

struct SwigluShape {
  int64_t rows, width;
  int64_t gate_step, up_step, dh_step, dgate_step, dup_step, h_step;  // from row to row, in elements
};

}  // namespace assay::compute
