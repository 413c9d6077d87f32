// Rows of 8 bits as columns: a thread takes 16 columns of four rows, whose numbers of a column make a word, and the
// words of a tile change places in shared memory. The scales' largest product is found first, by one block.
#include "data.hpp"
#include "kernels/eight_bit.cuh"
#include "kernels/rows.cuh"

namespace assay::cuda {
namespace {

// ---- shares of the scales ------------------------------------------------------------------------------------------

constexpr int share_threads = 1024, shares_held = 16;

__global__ void __launch_bounds__(share_threads)
    shares_kernel(float* __restrict__ shares, float* __restrict__ inverse_scale, const float* __restrict__ scale,
                  const float* __restrict__ other, std::int64_t rows) {
  __shared__ float shared[row_reducer_floats];
  RowReducer reducer(shared);
  float held[shares_held], largest = 0.0F;
  const auto product = [&](std::int64_t row) { return __ldg(scale + row) * __ldg(other + row); };
#pragma unroll
  for (int i = 0; i < shares_held; ++i) {
    const std::int64_t row = threadIdx.x + std::int64_t{i} * share_threads;
    held[i] = row < rows ? product(row) : 0.0F;
    largest = LargestMagnitude::join(largest, fabsf(held[i]));
  }
  for (std::int64_t row = threadIdx.x + std::int64_t{shares_held} * share_threads; row < rows; row += share_threads)
    largest = LargestMagnitude::join(largest, fabsf(product(row)));
  largest = reducer.reduce<LargestMagnitude>(largest);
  if (threadIdx.x == 0) *inverse_scale = largest;
  const auto share = [&](float of) { return largest == 0.0F ? 0.0F : of / largest; };
#pragma unroll
  for (int i = 0; i < shares_held; ++i) {
    const std::int64_t row = threadIdx.x + std::int64_t{i} * share_threads;
    if (row < rows) shares[row] = share(held[i]);
  }
  for (std::int64_t row = threadIdx.x + std::int64_t{shares_held} * share_threads; row < rows; row += share_threads)
    shares[row] = share(product(row));
}

// ---- tiles ---------------------------------------------------------------------------------------------------------

constexpr int tile = 128, threads = 256, run = 16;
// A column of the tile is 32 words. One more from column to column, and four more from one thread's 16 columns to the
// next one's, put what a warp writes, and what it reads, into different banks.
constexpr int column_words = tile / 4 + 1;
constexpr int tile_words = tile * column_words + tile / run * 4;
__device__ __forceinline__ int first_word(int column) { return column * column_words + column / run * 4; }

__device__ __forceinline__ std::uint8_t times(std::uint8_t bits, float share) {
  const __half_raw half = __nv_cvt_fp8_to_halfraw(bits, __NV_E4M3);
  return __nv_cvt_float_to_fp8(__half2float(__half(half)) * share, __NV_SATFINITE, __NV_E4M3);
}

// Four numbers at once.
__device__ __forceinline__ std::uint32_t times(std::uint32_t word, float share) {
  std::uint32_t out = 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const __half2_raw halves =
        __nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(word >> (16 * i)), __NV_E4M3);
    const float2 two = __half22float2(__half2(halves));
    const __nv_fp8x2_storage_t bits =
        __nv_cvt_float2_to_fp8x2(make_float2(two.x * share, two.y * share), __NV_SATFINITE, __NV_E4M3);
    out |= static_cast<std::uint32_t>(bits) << (16 * i);
  }
  return out;
}

// Bytes of four rows, as words of four columns.
__device__ __forceinline__ void turn(const std::uint32_t (&rows)[4], std::uint32_t (&columns)[4]) {
  const std::uint32_t low01 = __byte_perm(rows[0], rows[1], 0x5140), high01 = __byte_perm(rows[0], rows[1], 0x7362);
  const std::uint32_t low23 = __byte_perm(rows[2], rows[3], 0x5140), high23 = __byte_perm(rows[2], rows[3], 0x7362);
  columns[0] = __byte_perm(low01, low23, 0x5410);
  columns[1] = __byte_perm(low01, low23, 0x7632);
  columns[2] = __byte_perm(high01, high23, 0x5410);
  columns[3] = __byte_perm(high01, high23, 0x7632);
}

// Of columns and places that are multiples of 16, at addresses of 16 bytes.
template <bool scaled>
__global__ void __launch_bounds__(threads)
    tiles_kernel(std::uint8_t* __restrict__ y, const std::uint8_t* __restrict__ x, const float* __restrict__ shares,
                 std::int64_t rows, std::int64_t columns, std::int64_t places) {
  __shared__ std::uint32_t by_column[tile_words];
  const std::int64_t column0 = blockIdx.x * std::int64_t{tile}, row0 = blockIdx.y * std::int64_t{tile};
  {
    const int first = static_cast<int>(threadIdx.x) % (tile / run) * run,
              quad = static_cast<int>(threadIdx.x) / (tile / run);
    const std::int64_t column = column0 + first, row = row0 + quad * 4;
    Pack<std::uint32_t, 4> read[4] = {};
    if (column < columns) {
#pragma unroll
      for (int r = 0; r < 4; ++r)
        if (row + r < rows)
          read[r] =
              load_pack<4, Cache::constant>(reinterpret_cast<const std::uint32_t*>(x + (row + r) * columns + column));
      if constexpr (scaled) {
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          if (row + r >= rows) continue;
          const float share = __ldg(shares + row + r);
#pragma unroll
          for (int w = 0; w < 4; ++w) read[r].v[w] = times(read[r].v[w], share);
        }
      }
    }
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const std::uint32_t of_rows[4] = {read[0].v[w], read[1].v[w], read[2].v[w], read[3].v[w]};
      std::uint32_t of_columns[4];
      turn(of_rows, of_columns);
#pragma unroll
      for (int c = 0; c < 4; ++c) by_column[first_word(first + 4 * w + c) + quad] = of_columns[c];
    }
  }
  __syncthreads();
#pragma unroll
  for (int job = static_cast<int>(threadIdx.x); job < tile * tile / run; job += threads) {
    const int c = job / (tile / run), part = job % (tile / run);
    const std::int64_t column = column0 + c, place = row0 + part * run;
    if (column >= columns || place >= places) continue;
    Pack<std::uint32_t, 4> words;
#pragma unroll
    for (int i = 0; i < 4; ++i) words.v[i] = by_column[first_word(c) + part * 4 + i];
    store_pack(reinterpret_cast<std::uint32_t*>(y + column * places + place), words);
  }
}

// As above, for shapes and addresses that no run fits: one number of y to a thread.
__global__ void __launch_bounds__(threads)
    numbers_kernel(std::uint8_t* __restrict__ y, const std::uint8_t* __restrict__ x, const float* __restrict__ shares,
                   std::int64_t rows, std::int64_t columns, std::int64_t places) {
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = blockIdx.x * std::int64_t{threads} + threadIdx.x; i < columns * places; i += step) {
    const std::int64_t column = i / places, row = i % places;
    std::uint8_t bits = 0;
    if (row < rows) bits = x[row * columns + column];
    if (row < rows && shares) bits = times(bits, shares[row]);
    y[i] = bits;
  }
}

}  // namespace

void launch_transpose_eight_bits(cudaStream_t stream, void* y_address, const void* x_address, const float* scale,
                                 const float* other_scale, float* shares, float* inverse_scale, std::int64_t rows,
                                 std::int64_t columns, std::int64_t places) {
  if (scale) {
    shares_kernel<<<1, share_threads, 0, stream>>>(shares, inverse_scale, scale, other_scale, rows);
    check_launch("transpose_eight_bits");
  }
  if (columns * places == 0) return;
  auto* const y = static_cast<std::uint8_t*>(y_address);
  const auto* const x = static_cast<const std::uint8_t*>(x_address);
  const std::int64_t tiles_down = ceil_div(places, tile);
  constexpr std::int64_t most_tiles_down = 65535;
  if (columns % run == 0 && places % run == 0 && aligned({y, x}) && tiles_down <= most_tiles_down) {
    const dim3 grid(grid_size(columns, tile), static_cast<unsigned>(tiles_down));
    const auto kernel = scale ? tiles_kernel<true> : tiles_kernel<false>;
    kernel<<<grid, threads, 0, stream>>>(y, x, shares, rows, columns, places);
  } else {
    constexpr std::int64_t most_blocks = 4096;
    numbers_kernel<<<grid_size(columns * places, threads, most_blocks), threads, 0, stream>>>(
        y, x, scale ? shares : nullptr, rows, columns, places);
  }
  check_launch("transpose_eight_bits");
}

}  // namespace assay::cuda
