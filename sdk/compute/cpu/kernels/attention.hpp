// Tiled attention: softmax(scale q k^T) v and its gradients, without the matrix of all scores.
#pragma once
#include <stdint.h>

#include "dropout.hpp"
#include "isa.hpp"
#include "sinks.hpp"

namespace assay::cpu {

// One of q, k, v, ...: element [batch, time, head, depth] lies at the sum of index times stride; depth has stride 1.
struct AttentionView {
  void* data;
  int64_t batch_stride, time_stride, head_stride;  // in elements
};

struct AttentionArgs {
  AttentionView q, k, v, out, dout, dq, dk, dv;  // the gradients are for the backward alone
  float* lse;                                    // [batch, heads, queries]
  int64_t batch, heads, queries, keys;
  int64_t depth;        // of q, k, dq, dk
  int64_t value_depth;  // of v, out, dout, dv
  int64_t key_heads;    // of k, v, dk, dv; `heads` is a multiple of it
  float scale;
  bool causal;     // key j is visible to query i when j <= i + (keys - queries)
  int64_t window;  // and when i + (keys - queries) - j < window; 0: no bound
  // [batch, queries], of as many queries as keys: and when j is no less than this, which never falls from query to
  // query; null: no bound
  const int32_t* first_keys;
  float soft_cap;       // scores become soft_cap tanh(score / soft_cap); 0: they stay
  SinkVector sinks;     // [heads], one more score of each query
  SinkVector dsinks;    // of the backward, with sinks
  bool accumulate;      // add to dsinks
  bool bf16;            // the type of all views; fp32 otherwise
  DropoutArgs dropout;  // of the probabilities, as elements of [batch, heads, queries, keys]
  int threads;
  void* scratch;  // 64-byte aligned, as many bytes as the *_scratch_bytes function says for these arguments
};

// A query that sees no key gets out 0 and the sink as lse, -infinity without one. The results do not depend on the
// number of threads.
struct AttentionKernels {
  int64_t (*forward_scratch_bytes)(const AttentionArgs&);
  void (*forward)(const AttentionArgs&);
  int64_t (*backward_scratch_bytes)(const AttentionArgs&);
  void (*backward)(const AttentionArgs&);
};

}  // namespace assay::cpu

ASSAY_DECLARE_KERNELS(AttentionKernels, attention_kernels)
