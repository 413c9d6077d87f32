// Softmax over the rows of [rows, columns], forward and backward.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/tensor.hpp>

#include <cstdint>

namespace assay::cuda {

struct SoftmaxArgs {
  compute::DType type;
  std::int64_t rows, columns;  // columns: 1 to 2^31 - 1
  float scale;
  bool causal;           // row r sees the first r % queries + 1 + columns - queries columns; y is 0 in the others
  std::int64_t queries;  // rows per matrix
  const void* x;         // forward: the scores; backward: y
  const void* dy;
  void* out;  // may be x or dy
};

void softmax_forward(const SoftmaxArgs&, cudaStream_t);
void softmax_backward(const SoftmaxArgs&, cudaStream_t);

}  // namespace assay::cuda
