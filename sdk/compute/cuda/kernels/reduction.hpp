// Reductions of a whole tensor to one fp32 number.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/tensor.hpp>

#include <cstddef>
#include <cstdint>

#include "scratch_sizes.hpp"

namespace assay::cuda {

// How many blocks share the work is a function of the number of elements alone, and so is the order of the sums.
struct ReductionArgs {
  compute::DType type;
  std::int64_t count;
  const void* x;
  float factor;  // of sum
  float* out;
  void* partials;  // reduction_scratch_bytes
};

void sum(const ReductionArgs&, cudaStream_t);
void sum_of_squares(const ReductionArgs&, cudaStream_t);
void max_abs(const ReductionArgs&, cudaStream_t);
void count_nonfinite(const ReductionArgs&, cudaStream_t);

}  // namespace assay::cuda
