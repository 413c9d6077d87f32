// Embedding and position.
#pragma once
#include <assay/compute/operation_fields.hpp>
#include <assay/compute/rotary_scaling.hpp>

#include <array>
#include <cstdint>

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

// RMS normalisation of each head over its D elements and the rotation behind it, in one pass over queries and keys that
// lie side by side (Qwen3): rotated = rotary(x * rstd * w), rstd = 1/sqrt(mean(x^2) + eps). The first `queries` heads
// are those of queries, whose w is weight[0]; the others are keys, whose w is weight[1].
struct HeadNormRotaryForward {
  In x;         // T [B, T, H, D]; honours strides
  In weight;    // fp32 or T [2, D]
  In cos, sin;  // fp32 [at least T, D/2]
  Out rotated;  // T [B, T, H, D]; honours strides
  std::int64_t queries;
  float eps;
  float weight_offset = 0;  // is added to w, as in RmsNormForward
  ASSAY_OPERATION("head_norm_rotary_forward", x, weight, cos, sin, rotated)
};
// dx = gradient by x; dweight (+)= gradient by weight. rstd is made again from x.
struct HeadNormRotaryBackward {
  In drotated, x;  // T [B, T, H, D]; honour strides, as dx does
  In weight;
  In cos, sin;
  Out dx;
  OutOrSum dweight;  // fp32 or T [2, D]
  std::int64_t queries;
  float eps;
  bool accumulate = false;
  float weight_offset = 0;
  static constexpr auto in_place = std::to_array<InPlace>({{"dx", "drotated"}});
  ASSAY_OPERATION("head_norm_rotary_backward", drotated, x, weight, cos, sin, dx, dweight)
};

}  // namespace assay::compute::op

// clang-format off
#define ASSAY_OPERATIONS_OF_EMBEDDING(X) \
  X(EmbeddingForward) X(EmbeddingBackward) X(RotaryTable) X(Rotary) X(HeadNormRotaryForward) \
  X(HeadNormRotaryBackward)
// clang-format on
