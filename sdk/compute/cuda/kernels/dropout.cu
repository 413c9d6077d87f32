#include "cuda_error.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/philox.cuh"
#include "kernels/types.cuh"

namespace assay::cuda {
namespace {

constexpr int threads = 256;

// A thread has the elements of one pack, whose random words are one or two blocks.
template <class T, bool wide>
__global__ void __launch_bounds__(threads)
    dropout_kernel(const T* x, T* y, std::int64_t count, std::uint32_t drop_below, float factor, PhiloxKey key,
                   const std::int64_t* __restrict__ step) {
  constexpr int N = pack_width<T>;
  __shared__ PhiloxKey step_key;
  if (threadIdx.x == 0) step_key = philox_key_of_step(key, static_cast<std::uint64_t>(*step));
  __syncthreads();
  const std::int64_t group = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x, first = group * N;
  if (first >= count) return;
  PhiloxBlock random[N / 4];
#pragma unroll
  for (int b = 0; b < N / 4; ++b) random[b] = philox(step_key, static_cast<std::uint64_t>(group * (N / 4) + b));
  const auto kept_or_zero = [&](int j, T value) {
    return random[j / 4].word[j % 4] >= drop_below ? to_float(value) * factor : 0.0F;
  };
  if (wide && first + N <= count) {
    const Pack<T, N> value = load_pack<N>(x + first);
    float kept[N];
#pragma unroll
    for (int j = 0; j < N; ++j) kept[j] = kept_or_zero(j, value.v[j]);
    store_pack(y + first, pack_from<T>(kept));
  } else {
#pragma unroll
    for (int j = 0; j < N; ++j)
      if (first + j < count) y[first + j] = from_float<T>(kept_or_zero(j, x[first + j]));
  }
}

}  // namespace

void launch_dropout(cudaStream_t stream, compute::DType type, const void* x, void* y, std::int64_t count,
                    std::uint32_t drop_below, float factor, std::uint64_t seed, std::uint64_t random_stream,
                    const std::int64_t* step) {
  if (count <= 0) return;
  dispatch_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto kernel = aligned({x, y}) ? dropout_kernel<T, true> : dropout_kernel<T, false>;
    kernel<<<grid_size(count, threads * pack_width<T>), threads, 0, stream>>>(
        static_cast<const T*>(x), static_cast<T*>(y), count, drop_below, factor, PhiloxKey{seed, random_stream}, step);
    check_launch("dropout");
  });
}

}  // namespace assay::cuda
