// Embedding and position.
#pragma once
#include <assay/compute/operation_fields.hpp>
#include <assay/compute/rotary_scaling.hpp>

namespace assay::compute::op {

// out[r, :] = table[ids[r], :]. An id out of range is an error where the host can see it (CPU).
struct EmbeddingForward {
  In ids;    // i64, one for each row
  In table;  // [V, C]
  Out out;   // [..., C], of another type than the table where wanted
  ASSAY_OPERATION("embedding_forward", ids, table, out)
};
// dtable[ids[r], :] (+)= dout[r, :]; the same sum in the same order for any number of threads. Without `accumulate`
// rows that no id names become 0.
struct EmbeddingBackward {
  In ids, dout;
  OutOrSum dtable;  // [V, C], fp32 or T
  bool accumulate = false;
  ASSAY_OPERATION("embedding_backward", ids, dout, dtable)
};

// The cosine and sine of position * theta^(-2i/D), or of the frequency that `scaling` makes of it (rotary_scaling.hpp).
struct RotaryTable {
  Out cos, sin;  // fp32 [T, D/2]
  double theta;
  RotaryScaling scaling = {};
  ASSAY_OPERATION("rotary_table", cos, sin)
};
// Rotates interleaved pairs (x0,x1), (x2,x3), ...; `inverse` rotates back, which is also the backward: of a table with
// a magnitude, too, by which both multiply.
struct Rotary {
  InOut x;      // T [B, T, H, D]; honours strides
  In cos, sin;  // fp32 [at least T, D/2]
  bool inverse = false;
  ASSAY_OPERATION("rotary", x, cos, sin)
};

}  // namespace assay::compute::op
