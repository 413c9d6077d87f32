// A kernel's access to sinks. Included by .cu files only.
#pragma once
#include "kernels/sink_vector.hpp"
#include "kernels/types.cuh"

namespace assay::cuda {

__device__ inline float sink_of(const SinkVector& v, std::int64_t head) {
  if (v.type == compute::DType::bf16) return to_float(static_cast<const bf16*>(v.data)[head]);
  if (v.type == compute::DType::f16) return to_float(static_cast<const f16*>(v.data)[head]);
  return static_cast<const float*>(v.data)[head];
}
// Adds where `accumulate` says so.
__device__ inline void store_sink_gradient(const SinkVector& v, std::int64_t head, float sum, bool accumulate) {
  if (accumulate) sum += sink_of(v, head);
  if (v.type == compute::DType::bf16)
    static_cast<bf16*>(v.data)[head] = from_float<bf16>(sum);
  else if (v.type == compute::DType::f16)
    static_cast<f16*>(v.data)[head] = from_float<f16>(sum);
  else
    static_cast<float*>(v.data)[head] = sum;
}

}  // namespace assay::cuda
