// A bias on every row, and its gradient: the sums of the columns.
#include "cuda_error.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/tiles.cuh"
#include "kernels/types.cuh"
#include "scratch_sizes.hpp"

namespace assay::cuda {
namespace {

using compute::DType;

constexpr int threads = 256;
constexpr int packs_each = 2;

// x and y are the same matrix or two: x is read as what this kernel may write.
template <class T, class B, int N>
__global__ void __launch_bounds__(threads)
    bias_add_kernel(const T* x, const B* __restrict__ bias, T* y, std::uint32_t packs, FastDivision packs_per_row,
                    std::int64_t width) {
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
    shift[k] = load_pack<N, Cache::constant>(bias + column);
  }
#pragma unroll
  for (int k = 0; k < packs_each; ++k) {
    if (first + k * threads >= packs) continue;
    float sum[N];
#pragma unroll
    for (int j = 0; j < N; ++j) sum[j] = to_float(value[k].v[j]) + to_float(shift[k].v[j]);
    store_pack(y + at[k], pack_from<T>(sum));
  }
}

template <class T, class B, int N>
void add_bias(cudaStream_t stream, const T* x, const B* bias, T* y, std::int64_t rows, std::int64_t width) {
  for_tiles(rows, width / N, [&](std::int64_t row, std::int64_t count, std::int64_t pack, std::int64_t packs) {
    const std::int64_t total = count * packs, start = row * width + pack * N;
    bias_add_kernel<T, B, N><<<grid_size(total, threads * packs_each), threads, 0, stream>>>(
        x + start, bias + pack * N, y + start, static_cast<std::uint32_t>(total), FastDivision(packs), width);
    check_launch("bias_add");
  });
}

// ---- gradient ------------------------------------------------------------------------------------------------------

constexpr int lanes = bias_lanes,
              strips = bias_strips;  // of a block: lanes lie across the columns, strips take the rows in turn
constexpr int partial_threads = lanes * strips;
constexpr int rows_under_way = bias_rows_under_way;
static_assert(bias_load_bytes == pack_bytes);

// partial[blockIdx.y][c] = sum of dy[r][c] over the block's rows. Each strip sums every eighth row in order, then the
// strips are added in order: the same sum for either N.
template <class T, int N>
__global__ void __launch_bounds__(partial_threads)
    bias_partial_kernel(const T* __restrict__ dy, float* __restrict__ partial, std::int64_t rows, std::int64_t width) {
  __shared__ float shared[strips][lanes * N];
  const int lane = threadIdx.x % lanes, strip = threadIdx.x / lanes;
  const std::int64_t tile = static_cast<std::int64_t>(blockIdx.x) * (lanes * N), column = tile + lane * N;
  const std::int64_t last = rows * (blockIdx.y + 1) / gridDim.y;
  float sum[N] = {};
  if (column < width) {
    std::int64_t r = rows * blockIdx.y / gridDim.y + strip;
    for (; r + (rows_under_way - 1) * strips < last; r += rows_under_way * strips) {
      Pack<T, N> value[rows_under_way];
#pragma unroll
      for (int k = 0; k < rows_under_way; ++k)
        value[k] = load_pack<N, Cache::constant>(dy + (r + k * strips) * width + column);
#pragma unroll
      for (int k = 0; k < rows_under_way; ++k)
#pragma unroll
        for (int j = 0; j < N; ++j) sum[j] += to_float(value[k].v[j]);
    }
    for (; r < last; r += strips) {
      const Pack<T, N> value = load_pack<N, Cache::constant>(dy + r * width + column);
#pragma unroll
      for (int j = 0; j < N; ++j) sum[j] += to_float(value.v[j]);
    }
  }
#pragma unroll
  for (int j = 0; j < N; ++j) shared[strip][lane * N + j] = sum[j];
  __syncthreads();
  for (int c = threadIdx.x; c < lanes * N; c += partial_threads) {
    if (tile + c >= width) break;
    float total = 0.0F;
#pragma unroll
    for (int k = 0; k < strips; ++k) total += shared[k][c];
    partial[blockIdx.y * width + tile + c] = total;
  }
}

constexpr int finish_strips = 32, finish_threads = lanes * finish_strips;

template <class B>
__global__ void __launch_bounds__(finish_threads)
    bias_finish_kernel(const float* __restrict__ partial, B* dbias, bool accumulate, int blocks, std::int64_t width) {
  __shared__ float shared[finish_strips][lanes];
  const int lane = threadIdx.x % lanes, strip = threadIdx.x / lanes;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * lanes + lane;
  float sum = 0.0F;
  if (column < width) {
#pragma unroll 8
    for (int b = strip; b < blocks; b += finish_strips) sum += partial[b * width + column];
  }
  shared[strip][lane] = sum;
  __syncthreads();
  if (strip != 0 || column >= width) return;
  float total = accumulate ? to_float(dbias[column]) : 0.0F;
#pragma unroll
  for (int k = 0; k < finish_strips; ++k) total += shared[k][lane];
  dbias[column] = from_float<B>(total);
}

// f(TypeTag<T>(), TypeTag<B>()): a bias is fp32 or of the matrix's type.
template <class F>
void dispatch_bias(DType type, DType bias_type, F&& f) {
  dispatch_float(type, [&](auto tag) {
    if (bias_type == DType::f32)
      f(tag, TypeTag<float>());
    else if (bias_type == type)
      f(tag, tag);
    else
      misused("a bias that is neither fp32 nor of the matrix's type");
  });
}

}  // namespace

void launch_bias_add(cudaStream_t stream, DType type, DType bias_type, const void* x, const void* bias, void* y,
                     std::int64_t rows, std::int64_t width) {
  dispatch_bias(type, bias_type, [&](auto tag, auto bias_tag) {
    using T = typename decltype(tag)::type;
    using B = typename decltype(bias_tag)::type;
    constexpr int N = pack_width<T>;
    const bool wide = width % N == 0 && aligned({x, bias, y});
    const auto launch = wide ? add_bias<T, B, N> : add_bias<T, B, 1>;
    launch(stream, static_cast<const T*>(x), static_cast<const B*>(bias), static_cast<T*>(y), rows, width);
  });
}

void launch_bias_backward(cudaStream_t stream, DType type, DType dbias_type, const void* dy, void* dbias,
                          bool accumulate, std::int64_t rows, std::int64_t width, float* partial) {
  if (width <= 0) return;
  const auto blocks = static_cast<unsigned>(bias_blocks(type, rows, width));
  dispatch_bias(type, dbias_type, [&](auto tag, auto bias_tag) {
    using T = typename decltype(tag)::type;
    using B = typename decltype(bias_tag)::type;
    constexpr int N = pack_width<T>;
    if (blocks > 0) {
      const bool wide = width % N == 0 && aligned({dy});
      const auto kernel = wide ? bias_partial_kernel<T, N> : bias_partial_kernel<T, 1>;
      const dim3 grid(grid_size(width, lanes * (wide ? N : 1)), blocks);
      kernel<<<grid, partial_threads, 0, stream>>>(static_cast<const T*>(dy), partial, rows, width);
      check_launch("bias_backward");
    }
    bias_finish_kernel<B><<<grid_size(width, lanes), finish_threads, 0, stream>>>(
        partial, static_cast<B*>(dbias), accumulate, static_cast<int>(blocks), width);
    check_launch("bias_backward");
  });
}

}  // namespace assay::cuda
