// Tiled attention of fp32 tensors, forward and backward, in exact fp32 arithmetic (under tf32 math too: more exact than
// allowed, and cuDNN has no fp32 attention to hand it to). No matrix of scores is stored. Deterministic: every sum has
// one owner and a fixed order.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/dropout.hpp"

namespace assay::cuda {

// A [B, T, H, D] operand: strides in elements, D contiguous.
struct AttentionFp32View {
  float* data = nullptr;
  std::int64_t batch = 0, time = 0, head = 0;
};

struct AttentionFp32Args {
  std::int64_t batch = 0, heads = 0;
  std::int64_t key_heads = 0;  // of k, v, dk, dv; `heads` is a multiple of it, and query head h reads h / group
  int group = 1;               // heads / key_heads
  int queries = 0, keys = 0;
  int depth = 0;        // of q, k, dq, dk
  int value_depth = 0;  // of v, out, dout, dv
  float scale = 1.0F;
  bool causal = false;  // key j is visible to query i when j <= i + (keys - queries)
  int window = 0;       // and when i + (keys - queries) - j < window; 0: no bound
  // [B, queries], of as many queries as keys: and when j is no less than this, which never falls from query to query;
  // null: no bound.
  const int* first_keys = nullptr;
  float soft_cap = 0.0F;  // scores become soft_cap tanh(score / soft_cap); 0: they stay
  AttentionFp32View q, k, v, out;
  float* lse = nullptr;          // [B, H, queries]; -infinity for a query that sees no key, whose out is 0
  const float* sinks = nullptr;  // [H], one more score of each query; null: there is none
  DropoutArgs dropout;           // of the probabilities; elements count in [B, H, queries, keys]
  // The backward's; delta is scratch, [B, H, queries].
  AttentionFp32View dout, dq, dk, dv;
  float* delta = nullptr;
};

// Which shapes they serve: refusal_of() of attention_operands.hpp.

// Throw assay::Error when a launch fails.
void attention_fp32_forward(const AttentionFp32Args& args, cudaStream_t stream);
void attention_fp32_backward(const AttentionFp32Args& args, cudaStream_t stream);

}  // namespace assay::cuda
