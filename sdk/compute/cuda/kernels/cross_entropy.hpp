// Cross-entropy of rows of logits [rows, columns] with labels [rows].
//
// A label < 0 is ignored: its loss and its gradient are 0. A label >= classes makes the row's loss, lse and gradient
// NaN: a kernel cannot throw, and whoever checks the loss will see it.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/tensor.hpp>

#include <cstdint>

namespace assay::cuda {

// What an operation does not use is left out (nullptr).
struct CrossEntropyArgs {
  compute::DType type;
  std::int64_t rows, columns;  // columns: 1 to 2^31 - 1
  const void* logits;
  const std::int64_t* labels;
  float *losses, *lse;
  float scale;
  const float* loss_scale;                          // one number or nullptr
  void* dlogits;                                    // may be logits
  std::int64_t first_class, classes_each, classes;  // of the columns; `classes`: all that there are
  float soft_cap;                                   // logits x become soft_cap tanh(x / soft_cap); 0: they stay
};

void cross_entropy_forward(const CrossEntropyArgs&, cudaStream_t);
void cross_entropy_backward(const CrossEntropyArgs&, cudaStream_t);
void cross_entropy_in_place(const CrossEntropyArgs&, cudaStream_t);  // dlogits is logits

}  // namespace assay::cuda
