// To 8 bits with a scale for each row, or for each column.
#include "data.hpp"
#include "kernels/eight_bit.cuh"
#include "kernels/rows.cuh"
#include "scratch_sizes.hpp"

namespace assay::cuda {

using compute::DType;

namespace {

// V elements in a pack, K packs held by a thread (0: the row is read twice).
template <__nv_fp8_interpretation_t format, class T, int V, int K>
__global__ void __launch_bounds__(512)
    quantize_rows_kernel(std::uint8_t* __restrict__ y, float* __restrict__ inverse_scale, const T* __restrict__ x,
                         std::int64_t rows, std::int64_t columns) {
  __shared__ float shared[row_reducer_floats];
  RowReducer reducer(shared);
  const int packs = static_cast<int>(columns / V);
  for (std::int64_t row = blockIdx.x * std::int64_t{blockDim.y} + threadIdx.y; row < rows;
       row += gridDim.x * std::int64_t{blockDim.y}) {
    const T* const from = x + row * columns;
    std::uint8_t* const to = y + row * columns;
    Held<T, V> held[K > 0 ? K : 1];
    if constexpr (K > 0) each_pack<K>(packs, [&](int i, int k) { held[k] = hold<V, Cache::constant>(from + i * V); });
    const auto numbers_of = [&](int i, int k, float(&numbers)[V]) {
      if constexpr (K == 0)
        unpack(hold<V, Cache::constant>(from + i * V), numbers);
      else
        unpack(held[k], numbers);
    };
    float largest = 0.0F;
    each_pack<K>(packs, [&](int i, int k) {
      float numbers[V];
      numbers_of(i, k, numbers);
      largest = largest_magnitude(largest, numbers);
    });
    const compute::EightBitScale s =
        compute::eight_bit_scale(reducer.reduce<LargestMagnitude>(largest), largest_of<format>());
    if (threadIdx.x == 0) inverse_scale[row] = s.inverse;
    each_pack<K>(packs, [&](int i, int k) {
      float numbers[V];
      numbers_of(i, k, numbers);
      store_pack(to + i * V, eight_bits<format>(numbers, s.scale));
    });
  }
}

template <__nv_fp8_interpretation_t format, class T>
void quantize_rows(cudaStream_t stream, std::uint8_t* y, float* inverse_scale, const T* x, std::int64_t rows,
                   std::int64_t columns) {
  constexpr int wide = pack_width<T>;
  const bool vectorised = columns % wide == 0 && aligned({x}) && aligned({y}, wide);
  const RowShape shape = row_shape(vectorised ? columns / wide : columns, vectorised);
  const dim3 threads(static_cast<unsigned>(shape.threads), static_cast<unsigned>(shape.rows));
  const auto kernel = vectorised        ? (shape.held == 2   ? quantize_rows_kernel<format, T, wide, 2>
                                           : shape.held == 4 ? quantize_rows_kernel<format, T, wide, 4>
                                                             : quantize_rows_kernel<format, T, wide, 0>)
                      : shape.held == 4 ? quantize_rows_kernel<format, T, 1, 4>
                                        : quantize_rows_kernel<format, T, 1, 0>;
  kernel<<<row_grid(rows, shape), threads, 0, stream>>>(y, inverse_scale, x, rows, columns);
  check_launch("quantize_rows");
}

// ---- columns: largest magnitudes of strips of rows, then tiles that are written by columns -------------------------

constexpr int strip_lanes = 32, strip_warps = 8;

// A block takes the columns of a warp's packs, and a strip of the rows. V: elements in a pack.
template <class T, int V>
__global__ void __launch_bounds__(strip_lanes* strip_warps)
    column_magnitudes_kernel(float* __restrict__ partials, const T* __restrict__ x, std::int64_t rows,
                             std::int64_t columns, std::int64_t strip_rows) {
  __shared__ float shared[strip_warps][strip_lanes * V];
  const std::int64_t column = (blockIdx.x * std::int64_t{strip_lanes} + threadIdx.x) * V;
  const std::int64_t begin = blockIdx.y * strip_rows, end = min(begin + strip_rows, rows);
  float largest[V] = {};
  if (column < columns) {
#pragma unroll 8
    for (std::int64_t row = begin + threadIdx.y; row < end; row += strip_warps) {
      float numbers[V];
      unpack(load_pack<V, Cache::constant>(x + row * columns + column), numbers);
#pragma unroll
      for (int i = 0; i < V; ++i) largest[i] = LargestMagnitude::join(largest[i], fabsf(numbers[i]));
    }
  }
#pragma unroll
  for (int i = 0; i < V; ++i) shared[threadIdx.y][threadIdx.x * V + i] = largest[i];
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.y * strip_lanes + threadIdx.x); c < strip_lanes * V;
       c += strip_lanes * strip_warps) {
    const std::int64_t at = blockIdx.x * std::int64_t{strip_lanes} * V + c;
    if (at >= columns) continue;
    float all = shared[0][c];
#pragma unroll
    for (int w = 1; w < strip_warps; ++w) all = LargestMagnitude::join(all, shared[w][c]);
    partials[blockIdx.y * columns + at] = all;
  }
}

// Tiles of columns and rows. Of a column of the tile, so many bytes that the columns which a warp writes to begin in
// different banks.
constexpr int tile_columns = 64, tile_rows = 128, tile_threads = 256, run = 16;
constexpr int column_words = tile_rows / 4 + 1;

// A block takes 64 columns and some tiles of 128 rows. A thread reads packs of four rows, whose numbers of a column
// make a word, and writes 16 numbers of a column at once where `in_runs`.
template <__nv_fp8_interpretation_t format, class T, int V>
__global__ void __launch_bounds__(tile_threads)
    quantize_columns_kernel(std::uint8_t* __restrict__ y, float* __restrict__ inverse_scale,
                            const float* __restrict__ partials, const T* __restrict__ x, std::int64_t rows,
                            std::int64_t columns, int strips, std::int64_t tiles_each, bool in_runs) {
  __shared__ float scale[tile_columns];
  __shared__ std::uint32_t by_column[tile_columns * column_words];
  const std::int64_t column0 = blockIdx.x * std::int64_t{tile_columns};
  if (threadIdx.x < tile_columns && column0 + threadIdx.x < columns) {
    const std::int64_t column = column0 + threadIdx.x;
    float largest = 0.0F;
#pragma unroll 4
    for (int s = 0; s < strips; ++s) largest = LargestMagnitude::join(largest, partials[s * columns + column]);
    const compute::EightBitScale both = compute::eight_bit_scale(largest, largest_of<format>());
    scale[threadIdx.x] = both.scale;
    if (blockIdx.y == 0) inverse_scale[column] = both.inverse;
  }
  __syncthreads();
  constexpr int packs = tile_columns / V, quads = tile_rows / 4;
  const std::int64_t first_tile = blockIdx.y * tiles_each;
  for (std::int64_t t = first_tile; t < first_tile + tiles_each && t * tile_rows < rows; ++t) {
    const std::int64_t row0 = t * tile_rows;
    for (int job = static_cast<int>(threadIdx.x); job < packs * quads; job += tile_threads) {
      const int pack = job % packs, quad = job / packs;
      const std::int64_t column = column0 + pack * V, row = row0 + quad * 4;
      if (column >= columns || row >= rows) continue;
      Pack<T, V> read[4];
#pragma unroll
      for (int r = 0; r < 4; ++r)
        if (row + r < rows) read[r] = load_pack<V, Cache::constant>(x + (row + r) * columns + column);
#pragma unroll
      for (int i = 0; i < V; ++i) {
        float numbers[4];
#pragma unroll
        for (int r = 0; r < 4; ++r) numbers[r] = row + r < rows ? to_float(read[r].v[i]) : 0.0F;
        const Pack<std::uint8_t, 4> bits = eight_bits<format>(numbers, scale[pack * V + i]);
        by_column[(pack * V + i) * column_words + quad] =
            bits.v[0] | bits.v[1] << 8 | bits.v[2] << 16 | static_cast<std::uint32_t>(bits.v[3]) << 24;
      }
    }
    __syncthreads();
    for (int job = static_cast<int>(threadIdx.x); job < tile_columns * tile_rows / run; job += tile_threads) {
      const int c = job / (tile_rows / run), first = job % (tile_rows / run) * run;
      const std::int64_t row = row0 + first;
      if (column0 + c >= columns || row >= rows) continue;
      std::uint8_t* const to = y + (column0 + c) * rows + row;
      const std::uint32_t* const from = by_column + c * column_words + first / 4;
      const int count = static_cast<int>(min(rows - row, std::int64_t{run}));
      if (in_runs && count == run) {
        Pack<std::uint32_t, run / 4> words;
#pragma unroll
        for (int i = 0; i < run / 4; ++i) words.v[i] = from[i];
        store_pack(reinterpret_cast<std::uint32_t*>(to), words);
      } else {
        for (int i = 0; i < count; ++i) to[i] = static_cast<std::uint8_t>(from[i / 4] >> (i % 4 * 8));
      }
    }
    __syncthreads();
  }
}

template <__nv_fp8_interpretation_t format, class T, int V>
void quantize_columns(cudaStream_t stream, std::uint8_t* y, float* inverse_scale, float* partials, const T* x,
                      std::int64_t rows, std::int64_t columns) {
  const auto strips = static_cast<unsigned>(column_strips(rows));
  const dim3 strip_blocks(grid_size(columns, strip_lanes * V), strips), strip_threads(strip_lanes, strip_warps);
  column_magnitudes_kernel<T, V>
      <<<strip_blocks, strip_threads, 0, stream>>>(partials, x, rows, columns, ceil_div(rows, strips));
  check_launch("quantize_columns");
  constexpr std::int64_t most_blocks_down = 64;
  const std::int64_t tiles = ceil_div(rows, tile_rows), tiles_each = ceil_div(tiles, most_blocks_down);
  const dim3 blocks(grid_size(columns, tile_columns), grid_size(tiles, tiles_each));
  const bool in_runs = rows % run == 0 && aligned({y});
  quantize_columns_kernel<format, T, V><<<blocks, tile_threads, 0, stream>>>(
      y, inverse_scale, partials, x, rows, columns, static_cast<int>(strips), tiles_each, in_runs);
  check_launch("quantize_columns");
}

template <class F>
void with_formats(DType format, DType type, F&& f) {
  dispatch_float(type, [&](auto tag) {
    if (format == DType::f8_e4m3)
      f(tag, std::integral_constant<__nv_fp8_interpretation_t, __NV_E4M3>());
    else
      f(tag, std::integral_constant<__nv_fp8_interpretation_t, __NV_E5M2>());
  });
}

}  // namespace

void launch_quantize_rows(cudaStream_t stream, DType format, DType from_type, void* y, float* inverse_scale,
                          const void* x, std::int64_t rows, std::int64_t columns) {
  if (rows == 0) return;
  with_formats(format, from_type, [&](auto tag, auto to) {
    using T = typename decltype(tag)::type;
    quantize_rows<decltype(to)::value>(stream, static_cast<std::uint8_t*>(y), inverse_scale, static_cast<const T*>(x),
                                       rows, columns);
  });
}

void launch_quantize_columns(cudaStream_t stream, DType format, DType from_type, void* y, float* inverse_scale,
                             float* partials, const void* x, std::int64_t rows, std::int64_t columns) {
  with_formats(format, from_type, [&](auto tag, auto to) {
    using T = typename decltype(tag)::type;
    constexpr int wide = pack_width<T>;
    const auto quantize = columns % wide == 0 && aligned({x}) ? quantize_columns<decltype(to)::value, T, wide>
                                                              : quantize_columns<decltype(to)::value, T, 1>;
    quantize(stream, static_cast<std::uint8_t*>(y), inverse_scale, partials, static_cast<const T*>(x), rows, columns);
  });
}

}  // namespace assay::cuda
