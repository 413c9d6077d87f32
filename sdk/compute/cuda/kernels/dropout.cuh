// The mask of dropout inside a kernel (its numbering: dropout.hpp). Included by .cu files only.
#pragma once
#include "kernels/dropout.hpp"
#include "kernels/philox.cuh"
#include "kernels/types.cuh"

namespace assay::cuda {

__device__ __forceinline__ PhiloxKey step_key(const DropoutArgs& dropout) {
  return philox_key_of_step({dropout.seed, dropout.stream}, static_cast<std::uint64_t>(__ldg(dropout.step)));
}

// The same, made by one thread for its block. All threads of the block must call it: there is a barrier inside.
__device__ __forceinline__ PhiloxKey step_key_of_block(const DropoutArgs& dropout) {
  __shared__ PhiloxKey key;
  if (threadIdx.x == 0 && threadIdx.y == 0) key = step_key(dropout);
  __syncthreads();
  return key;
}

// Whether element i is kept.
__device__ __forceinline__ bool kept(PhiloxKey key, std::uint64_t i, std::uint32_t drop_below) {
  const PhiloxBlock random = philox(key, i / 4);
  const std::uint32_t low = i & 1 ? random.word[1] : random.word[0], high = i & 1 ? random.word[3] : random.word[2];
  return (i & 2 ? high : low) >= drop_below;
}

// x[j] becomes what dropout leaves of element first + j. `first` is a multiple of 4 unless N is 1: one block of random
// words serves four elements.
template <int N>
__device__ __forceinline__ void drop(float (&x)[N], PhiloxKey key, std::uint64_t first, const DropoutArgs& dropout) {
  if constexpr (N == 1) {
    x[0] = kept(key, first, dropout.drop_below) ? x[0] * dropout.factor : 0.0F;
  } else {
    static_assert(N % 4 == 0);
#pragma unroll
    for (int b = 0; b < N / 4; ++b) {
      const PhiloxBlock random = philox(key, first / 4 + b);
#pragma unroll
      for (int j = 0; j < 4; ++j)
        x[4 * b + j] = random.word[j] >= dropout.drop_below ? x[4 * b + j] * dropout.factor : 0.0F;
    }
  }
}

}  // namespace assay::cuda
