// Softmax and attention.
#pragma once
#include <assay/compute/operation_fields.hpp>
#include <assay/compute/operations/elementwise.hpp>

#include <array>

namespace assay::compute {

struct AttentionShape {
  float scale = 0.0F;  // usually 1/sqrt(D); not 0
  bool causal = true;  // key j is visible to query i when j <= i + (Tk - Tq)
  // Drops elements of the softmax's result. Element i counts in [B, H, Tq, Tk], so that the mask is that of
  // ApplyDropout on the score matrix; but cuDNN's attention (16-bit types on CUDA) makes a mask of its own from the
  // same three numbers.
  Dropout dropout = {};
  ASSAY_TENSORS(dropout)
};

namespace op {

// y[..., i, j] = softmax over j of scale * x[..., i, j], with j > i + (Tk - Tq) left out when causal (y is 0 there).
struct SoftmaxForward {
  In x;  // T [..., Tq, Tk], contiguous
  Out y;
  float scale;
  bool causal;
  static constexpr auto in_place = std::to_array<InPlace>({{"y", "x"}});
  ASSAY_OPERATION("softmax_forward", x, y)
};
struct SoftmaxBackward {
  In y, dy;
  Out dx;
  float scale;
  static constexpr auto in_place = std::to_array<InPlace>({{"dx", "dy"}});
  ASSAY_OPERATION("softmax_backward", y, dy, dx)
};

// Tiled attention, without the Tq x Tk matrix. Honours strides: a packed query-key-value buffer is three views.
//
// Keys and values may have fewer heads than queries, K of which H is a multiple (grouped-query attention): query head h
// reads key head h / (H / K), and its gradient is the sum over the H / K heads that read it.
struct AttentionForward {
  In q;     // T [B, Tq, H, D]
  In k, v;  // T [B, Tk, K, D]
  Out out;  // T [B, Tq, H, D]
  Out lse;  // fp32 [B, H, Tq], the log-sum-exp of each row of scores
  AttentionShape shape;
  ASSAY_OPERATION("attention_forward", q, k, v, out, lse, shape)
};
struct AttentionBackward {
  In q, k, v, out, lse, dout;
  Out dq, dk, dv;  // as q, k, v
  AttentionShape shape;
  ASSAY_OPERATION("attention_backward", q, k, v, out, lse, dout, dq, dk, dv, shape)
};

}  // namespace op
}  // namespace assay::compute
