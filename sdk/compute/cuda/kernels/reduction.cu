// Sums run in double: a sum of a hundred million gradients in fp32 would lose the small ones. That costs nothing, since
// memory is slower. Maximum and non-finite tests look at the bits, which orders NaN above all numbers.
#include "kernels/reduction.hpp"

#include "cuda_error.hpp"
#include "kernels/held.cuh"

namespace assay::cuda {
namespace {

constexpr int threads = 256;
constexpr int unrolled = 4;  // packs that a thread has on their way at once

struct SumOf {
  using Total = double;
  __device__ static Total of(float x) { return static_cast<double>(x); }
  __device__ static Total join(Total a, Total b) { return a + b; }
  __device__ static float result(Total total, float factor) {
    return static_cast<float>(total * static_cast<double>(factor));
  }
};
struct SumOfSquares : SumOf {
  __device__ static Total of(float x) { return static_cast<double>(x) * static_cast<double>(x); }
};
struct MaxOfBits {
  using Total = unsigned int;
  __device__ static Total of(float x) { return __float_as_uint(x) & 0x7fffffffU; }
  __device__ static Total join(Total a, Total b) { return max(a, b); }
  __device__ static float result(Total total, float) { return __uint_as_float(total); }
};
struct CountOfNonfinite {
  using Total = unsigned long long;
  __device__ static Total of(float x) { return (__float_as_uint(x) & 0x7f800000U) == 0x7f800000U ? 1 : 0; }
  __device__ static Total join(Total a, Total b) { return a + b; }
  __device__ static float result(Total total, float) { return static_cast<float>(total); }
};

// The total over the block, in thread 0. 0 is what joins without effect in all operations.
template <class Operation>
__device__ typename Operation::Total join_block(typename Operation::Total total) {
  using Total = typename Operation::Total;
  __shared__ Total of_warps[threads / warp_size];
#pragma unroll
  for (int offset = warp_size / 2; offset > 0; offset /= 2)
    total = Operation::join(total, __shfl_down_sync(0xffffffffU, total, offset));
  if (threadIdx.x % warp_size == 0) of_warps[threadIdx.x / warp_size] = total;
  __syncthreads();
  if (threadIdx.x == 0) {
#pragma unroll
    for (int w = 1; w < threads / warp_size; ++w) total = Operation::join(total, of_warps[w]);
  }
  return total;
}

// A single block writes the result itself; several leave their totals for finish_kernel.
template <class Operation, class T, int V>
__global__ void __launch_bounds__(threads) reduce_kernel(const ReductionArgs a) {
  using Total = typename Operation::Total;
  const T* const x = static_cast<const T*>(a.x);
  const std::int64_t packs = a.count / V;
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  const std::int64_t first = blockIdx.x * std::int64_t{threads} + threadIdx.x;
  Total totals[V] = {};
  const auto take = [&](const Held<T, V>& held) {
    float values[V];
    unpack(held, values);
#pragma unroll
    for (int e = 0; e < V; ++e) totals[e] = Operation::join(totals[e], Operation::of(values[e]));
  };
  std::int64_t i = first;
  for (; i + (unrolled - 1) * step < packs; i += unrolled * step) {
    Held<T, V> held[unrolled];
#pragma unroll
    for (int u = 0; u < unrolled; ++u) held[u] = hold<V, Cache::constant>(x + (i + u * step) * V);
#pragma unroll
    for (int u = 0; u < unrolled; ++u) take(held[u]);
  }
  for (; i < packs; i += step) take(hold<V, Cache::constant>(x + i * V));
  if (const std::int64_t left = packs * V + first; left < a.count)  // fewer than V of them: one for a thread
    totals[0] = Operation::join(totals[0], Operation::of(to_float(x[left])));
#pragma unroll
  for (int e = 1; e < V; ++e) totals[0] = Operation::join(totals[0], totals[e]);
  const Total total = join_block<Operation>(totals[0]);
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1)
    *a.out = Operation::result(total, a.factor);
  else
    static_cast<Total*>(a.partials)[blockIdx.x] = total;
}

template <class Operation>
__global__ void __launch_bounds__(threads) finish_kernel(const ReductionArgs a, int blocks) {
  using Total = typename Operation::Total;
  Total total{};
  for (int b = static_cast<int>(threadIdx.x); b < blocks; b += threads)
    total = Operation::join(total, static_cast<const Total*>(a.partials)[b]);
  total = join_block<Operation>(total);
  if (threadIdx.x == 0) *a.out = Operation::result(total, a.factor);
}

template <class Operation>
void reduce(const ReductionArgs& a, const char* operation, cudaStream_t stream) {
  unsigned blocks = 1;
  dispatch_float(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int wide = pack_width<T>;
    blocks = grid_size(a.count, std::int64_t{threads} * wide * unrolled, most_reduction_blocks);
    if (aligned({a.x}))
      reduce_kernel<Operation, T, wide><<<blocks, threads, 0, stream>>>(a);
    else
      reduce_kernel<Operation, T, 1><<<blocks, threads, 0, stream>>>(a);
  });
  check_launch(operation);
  if (blocks == 1) return;
  finish_kernel<Operation><<<1, threads, 0, stream>>>(a, static_cast<int>(blocks));
  check_launch(operation);
}

}  // namespace

void sum(const ReductionArgs& a, cudaStream_t stream) { reduce<SumOf>(a, "sum", stream); }
void sum_of_squares(const ReductionArgs& a, cudaStream_t stream) { reduce<SumOfSquares>(a, "sum_of_squares", stream); }
void max_abs(const ReductionArgs& a, cudaStream_t stream) { reduce<MaxOfBits>(a, "max_abs", stream); }
void count_nonfinite(const ReductionArgs& a, cudaStream_t stream) {
  reduce<CountOfNonfinite>(a, "count_nonfinite", stream);
}

}  // namespace assay::cuda
