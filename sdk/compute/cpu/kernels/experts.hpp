// Kernels of mixtures of experts. A table's [2] is the type of the numbers, fp32 or bf16 (kernel_f32, kernel_bf16),
// which are computed in fp32 and rounded once. Indices have been checked. Every sum has one order, whatever the number
// of threads.
#pragma once
#include <stdint.h>

#include "isa.hpp"

namespace assay::cpu {

struct RouteArgs {
  bool sigmoid, normalized;
  float factor;
  int64_t tokens, count, k;  // count: of experts
  float* scores;             // [tokens, count]
  float* lse;                // [tokens]
  int32_t* experts;          // [tokens, k]
  float* weights;            // [tokens, k]: of the backward, their gradients
  // Of the forward alone; bias and given may be NULL.
  const void* logits;
  const float* bias;
  const int32_t* given;
  // Of the backward alone.
  void* dlogits;
  const int32_t* counts;
  float balance, z;  // of one token and one choice: with the scale, and divided by tokens and choices
};

// Sums over tokens are made of those of blocks, in double.
constexpr int64_t routing_block_tokens = 256;
constexpr int64_t routing_blocks(int64_t tokens) { return (tokens + routing_block_tokens - 1) / routing_block_tokens; }
struct RoutingLossArgs {
  int64_t tokens, count;
  const float *scores, *lse;
  const int32_t* counts;
  float* losses;     // [2]
  double* partials;  // routing_blocks(tokens) * (count + 1)
};

struct GatedArgs {
  int64_t rows, width;
  int64_t gate_step, up_step, dgate_step, dup_step;  // from row to row, in elements
  float alpha, limit, offset;                        // limit 0: none
  const void *gate, *up;
  const float* weights;
  const int32_t* sources;
  void* h;  // of the backward it may be NULL
  // Of the backward alone.
  const void* dh;
  void *dgate, *dup;
  float* dweights;  // of a weight that a row has
};

struct ExpertKernels {
  void (*route_forward[2])(const RouteArgs&);   // by the type of logits
  void (*route_backward[2])(const RouteArgs&);  // by the type of dlogits
  void (*routing_losses)(const RoutingLossArgs&);
  // Rows of `bytes`; row r of `to` is row sources[r] / copies of `from`, or 0.
  void (*gather_rows)(void* to, const void* from, const int32_t* sources, int64_t rows, int64_t bytes, int64_t copies);
  // `residual` may be NULL.
  void (*combine_rows[2])(void* y, const void* rows, const int32_t* places, const void* residual, int64_t tokens,
                          int64_t k, int64_t width);
  void (*gated_forward[2])(const GatedArgs&);
  void (*gated_backward[2])(const GatedArgs&);
  // The sums of the columns of each group's rows, [groups, width]; [type of dy][type of dbias].
  void (*group_bias[2][2])(void* dbias, const void* dy, const int32_t* offsets, int64_t groups, int64_t width,
                           bool accumulate);
  // dw = sum (+ dw), of so many elements, for a bf16 dw whose sum was made in fp32.
  void (*round_sum)(void* dw, const float* sum, int64_t count, bool accumulate);
};

}  // namespace assay::cpu

ASSAY_DECLARE_KERNELS_WITH_BF16(ExpertKernels, expert_kernels)
