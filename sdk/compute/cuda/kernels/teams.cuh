// Teams of threads for rows as narrow as 128 numbers of 16 bits: half a warp has one row, so that no lane is without
// work and a multiprocessor has twice the rows under way. Wider rows are shared as rows.cuh has it. Included by .cu
// files only.
#pragma once
#include "kernels/rows.cuh"

namespace assay::cuda {

constexpr int half_warp = warp_size / 2;

// Reductions over a team of half a warp: blockDim.x == half_warp. All threads of a warp must take part, those without
// a row with numbers that nobody reads.
class HalfWarpReducer {
 public:
  __device__ __forceinline__ explicit HalfWarpReducer(float*) {}

  template <class Operation, int N>
  __device__ __forceinline__ void reduce(float (&x)[N]) {
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int offset = half_warp / 2; offset > 0; offset /= 2)
        x[n] = Operation::join(x[n], __shfl_xor_sync(0xffffffffu, x[n], offset));
    __syncwarp();  // accesses to memory before come before those behind, as in the other reducers
  }

  template <class Operation>
  __device__ __forceinline__ float reduce(float x) {
    float one[1] = {x};
    reduce<Operation>(one);
    return one[0];
  }
};

template <bool half, Rows rows>
using TeamReducer = std::conditional_t<half, HalfWarpReducer, BasicRowReducer<rows>>;

}  // namespace assay::cuda
