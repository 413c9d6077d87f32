// Products of groups of rows without matrix units, for any type and shape: fp32, and what the kernels for matrix units
// do not serve. Sums are fp32, in the order of the summed dimension.
#include <algorithm>

#include "cuda_error.hpp"
#include "kernels/grouped_products.hpp"
#include "kernels/grouped_tiles.cuh"
#include "kernels/types.cuh"

namespace assay::cuda {
namespace {

using compute::DType;

constexpr int tile = 64, depth = 16, side = 16, each = tile / side, threads = side * side;

template <class T, class R>
struct Call {
  const T *a, *b, *bias;
  R* c;
  const std::int32_t* offsets;
  std::int32_t groups;
  std::int64_t columns, inner;
  bool accumulate;
};

// Block x: a tile of rows (for weights: of Q). Block y: a tile of columns, or several if there are more than a grid
// has. Block z, for weights: the group.
template <class T, class R, GroupedForm form>
__global__ void __launch_bounds__(threads) grouped_matmul_plain_kernel(const Call<T, R> p) {
  constexpr bool weights = form == GroupedForm::weights;
  __shared__ std::int32_t first_tile[most_groups + 1];
  __shared__ float tile_of_a[depth][tile + 1], tile_of_b[depth][tile + 1];
  int group = static_cast<int>(blockIdx.z);
  std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * tile;
  if constexpr (!weights) {
    count_row_tiles(p.offsets, p.groups, tile, first_tile);
    __syncthreads();
    const auto number = static_cast<std::int32_t>(blockIdx.x);
    if (number >= first_tile[p.groups]) return;
    group = group_of_tile(first_tile, p.groups, number);
    row = static_cast<std::int64_t>(number - first_tile[group]) * tile;
  }
  const std::int64_t first = p.offsets[group], rows_of_group = p.offsets[group + 1] - first;
  const std::int64_t rows = weights ? p.inner : rows_of_group, inner = weights ? rows_of_group : p.inner;
  const int x = static_cast<int>(threadIdx.x) % side, y = static_cast<int>(threadIdx.x) / side;
  for (std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * tile; column < p.columns;
       column += static_cast<std::int64_t>(gridDim.y) * tile) {
    float sum[each][each] = {};
    for (std::int64_t at = 0; at < inner; at += depth) {
      for (int i = static_cast<int>(threadIdx.x); i < tile * depth; i += threads) {
        // Neighbouring threads read what lies side by side.
        const int ka = weights ? i / tile : i % depth, ra = weights ? i % tile : i / depth;
        const bool is_a = row + ra < rows && at + ka < inner;
        const std::int64_t from_a =
            weights ? (first + at + ka) * p.inner + row + ra : (first + row + ra) * p.inner + at + ka;
        tile_of_a[ka][ra] = is_a ? to_float(p.a[from_a]) : 0.0F;
        constexpr bool along = form == GroupedForm::rows_by_transposed;
        const int kb = along ? i % depth : i / tile, cb = along ? i / depth : i % tile;
        const bool is_b = column + cb < p.columns && at + kb < inner;
        std::int64_t from_b = (first + at + kb) * p.columns + column + cb;
        if constexpr (form == GroupedForm::rows_by_transposed)
          from_b = (static_cast<std::int64_t>(group) * p.columns + column + cb) * p.inner + at + kb;
        if constexpr (form == GroupedForm::rows)
          from_b = (static_cast<std::int64_t>(group) * p.inner + at + kb) * p.columns + column + cb;
        tile_of_b[kb][cb] = is_b ? to_float(p.b[from_b]) : 0.0F;
      }
      __syncthreads();
#pragma unroll
      for (int k = 0; k < depth; ++k) {
#pragma unroll
        for (int i = 0; i < each; ++i)
#pragma unroll
          for (int j = 0; j < each; ++j)
            sum[i][j] = fmaf(tile_of_a[k][y + i * side], tile_of_b[k][x + j * side], sum[i][j]);
      }
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const std::int64_t r = row + y + i * side;
      if (r >= rows) continue;
      R* const line = p.c + (weights ? static_cast<std::int64_t>(group) * rows + r : first + r) * p.columns;
#pragma unroll
      for (int j = 0; j < each; ++j) {
        const std::int64_t c = column + x + j * side;
        if (c >= p.columns) continue;
        float value = sum[i][j];
        if (!weights && p.bias) value += to_float(p.bias[group * p.columns + c]);
        if (weights && p.accumulate) value += to_float(line[c]);
        line[c] = from_float<R>(value);
      }
    }
  }
}

template <class T, class R, GroupedForm form>
void launch(cudaStream_t stream, const GroupedProduct& p) {
  const Call<T, R> call{static_cast<const T*>(p.a),
                        static_cast<const T*>(p.b),
                        static_cast<const T*>(p.bias),
                        static_cast<R*>(p.c),
                        p.offsets,
                        static_cast<std::int32_t>(p.groups),
                        p.columns,
                        p.inner,
                        p.accumulate};
  constexpr std::int64_t most_in_a_grid = 65535;
  const auto columns = static_cast<unsigned>(std::min((p.columns + tile - 1) / tile, most_in_a_grid));
  dim3 grid(static_cast<unsigned>(p.rows / tile + std::min(p.rows, p.groups)), columns);
  if constexpr (form == GroupedForm::weights)
    grid = dim3(static_cast<unsigned>((p.inner + tile - 1) / tile), columns, static_cast<unsigned>(p.groups));
  if (grid.x == 0 || columns == 0) return;
  grouped_matmul_plain_kernel<T, R, form><<<grid, threads, 0, stream>>>(call);
  check_launch("grouped_product");
}

template <class T>
void launch_by_form(cudaStream_t stream, const GroupedProduct& p) {
  switch (p.form) {
    case GroupedForm::rows_by_transposed: return launch<T, T, GroupedForm::rows_by_transposed>(stream, p);
    case GroupedForm::rows: return launch<T, T, GroupedForm::rows>(stream, p);
    case GroupedForm::weights:
      if (p.result == DType::f32) return launch<T, float, GroupedForm::weights>(stream, p);
      return launch<T, T, GroupedForm::weights>(stream, p);
  }
}

// ---- gradient of a bias --------------------------------------------------------------------------------------------

constexpr int lanes = 32, strips = 8;

// A block has 32 columns of a group; each strip takes every eighth row, and the strips are added in their order.
template <class T, class R>
__global__ void __launch_bounds__(lanes* strips)
    grouped_bias_gradient_kernel(const T* __restrict__ dy, const std::int32_t* __restrict__ offsets, R* dbias,
                                 std::int64_t columns, bool accumulate) {
  __shared__ float partial[strips][lanes];
  const int lane = static_cast<int>(threadIdx.x) % lanes, strip = static_cast<int>(threadIdx.x) / lanes;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * lanes + lane, group = blockIdx.y;
  float sum = 0.0F;
  if (column < columns)
    for (std::int64_t row = offsets[group] + strip; row < offsets[group + 1]; row += strips)
      sum += to_float(dy[row * columns + column]);
  partial[strip][lane] = sum;
  __syncthreads();
  if (strip > 0 || column >= columns) return;
#pragma unroll
  for (int i = 1; i < strips; ++i) sum += partial[i][lane];
  R& result = dbias[group * columns + column];
  result = from_float<R>(accumulate ? sum + to_float(result) : sum);
}

template <class T, class R>
void launch_bias(cudaStream_t stream, const void* dy, const std::int32_t* offsets, void* dbias, std::int64_t groups,
                 std::int64_t columns, bool accumulate) {
  const dim3 grid(static_cast<unsigned>((columns + lanes - 1) / lanes), static_cast<unsigned>(groups));
  grouped_bias_gradient_kernel<T, R><<<grid, lanes * strips, 0, stream>>>(static_cast<const T*>(dy), offsets,
                                                                          static_cast<R*>(dbias), columns, accumulate);
  check_launch("grouped_bias_gradient");
}

// Calls f with a value of the type.
template <class F>
void by_type(DType type, F&& f) {
  if (type == DType::bf16) return f(bf16());
  if (type == DType::f16) return f(f16());
  f(float());
}

__global__ void copy_to_place_kernel(const std::uint16_t* from, const std::int64_t* place, std::int64_t words) {
  auto* const to = reinterpret_cast<std::uint16_t*>(*place);
  if (!to) return;
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words; i += step) to[i] = from[i];
}

}  // namespace

void launch_copy_to_place(cudaStream_t stream, const void* from, const std::int64_t* place, std::size_t bytes) {
  constexpr int threads_of_copy = 256, most_blocks = 1024;
  const auto words = static_cast<std::int64_t>(bytes / sizeof(std::uint16_t));
  if (words == 0) return;
  const auto blocks =
      static_cast<unsigned>(std::min<std::int64_t>((words + threads_of_copy - 1) / threads_of_copy, most_blocks));
  copy_to_place_kernel<<<blocks, threads_of_copy, 0, stream>>>(static_cast<const std::uint16_t*>(from), place, words);
  check_launch("copy_to_place");
}

void launch_grouped_plain(cudaStream_t stream, const GroupedProduct& p) {
  if (p.groups == 0 || p.columns == 0) return;
  by_type(p.type, [&](auto value) { launch_by_form<decltype(value)>(stream, p); });
}

void launch_grouped_bias_gradient(cudaStream_t stream, DType type, DType result, const void* dy,
                                  const std::int32_t* offsets, void* dbias, std::int64_t groups, std::int64_t columns,
                                  bool accumulate) {
  if (groups == 0 || columns == 0) return;
  by_type(type, [&](auto value) {
    using T = decltype(value);
    if (result == DType::f32)
      launch_bias<T, float>(stream, dy, offsets, dbias, groups, columns, accumulate);
    else
      launch_bias<T, T>(stream, dy, offsets, dbias, groups, columns, accumulate);
  });
}

}  // namespace assay::cuda
