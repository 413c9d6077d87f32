// Softmax over the rows of [rows, columns], forward and backward.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/tensor.hpp>

#include <cstdint>

#include "kernels/sink_vector.hpp"

namespace assay::cuda {

struct SoftmaxArgs {
  compute::DType type;
  std::int64_t rows, columns;  // columns: 1 to 2^31 - 1
  float scale;
  bool causal;           // row r sees the first r % queries + 1 + columns - queries columns; y is 0 in the others
  std::int64_t queries;  // rows per matrix
  std::int64_t window;   // a row sees that many columns up to its own place at most; 0: no bound
  // Of the forward, and no columns before first_keys[row / rows_of_sequence * stride + row % queries]; null: no bound.
  const std::int32_t* first_keys;
  std::int64_t first_keys_stride, rows_of_sequence;
  float soft_cap;  // scores, scaled, become soft_cap tanh(score / soft_cap); 0: they stay
  // Of rows [batch, heads, queries]: one more score of each head's rows, and log-sum-exps by row. Null: none.
  std::int64_t heads;
  SinkVector sinks;
  float* lse;
  SinkVector dsinks;  // of the backward, with sinks
  bool accumulate;    // add to dsinks
  const void* x;      // forward: the scores; backward: y
  const void* dy;
  void* out;  // may be x or dy
};

void softmax_forward(const SoftmaxArgs&, cudaStream_t);
void softmax_backward(const SoftmaxArgs&, cudaStream_t);

}  // namespace assay::cuda
