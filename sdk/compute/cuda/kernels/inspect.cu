#include "kernels/inspect.hpp"

#include <cuda_fp8.h>

#include <algorithm>

#include "common/hash_of_word.hpp"
#include "cuda_error.hpp"
#include "kernels/types.cuh"

namespace assay::cuda {
namespace {

using compute::BlockSums;
using compute::DType;

constexpr int threads = 256;
static_assert(threads == BlockSums::block_elements);
constexpr std::int64_t most_blocks = 1 << 20;
constexpr int tile = 16;

unsigned blocks_for(std::int64_t wanted) {
  return static_cast<unsigned>(std::clamp<std::int64_t>(wanted, 1, most_blocks));
}

__device__ double element(const void* x, DType type, std::int64_t i) {
  switch (type) {
    case DType::f32: return static_cast<double>(static_cast<const float*>(x)[i]);
    case DType::bf16: return static_cast<double>(__bfloat162float(static_cast<const __nv_bfloat16*>(x)[i]));
    case DType::f16: return static_cast<double>(__half2float(static_cast<const __half*>(x)[i]));
    case DType::i64: return static_cast<double>(static_cast<const long long*>(x)[i]);
    case DType::i32: return static_cast<double>(static_cast<const int*>(x)[i]);
    case DType::u8: return static_cast<double>(static_cast<const unsigned char*>(x)[i]);
    case DType::f8_e4m3:
      return static_cast<double>(
          __half2float(__half(__nv_cvt_fp8_to_halfraw(static_cast<const unsigned char*>(x)[i], __NV_E4M3))));
    case DType::f8_e5m2:
      return static_cast<double>(
          __half2float(__half(__nv_cvt_fp8_to_halfraw(static_cast<const unsigned char*>(x)[i], __NV_E5M2))));
  }
  return 0;
}

// Where element `i` of the elements in their order lies.
__device__ std::int64_t place_of(const Inspected& t, std::int64_t i) {
  std::int64_t place = 0;
#pragma unroll
  for (int d = 3; d >= 0; --d) {
    place += i % t.dims[d] * t.steps[d];
    i /= t.dims[d];
  }
  return place;
}

// The sum over the block, in thread 0. All threads take part.
__device__ double sum_of_block(double x) {
  __shared__ double of_warps[threads / 32];
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_down_sync(0xffffffffU, x, offset);
  __syncthreads();  // what was read of an earlier sum
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = x;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int w = 1; w < threads / 32; ++w) x += of_warps[w];
  return x;
}

template <class T>
__global__ void __launch_bounds__(threads)
    gather_kernel(const Inspected t, std::int64_t step, const GatheredSegment* segments, std::int64_t count, T* out) {
  for (std::int64_t s = blockIdx.x; s < count; s += gridDim.x) {
    const GatheredSegment segment = segments[s];
    for (std::int64_t i = threadIdx.x; i < segment.count; i += threads)
      out[segment.to + i] = static_cast<T>(element(t.x, t.type, segment.offset + i * step));
  }
}

__global__ void __launch_bounds__(threads)
    hash_kernel(const unsigned char* bytes, std::int64_t count, unsigned long long* sum) {
  const std::int64_t words = (count + 7) / 8;
  unsigned long long total = 0;
  const bool is_aligned = reinterpret_cast<unsigned long long>(bytes) % 8 == 0;
  for (std::int64_t w = blockIdx.x * std::int64_t{threads} + threadIdx.x; w < words;
       w += std::int64_t{gridDim.x} * threads) {
    unsigned long long word = 0;
    if (is_aligned && w * 8 + 8 <= count)
      word = reinterpret_cast<const unsigned long long*>(bytes)[w];
    else
      for (int b = 0; b < 8 && w * 8 + b < count; ++b)
        word |= static_cast<unsigned long long>(bytes[w * 8 + b]) << (8 * b);
    total += compute::hash_of_word(word, static_cast<std::uint64_t>(w));
  }
  for (int offset = 16; offset > 0; offset /= 2) total += __shfl_down_sync(0xffffffffU, total, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, total);
}

// A block for each row.
__global__ void __launch_bounds__(threads)
    sum_rows_kernel(const Inspected t, const double* w, const double* w2, double* values, double* squares) {
  for (std::int64_t r = blockIdx.x; r < t.dims[2]; r += gridDim.x) {
    double value = 0, square = 0;
    for (std::int64_t c = threadIdx.x; c < t.dims[3]; c += threads) {
      const double x = element(t.x, t.type, r * t.steps[2] + c * t.steps[3]);
      value += w[c] * x;
      square += w2[c] * x * x;
    }
    value = sum_of_block(value);
    square = sum_of_block(square);
    if (threadIdx.x == 0) values[r] = value, squares[r] = square;
  }
}

// A thread for each column of a stretch of rows.
constexpr std::int64_t stretch = 256;
__global__ void __launch_bounds__(threads)
    sum_columns_kernel(const Inspected t, const double* w, const double* w2, double* values, double* squares) {
  const std::int64_t c = blockIdx.x * std::int64_t{threads} + threadIdx.x;
  if (c >= t.dims[3]) return;
  for (std::int64_t first = blockIdx.y * stretch; first < t.dims[2]; first += gridDim.y * stretch) {
    double value = 0, square = 0;
    const std::int64_t end = first + stretch < t.dims[2] ? first + stretch : t.dims[2];
#pragma unroll 4
    for (std::int64_t r = first; r < end; ++r) {
      const double x = element(t.x, t.type, r * t.steps[2] + c * t.steps[3]);
      value += w[r] * x;
      square += w2[r] * x * x;
    }
    atomicAdd(values + c, value);
    atomicAdd(squares + c, square);
  }
}

__global__ void __launch_bounds__(threads)
    sum_spans_kernel(const Inspected t, const compute::WeightedSpan* spans, std::int64_t count, const float* weights,
                     std::int64_t period, compute::WeightedSum* sums) {
  for (std::int64_t s = blockIdx.x; s < count; s += gridDim.x) {
    const compute::WeightedSpan span = spans[s];
    double sum = 0, squares = 0;
    for (std::int64_t i = threadIdx.x; i < span.count; i += threads) {
      const auto weight = static_cast<double>(weights[(span.place + i) % period]);
      const double product = weight * element(t.x, t.type, span.first + i);
      sum += product;
      squares += product * product;
    }
    sum = sum_of_block(sum);
    squares = sum_of_block(squares);
    if (threadIdx.x == 0) sums[s] = {sum, squares};
  }
}

__global__ void __launch_bounds__(tile* tile)
    product_kernel(const double* x, std::int64_t rows, const Inspected w, double* y) {
  __shared__ double of_x[tile][tile + 1], of_w[tile][tile + 1];
  const std::int64_t n = w.dims[2], k = w.dims[3];
  const std::int64_t first_column = std::int64_t{blockIdx.x} * tile, first_row = std::int64_t{blockIdx.y} * tile;
  const int i = static_cast<int>(threadIdx.x), j = static_cast<int>(threadIdx.y);
  const bool by_rows = w.steps[3] == 1;  // neighbours in a row lie beside each other
  double sum = 0;
  for (std::int64_t from = 0; from < k; from += tile) {
    const std::int64_t row = first_row + j, at = from + i;
    of_x[j][i] = row < rows && at < k ? x[row * k + at] : 0;
    const int of_n = by_rows ? j : i, of_k = by_rows ? i : j;
    const std::int64_t column = first_column + of_n, inner = from + of_k;
    of_w[of_n][of_k] = column < n && inner < k ? element(w.x, w.type, column * w.steps[2] + inner * w.steps[3]) : 0;
    __syncthreads();
    for (int t = 0; t < tile; ++t) sum += of_x[j][t] * of_w[i][t];
    __syncthreads();
  }
  if (first_row + j < rows && first_column + i < n) y[(first_row + j) * n + first_column + i] = sum;
}

// One thread for each element, a block for each block of neighbours.
template <class Pair>
__device__ void add_blocks(std::int64_t count, BlockSums::Block* blocks, const Pair& pair) {
  for (std::int64_t b = blockIdx.x; b * threads < count; b += gridDim.x) {
    const std::int64_t i = b * threads + threadIdx.x;
    double found = 0, expected = 0;
    if (i < count) pair(i, found, expected);
    const double d = found - expected;
    const double distance = sum_of_block(d * d);
    const double squares = sum_of_block(expected * expected);
    const double along = sum_of_block(d * expected);
    if (threadIdx.x == 0) blocks[b] = {distance, squares, along};
  }
}

__global__ void __launch_bounds__(threads)
    difference_from_product_kernel(const Inspected found, float factor, const double* a, const double* b,
                                   std::int64_t rows, BlockSums::Block* blocks) {
  const std::int64_t m = found.dims[2], n = found.dims[3];
  add_blocks(m * n, blocks, [&](std::int64_t at, double& is, double& expected) {
    const std::int64_t i = at / n, j = at % n;
    double sum = 0;
    for (std::int64_t r = 0; r < rows; ++r) sum += a[r * m + i] * b[r * n + j];
    expected = static_cast<double>(static_cast<float>(sum));
    is = static_cast<double>(static_cast<float>(element(found.x, found.type, at)) * factor);
  });
}

__global__ void __launch_bounds__(threads)
    difference_kernel(const Inspected found, const Inspected expected, std::int64_t count, BlockSums::Block* blocks) {
  add_blocks(count, blocks, [&](std::int64_t at, double& is, double& right) {
    is = element(found.x, found.type, at);
    right = element(expected.x, expected.type, place_of(expected, at));
  });
}

}  // namespace

void gather(const Inspected& t, std::int64_t step, const GatheredSegment* segments, std::int64_t count, double* out,
            cudaStream_t stream) {
  gather_kernel<<<blocks_for(count), threads, 0, stream>>>(t, step, segments, count, out);
  check_launch("gather for a verification");
}
void gather(const Inspected& t, std::int64_t step, const GatheredSegment* segments, std::int64_t count, float* out,
            cudaStream_t stream) {
  gather_kernel<<<blocks_for(count), threads, 0, stream>>>(t, step, segments, count, out);
  check_launch("gather for a verification");
}

void hash(const void* bytes, std::int64_t count, unsigned long long* sum, cudaStream_t stream) {
  constexpr std::int64_t enough = 4096;
  const std::int64_t wanted = (count / 8 + threads) / threads;
  hash_kernel<<<blocks_for(std::min(wanted, enough)), threads, 0, stream>>>(static_cast<const unsigned char*>(bytes),
                                                                            count, sum);
  check_launch("hash for a verification");
}

void sum_rows(const Inspected& t, const double* weights, const double* square_weights, double* values, double* squares,
              cudaStream_t stream) {
  sum_rows_kernel<<<blocks_for(t.dims[2]), threads, 0, stream>>>(t, weights, square_weights, values, squares);
  check_launch("sum rows for a verification");
}

void sum_columns(const Inspected& t, const double* weights, const double* square_weights, double* values,
                 double* squares, cudaStream_t stream) {
  constexpr std::int64_t most_stretches = 65'535;
  const std::int64_t stretches = std::clamp<std::int64_t>((t.dims[2] + stretch - 1) / stretch, 1, most_stretches);
  const dim3 grid(static_cast<unsigned>((t.dims[3] + threads - 1) / threads), static_cast<unsigned>(stretches));
  sum_columns_kernel<<<grid, threads, 0, stream>>>(t, weights, square_weights, values, squares);
  check_launch("sum columns for a verification");
}

void sum_spans(const Inspected& t, const compute::WeightedSpan* spans, std::int64_t count, const float* weights,
               std::int64_t period, compute::WeightedSum* sums, cudaStream_t stream) {
  sum_spans_kernel<<<blocks_for(count), threads, 0, stream>>>(t, spans, count, weights, period, sums);
  check_launch("sum spans for a verification");
}

void product(const double* x, std::int64_t rows, const Inspected& w, double* y, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((w.dims[2] + tile - 1) / tile),
                  static_cast<unsigned>((rows + tile - 1) / tile));
  product_kernel<<<grid, dim3(tile, tile), 0, stream>>>(x, rows, w, y);
  check_launch("a product for a verification");
}

void difference_from_product(const Inspected& found, float factor, const double* a, const double* b, std::int64_t rows,
                             BlockSums::Block* blocks, cudaStream_t stream) {
  const std::int64_t count = (found.dims[2] * found.dims[3] + threads - 1) / threads;
  difference_from_product_kernel<<<blocks_for(count), threads, 0, stream>>>(found, factor, a, b, rows, blocks);
  check_launch("a product for a verification");
}

void difference(const Inspected& found, const Inspected& expected, std::int64_t count, BlockSums::Block* blocks,
                cudaStream_t stream) {
  difference_kernel<<<blocks_for((count + threads - 1) / threads), threads, 0, stream>>>(found, expected, count,
                                                                                         blocks);
  check_launch("a difference for a verification");
}

}  // namespace assay::cuda
