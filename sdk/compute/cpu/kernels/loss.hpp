// Softmax and cross-entropy over the last dimension.
#pragma once
#include <stdint.h>

#include "isa.hpp"
#include "sinks.hpp"

namespace assay::cpu {

struct SoftmaxArgs {
  bool bf16;
  const void* x;  // forward: scores; backward: the probabilities
  const void* dy;
  void* out;  // may be x (forward) or dy (backward)
  int64_t rows, columns;
  float scale;
  bool causal;      // row r sees columns j <= r % queries + (columns - queries)
  int64_t queries;  // rows of one score matrix
  int64_t window;   // and columns j with r % queries + (columns - queries) - j < window; 0: no bound
  // Of the forward, and columns j no less than first_keys[r / rows_of_sequence * stride + r % queries]; null: no bound.
  const int32_t* first_keys;
  int64_t first_keys_stride, rows_of_sequence;
  float soft_cap;  // scores, scaled, become soft_cap tanh(score / soft_cap); 0: they stay
  // Of rows [batch, heads, queries]: one more score of each head's rows, and log-sum-exps by row. Null: none.
  int64_t heads;
  SinkVector sinks;
  float* lse;
  SinkVector dsinks;  // of the backward, with sinks
  bool accumulate;    // add to dsinks
};

struct CrossEntropyArgs {
  bool bf16;
  const void* logits;
  void* dlogits;  // may be logits
  const int64_t* labels;
  float* losses;
  float* lse;
  int64_t rows, columns;
  float scale;
  int64_t first_class, classes_each, classes;  // of the columns; `classes`: all that there are
  float soft_cap;                              // logits x become soft_cap tanh(x / soft_cap); 0: they stay
};

// A label that is not below `classes` makes its row NaN: loss, lse and gradient.
struct LossKernels {
  void (*softmax_forward)(const SoftmaxArgs&);
  void (*softmax_backward)(const SoftmaxArgs&);
  void (*cross_entropy_forward)(const CrossEntropyArgs&);
  void (*cross_entropy_backward)(const CrossEntropyArgs&);
  void (*cross_entropy_in_place)(const CrossEntropyArgs&);
};

}  // namespace assay::cpu

ASSAY_DECLARE_KERNELS(LossKernels, loss_kernels)
