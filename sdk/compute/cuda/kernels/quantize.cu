// To 8 bits: a block takes a tile of rows and columns, and writes it by rows and, through shared memory, by columns,
// both in runs of 16 bytes where the tensors allow it.
#include <cuda_fp8.h>

#include <assay/compute/eight_bit.hpp>

#include "data.hpp"
#include "types.cuh"

namespace assay::cuda {

using compute::DType;

namespace {

constexpr int tile = 64, run = 16, threads = tile * tile / run;
// Of a column of the tile, so that the columns which a warp writes to begin in different banks.
constexpr int column_bytes = tile + 4;

template <__nv_fp8_interpretation_t format>
__device__ __forceinline__ std::uint8_t to_eight_bits(float x) {
  return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, format);
}

// Rows or columns are in `runs` where each of them begins on 16 bytes of both of its tensors.
template <__nv_fp8_interpretation_t format, class T>
__global__ void __launch_bounds__(threads)
    quantize_kernel(std::uint8_t* __restrict__ y, std::uint8_t* __restrict__ transposed, const T* __restrict__ x,
                    const float* __restrict__ max_abs, float* __restrict__ inverse_scale, float largest,
                    std::int64_t rows, std::int64_t columns, unsigned tiles_across, bool rows_in_runs,
                    bool columns_in_runs) {
  __shared__ std::uint8_t by_column[tile * column_bytes];
  const compute::EightBitScale s = compute::eight_bit_scale(*max_abs, largest);
  if (blockIdx.x == 0 && threadIdx.x == 0) *inverse_scale = s.inverse;

  const int line = static_cast<int>(threadIdx.x) / (tile / run);
  const int first = static_cast<int>(threadIdx.x) % (tile / run) * run;
  const std::int64_t row0 = static_cast<std::int64_t>(blockIdx.x / tiles_across) * tile;
  const std::int64_t column0 = static_cast<std::int64_t>(blockIdx.x % tiles_across) * tile;
  Pack<std::uint8_t, run> bits;
  if (const std::int64_t row = row0 + line, column = column0 + first; row < rows && column < columns) {
    const std::int64_t at = row * columns + column;
    const int count = static_cast<int>(columns - column < run ? columns - column : run);
    if (rows_in_runs && count == run) {
#pragma unroll
      for (int half = 0; half < run; half += pack_width<T>) {
        float numbers[pack_width<T>];
        unpack(load_pack<pack_width<T>, Cache::constant>(x + at + half), numbers);
#pragma unroll
        for (int i = 0; i < pack_width<T>; ++i) bits.v[half + i] = to_eight_bits<format>(numbers[i] * s.scale);
      }
      store_pack(y + at, bits);
    } else {
      for (int i = 0; i < count; ++i) {
        bits.v[i] = to_eight_bits<format>(to_float(x[at + i]) * s.scale);
        y[at + i] = bits.v[i];
      }
    }
    if (transposed)
#pragma unroll
      for (int i = 0; i < run; ++i)
        if (i < count) by_column[(first + i) * column_bytes + line] = bits.v[i];
  }
  if (!transposed) return;
  __syncthreads();
  const std::int64_t column = column0 + line, row = row0 + first;
  if (column >= columns || row >= rows) return;
  const int count = static_cast<int>(rows - row < run ? rows - row : run);
  const std::uint8_t* const from = by_column + line * column_bytes + first;
  std::uint8_t* const to = transposed + column * rows + row;
  if (columns_in_runs && count == run) {
#pragma unroll
    for (int i = 0; i < run; ++i) bits.v[i] = from[i];
    store_pack(to, bits);
  } else {
    for (int i = 0; i < count; ++i) to[i] = from[i];
  }
}

template <__nv_fp8_interpretation_t format, class T>
void quantize(cudaStream_t stream, std::uint8_t* y, std::uint8_t* transposed, const T* x, const float* max_abs,
              float* inverse_scale, float largest, std::int64_t rows, std::int64_t columns) {
  const std::int64_t tiles_down = (rows + tile - 1) / tile, tiles_across = (columns + tile - 1) / tile;
  const auto blocks = static_cast<unsigned>(std::max<std::int64_t>(1, tiles_down * tiles_across));  // for the scale
  const bool rows_in_runs = columns % run == 0 && aligned({y, x});
  const bool columns_in_runs = rows % run == 0 && aligned({transposed});
  quantize_kernel<format><<<blocks, threads, 0, stream>>>(y, transposed, x, max_abs, inverse_scale, largest, rows,
                                                          columns, static_cast<unsigned>(tiles_across), rows_in_runs,
                                                          columns_in_runs);
  check_launch("quantize");
}

}  // namespace

void launch_quantize(cudaStream_t stream, DType format, DType from_type, void* y, void* transposed, const void* x,
                     const float* max_abs, float* inverse_scale, std::int64_t rows, std::int64_t columns) {
  dispatch_float(from_type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* const to = static_cast<std::uint8_t*>(y);
    auto* const to_columns = static_cast<std::uint8_t*>(transposed);
    const auto* const from = static_cast<const T*>(x);
    if (format == DType::f8_e4m3)
      quantize<__NV_E4M3>(stream, to, to_columns, from, max_abs, inverse_scale, compute::E4m3::largest(), rows,
                          columns);
    else
      quantize<__NV_E5M2>(stream, to, to_columns, from, max_abs, inverse_scale, compute::E5m2::largest(), rows,
                          columns);
  });
}

}  // namespace assay::cuda
