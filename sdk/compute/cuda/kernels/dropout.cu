#include "kernels/dropout.cuh"

#include "cuda_error.hpp"
#include "kernels/tiles.cuh"

namespace assay::cuda {
namespace {

using compute::DType;

constexpr int threads = 256;

// A thread has the elements of one pack, whose random words are one or two blocks.
template <class T, bool wide>
__global__ void __launch_bounds__(threads)
    dropout_kernel(const T* x, T* y, std::int64_t count, const DropoutArgs dropout) {
  constexpr int N = pack_width<T>;
  const PhiloxKey key = step_key_of_block(dropout);
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x) * N;
  if (first >= count) return;
  float value[N];
  if (wide && first + N <= count) {
    unpack(load_pack<N>(x + first), value);
    drop(value, key, static_cast<std::uint64_t>(first), dropout);
    store_pack(y + first, pack_from<T>(value));
  } else {
#pragma unroll
    for (int j = 0; j < N; ++j) value[j] = first + j < count ? to_float(x[first + j]) : 0.0F;
    drop(value, key, static_cast<std::uint64_t>(first), dropout);
#pragma unroll
    for (int j = 0; j < N; ++j)
      if (first + j < count) y[first + j] = from_float<T>(value[j]);
  }
}

// ---- fused with bias and ReLU --------------------------------------------------------------------------------------

constexpr int packs_each = 2;

// x and y are the same matrix or two: x is read as what this kernel may write. `start`: how many elements of the whole
// matrix lie before this tile.
template <class T, class B, int N, bool drops>
__global__ void __launch_bounds__(threads)
    bias_relu_dropout_kernel(const T* x, const B* __restrict__ bias, T* y, std::uint32_t packs,
                             FastDivision packs_per_row, std::int64_t width, std::int64_t start,
                             const DropoutArgs dropout) {
  const std::uint32_t first = blockIdx.x * (threads * packs_each) + threadIdx.x;
  Pack<T, N> value[packs_each];
  Pack<B, N> shift[packs_each];
  std::int64_t at[packs_each];
#pragma unroll
  for (int k = 0; k < packs_each; ++k) {
    std::uint32_t row = first + k * threads;
    if (row >= packs) continue;
    const std::int64_t column = static_cast<std::int64_t>(packs_per_row.split(row)) * N;
    at[k] = row * width + column;
    value[k] = load_pack<N>(x + at[k]);
    if (bias) shift[k] = load_pack<N, Cache::constant>(bias + column);
  }
  PhiloxKey key{};
  if constexpr (drops) key = step_key_of_block(dropout);  // while the packs are on their way
#pragma unroll
  for (int k = 0; k < packs_each; ++k) {
    if (first + k * threads >= packs) continue;
    float result[N];
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const float sum = bias ? to_float(value[k].v[j]) + to_float(shift[k].v[j]) : to_float(value[k].v[j]);
      result[j] = sum < 0.0F ? 0.0F : sum;  // NaN stays NaN
    }
    if constexpr (drops) drop(result, key, static_cast<std::uint64_t>(start + at[k]), dropout);
    store_pack(y + at[k], pack_from<T>(result));
  }
}

template <class T, class B, int N, bool drops>
void bias_relu_dropout(cudaStream_t stream, const T* x, const B* bias, T* y, std::int64_t rows, std::int64_t width,
                       const DropoutArgs& dropout) {
  for_tiles(rows, width / N, [&](std::int64_t row, std::int64_t count, std::int64_t pack, std::int64_t packs) {
    const std::int64_t total = count * packs, start = row * width + pack * N;
    bias_relu_dropout_kernel<T, B, N, drops><<<grid_size(total, threads * packs_each), threads, 0, stream>>>(
        x + start, bias ? bias + pack * N : nullptr, y + start, static_cast<std::uint32_t>(total), FastDivision(packs),
        width, start, dropout);
    check_launch("bias_relu_dropout_forward");
  });
}

__global__ void attention_seed_kernel(const DropoutArgs dropout, std::int64_t* random) {
  random[0] = static_cast<std::int64_t>(step_key(dropout).seed);
  random[1] = 0;
}

}  // namespace

void launch_dropout(cudaStream_t stream, DType type, const void* x, void* y, std::int64_t count,
                    const DropoutArgs& dropout) {
  if (count <= 0) return;
  dispatch_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto kernel = aligned({x, y}) ? dropout_kernel<T, true> : dropout_kernel<T, false>;
    kernel<<<grid_size(count, threads * pack_width<T>), threads, 0, stream>>>(static_cast<const T*>(x),
                                                                              static_cast<T*>(y), count, dropout);
    check_launch("dropout");
  });
}

void launch_bias_relu_dropout(cudaStream_t stream, DType type, DType bias_type, const void* x, const void* bias,
                              void* y, std::int64_t rows, std::int64_t width, const DropoutArgs& dropout) {
  const auto with = [&](auto tag, auto bias_tag) {
    using T = typename decltype(tag)::type;
    using B = typename decltype(bias_tag)::type;
    constexpr int N = pack_width<T>;
    const bool wide = width % N == 0 && aligned({x, bias, y}), drops = dropout.drop_below > 0;
    const auto launch = wide ? (drops ? bias_relu_dropout<T, B, N, true> : bias_relu_dropout<T, B, N, false>)
                             : (drops ? bias_relu_dropout<T, B, 1, true> : bias_relu_dropout<T, B, 1, false>);
    launch(stream, static_cast<const T*>(x), static_cast<const B*>(bias), static_cast<T*>(y), rows, width, dropout);
  };
  dispatch_float(type, [&](auto tag) {
    if (!bias || bias_type == type)
      with(tag, tag);
    else
      with(tag, TypeTag<float>());
  });
}

void launch_attention_seed(cudaStream_t stream, const DropoutArgs& dropout, std::int64_t* random) {
  attention_seed_kernel<<<1, 1, 0, stream>>>(dropout, random);
  check_launch("the seed of attention's dropout");
}

}  // namespace assay::cuda
