// Rows of tokens to the rows of their experts, and sums of those back. Tokens are read as often as they have experts,
// from the second time on from the L2 cache, which is why what is written goes past it.
#include "cuda_error.hpp"
#include "kernels/experts.hpp"
#include "kernels/held.cuh"
#include "kernels/tiles.cuh"

namespace assay::cuda {
namespace {

constexpr int threads = 256;
constexpr int gather_packs = 4;  // per thread: as many loads under way

template <class T, int N>
__device__ __forceinline__ Held<T, N> filled(float x) {
  float all[N];
#pragma unroll
  for (int i = 0; i < N; ++i) all[i] = x;
  return held_from<T>(all);
}

__device__ __forceinline__ float nan() { return __int_as_float(0x7fc00000); }

template <class T, int N>
__global__ void __launch_bounds__(threads)
    gather_rows_kernel(const T* __restrict__ x, const std::int32_t* __restrict__ sources, T* __restrict__ rows,
                       std::uint32_t packs, FastDivision packs_per_row, FastDivision copies, std::int64_t choices,
                       std::int64_t width) {
  const std::uint32_t first = blockIdx.x * (threads * gather_packs) + threadIdx.x;
  Held<T, N> value[gather_packs];
  std::int64_t target[gather_packs];
#pragma unroll
  for (int k = 0; k < gather_packs; ++k) {
    std::uint32_t row = first + k * threads;
    if (row >= packs) continue;
    const std::int64_t column = static_cast<std::int64_t>(packs_per_row.split(row)) * N;
    const std::int32_t source = __ldg(sources + row);
    target[k] = row * width + column;
    if (source >= 0 && source < choices)
      value[k] = hold<N, Cache::constant>(x + copies.quotient(static_cast<std::uint32_t>(source)) * width + column);
    else
      value[k] = filled<T, N>(source == -1 ? 0.0F : nan());
  }
#pragma unroll
  for (int k = 0; k < gather_packs; ++k)
    if (first + k * threads < packs) store<Cache::streaming>(rows + target[k], value[k]);
}

template <class T, int N>
void gather(cudaStream_t stream, const T* x, const std::int32_t* sources, T* rows, std::int64_t tokens,
            std::int64_t row_count, std::int64_t width, std::int64_t copies) {
  for_tiles(row_count, width / N, [&](std::int64_t row, std::int64_t count, std::int64_t pack, std::int64_t packs) {
    const std::int64_t total = count * packs;
    gather_rows_kernel<T, N><<<grid_size(total, threads * gather_packs), threads, 0, stream>>>(
        x + pack * N, sources + row, rows + row * width + pack * N, static_cast<std::uint32_t>(total),
        FastDivision(packs), FastDivision(copies), tokens * copies, width);
    check_launch("gather_rows");
  });
}

// A thread has a pack of a token's row, and the loads of `batch` rows under way. Sums are in the order of the choices.
template <class T, int N, int batch>
__global__ void __launch_bounds__(threads)
    combine_rows_kernel(const T* __restrict__ rows, const std::int32_t* __restrict__ places,
                        const T* __restrict__ residual, T* __restrict__ y, std::uint32_t packs,
                        FastDivision packs_per_row, int chosen, std::int64_t row_count, std::int64_t width) {
  std::uint32_t token = blockIdx.x * threads + threadIdx.x;
  if (token >= packs) return;
  const std::int64_t column = static_cast<std::int64_t>(packs_per_row.split(token)) * N;
  const std::int32_t* const of_token = places + static_cast<std::int64_t>(token) * chosen;
  const std::int64_t target = token * width + column;
  Held<T, N> last;
  if (residual) last = hold<N, Cache::streaming>(residual + target);
  float sum[N] = {};
  const auto add = [&](const Held<T, N>& held) {
    float numbers[N];
    unpack(held, numbers);
#pragma unroll
    for (int i = 0; i < N; ++i) sum[i] += numbers[i];
  };
  for (int first = 0; first < chosen; first += batch) {
    Held<T, N> value[batch];
#pragma unroll
    for (int j = 0; j < batch; ++j) {
      const std::int32_t place = first + j < chosen ? __ldg(of_token + first + j) : -1;
      if (place >= 0 && place < row_count)
        value[j] = hold<N, Cache::streaming>(rows + place * width + column);
      else
        value[j] = filled<T, N>(place == -1 ? 0.0F : nan());
    }
#pragma unroll
    for (int j = 0; j < batch; ++j) add(value[j]);
  }
  if (residual) add(last);
  store(y + target, held_from<T>(sum));
}

template <class T, int N>
void combine(cudaStream_t stream, const T* rows, const std::int32_t* places, const T* residual, T* y,
             std::int64_t tokens, std::int64_t row_count, std::int64_t chosen, std::int64_t width) {
  const auto kernel = chosen <= 2   ? combine_rows_kernel<T, N, 2>
                      : chosen <= 4 ? combine_rows_kernel<T, N, 4>
                                    : combine_rows_kernel<T, N, 8>;
  for_tiles(tokens, width / N, [&](std::int64_t token, std::int64_t count, std::int64_t pack, std::int64_t packs) {
    const std::int64_t total = count * packs, at = token * width + pack * N;
    kernel<<<grid_size(total, threads), threads, 0, stream>>>(
        rows + pack * N, places + token * chosen, residual ? residual + at : nullptr, y + at,
        static_cast<std::uint32_t>(total), FastDivision(packs), static_cast<int>(chosen), row_count, width);
    check_launch("combine_rows");
  });
}

}  // namespace

void launch_gather_rows(cudaStream_t stream, compute::DType type, const void* x, const std::int32_t* sources,
                        void* rows, std::int64_t tokens, std::int64_t row_count, std::int64_t width,
                        std::int64_t copies) {
  dispatch_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool wide = width % pack_width<T> == 0 && aligned({x, rows});
    const auto launch = wide ? gather<T, pack_width<T>> : gather<T, 1>;
    launch(stream, static_cast<const T*>(x), sources, static_cast<T*>(rows), tokens, row_count, width, copies);
  });
}

void launch_combine_rows(cudaStream_t stream, compute::DType type, const void* rows, const std::int32_t* places,
                         const void* residual, void* y, std::int64_t tokens, std::int64_t row_count,
                         std::int64_t chosen, std::int64_t width) {
  dispatch_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool wide = width % pack_width<T> == 0 && aligned({rows, residual, y});
    const auto launch = wide ? combine<T, pack_width<T>> : combine<T, 1>;
    launch(stream, static_cast<const T*>(rows), places, static_cast<const T*>(residual), static_cast<T*>(y), tokens,
           row_count, chosen, width);
  });
}

}  // namespace assay::cuda
