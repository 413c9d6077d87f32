// Sums whose rounding is the point: in one order, with every partial result rounded to the accumulator's type by the
// device's own addition and multiplication of that type. Not for speed.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/operations/reductions.hpp>

#include <cstddef>
#include <cstdint>

#include "scratch_sizes.hpp"

namespace assay::cuda {

struct OrderedSumArgs {
  compute::DType type;
  std::int64_t count;
  const void *x, *y;  // y: the other factor of each product, or nullptr
  float* out;
  float* partials;  // ordered_sum_partials()
  compute::SumOptions options;
};

void ordered_sum(const OrderedSumArgs&, cudaStream_t);

}  // namespace assay::cuda
