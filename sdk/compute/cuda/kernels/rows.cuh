// How threads share the rows of a [rows, columns] operation: narrow rows get a warp each, wider ones a block. A thread
// keeps its packs of the row in registers, so that the row is read once; rows that are too wide for that are read again
// for each look at them. Included by .cu files only.
#pragma once
#include "kernels/held.cuh"

namespace assay::cuda {

// A block of `threads` x `rows` threads: `threads`, a multiple of a warp, go over one row and hold `held` packs each;
// held == 0 says that the row does not fit and is walked in a loop.
struct RowShape {
  int threads, rows, held;
};

// For kernels with 512 threads at most that hold 2 or 4 packs per thread, or (scalar) 4.
inline RowShape row_shape(std::int64_t packs, bool vectorised) {
  const auto threads_at = [packs](int held) {
    return static_cast<int>(ceil_div(ceil_div(packs, held), warp_size)) * warp_size;
  };
  const int fewest = vectorised ? 2 : 4;
  if (packs <= warp_size * 4) return {warp_size, 4, packs <= warp_size * fewest ? fewest : 4};
  if (packs <= 256 * fewest) return {threads_at(fewest), 1, fewest};
  if (packs <= 512 * 4) return {threads_at(4), 1, 4};
  return {512, 1, 0};
}

inline unsigned row_grid(std::int64_t rows, const RowShape& shape) { return grid_size(rows, shape.rows, 1 << 30); }

// body(i, k) for the packs i of a row that this thread has; k is the register that may hold it. K == 0: a loop.
template <int K, class Body>
__device__ __forceinline__ void each_pack(int packs, Body body) {
  if constexpr (K > 0) {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      const int i = static_cast<int>(threadIdx.x) + k * static_cast<int>(blockDim.x);
      if (i < packs) body(i, k);
    }
  } else {
    for (int i = static_cast<int>(threadIdx.x); i < packs; i += static_cast<int>(blockDim.x)) body(i, 0);
  }
}

struct Sum {
  static constexpr float nothing = 0.0F;
  __device__ __forceinline__ static float join(float a, float b) { return a + b; }
};
struct Largest {  // leaves NaN out
  static constexpr float nothing = -__builtin_huge_valf();
  __device__ __forceinline__ static float join(float a, float b) { return fmaxf(a, b); }
};

constexpr int row_reducer_floats = 128;

// Rows of more than one warp in a block: one, or several that do not wait for each other.
enum class Rows { one, several };

// Reductions over the threads of a row, with the result in all of them, in the same order each time. All threads of the
// row must take part; in the row, accesses to memory before a reduction happen before those behind it. Each reduction
// has one barrier: the next one uses the other half of `shared`, and the one after that writes where all threads have
// read before the barrier of the next one.
template <Rows rows>
class BasicRowReducer {
 public:
  __device__ __forceinline__ explicit BasicRowReducer(float* shared) : shared_(shared) {}

  template <class Operation, int N>  // N values at once; N times the warps of the block are 64 at most
  __device__ __forceinline__ void reduce(float (&x)[N]) {
#pragma unroll
    for (int n = 0; n < N; ++n) x[n] = over_warp<Operation>(x[n]);
    if (blockDim.x == warp_size) {
      __syncwarp();
      return;
    }
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    const int warps = static_cast<int>(blockDim.x) / warp_size;  // of one row
    float* const mine = shared_ + turn_ * (row_reducer_floats / 2) + static_cast<int>(threadIdx.y) * warps * N;
    if (lane == 0) {
#pragma unroll
      for (int n = 0; n < N; ++n) mine[n * warps + static_cast<int>(threadIdx.x) / warp_size] = x[n];
    }
    sync_row();
#pragma unroll
    for (int n = 0; n < N; ++n) x[n] = over_warp<Operation>(lane < warps ? mine[n * warps + lane] : Operation::nothing);
    turn_ ^= 1;
  }

  template <class Operation>
  __device__ __forceinline__ float reduce(float x) {
    float one[1] = {x};
    reduce<Operation>(one);
    return one[0];
  }

 private:
  // Barrier 0 is the block's; there are 15 others, and so at most 15 rows of more than one warp.
  __device__ __forceinline__ static void sync_row() {
    if constexpr (rows == Rows::one)
      __syncthreads();
    else
      asm volatile("barrier.sync.aligned %0, %1;" ::"r"(threadIdx.y + 1), "r"(blockDim.x) : "memory");
  }

  template <class Operation>
  __device__ __forceinline__ static float over_warp(float x) {
#pragma unroll
    for (int offset = warp_size / 2; offset > 0; offset /= 2)
      x = Operation::join(x, __shfl_xor_sync(0xffffffffu, x, offset));
    return x;
  }

  float* shared_;
  int turn_ = 0;
};

using RowReducer = BasicRowReducer<Rows::one>;

}  // namespace assay::cuda
