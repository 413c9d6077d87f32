// Products of groups of rows by Hopper's warpgroup matrix units, for bf16 and fp16.
//
// A block stays on its multiprocessor and takes tiles of 128 x 256 of c in turn. One warp of its first warpgroup has
// boxes of a and b copied to a ring of `stages` in shared memory, 64 of the summed dimension at a time; the other two
// warpgroups multiply, each 64 rows. What they have summed goes through shared memory to c, line by line and only as
// many lines as the group has rows, while the next tile is multiplied already: copying runs ahead over the ends of
// tiles. A box that reaches over a group's end has rows of the next group: of rows they are computed and not stored;
// where rows are what is summed over, they are set to 0 first.
//
// With an update each of the two then updates the tile's weights by the gradient's lines in shared memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <assay/plugin/error.hpp>
#include <string>

#include "cuda_error.hpp"
#include "kernels/grouped_products.hpp"
#include "kernels/grouped_shapes.cuh"
#include "kernels/grouped_update.cuh"
#include "kernels/hopper.cuh"
#include "kernels/types.cuh"

namespace assay::cuda {
namespace {

using compute::DType;

// One stage of the ring: its place, its barriers, and which round of the ring it is.
struct Ring {
  std::uint32_t data, full, empty;
  int stage = 0;
  std::uint32_t parity = 0;
  __device__ __forceinline__ std::uint32_t a() const { return data + stage * stage_bytes; }
  __device__ __forceinline__ std::uint32_t b() const { return a() + a_bytes; }
  __device__ __forceinline__ std::uint32_t is_full() const { return full + stage * 8; }
  __device__ __forceinline__ std::uint32_t is_empty() const { return empty + stage * 8; }
  __device__ __forceinline__ void next() {
    if (++stage == stages) stage = 0, parity ^= 1U;
  }
};

template <GroupedForm form>
__device__ __forceinline__ void copy_tiles(const CUtensorMap* a, const CUtensorMap* b, const Shape& s,
                                           const Groups& groups, Ring ring) {
  const std::int32_t tiles = tiles_of<form>(s, groups);
  for (std::int32_t number = blockIdx.x; number < tiles; number += gridDim.x) {
    const Tile tile = tile_at<form>(s, groups, number);
    const std::int32_t steps = steps_of<form>(s, tile);
    for (std::int32_t step = 0; step < steps; ++step, ring.next()) {
      hopper::wait(ring.is_empty(), ring.parity ^ 1U);
      hopper::expect_bytes(ring.is_full(), stage_bytes);
      const int at = step * tile_inner;
      if constexpr (form == GroupedForm::weights) {
#pragma unroll
        for (int i = 0; i < tile_rows / box_columns; ++i)
          hopper::load_box(ring.a() + i * block_bytes, a, ring.is_full(), tile.row + i * box_columns, tile.first + at);
#pragma unroll
        for (int i = 0; i < tile_columns / box_columns; ++i)
          hopper::load_box(ring.b() + i * block_bytes, b, ring.is_full(), tile.column + i * box_columns,
                           tile.first + at);
      } else {
        hopper::load_box(ring.a(), a, ring.is_full(), at, tile.first + tile.row);
        if constexpr (form == GroupedForm::rows_by_transposed) {
          hopper::load_box(ring.b(), b, ring.is_full(), at, tile.column, tile.group);
        } else {
#pragma unroll
          for (int i = 0; i < tile_columns / box_columns; ++i)
            hopper::load_box(ring.b() + i * block_bytes, b, ring.is_full(), tile.column + i * box_columns, at,
                             tile.group);
        }
      }
    }
  }
}

// Rows from `rows` on of both operands become 0: whole lines of 128 bytes, so that the swizzle does not matter. By the
// multiplying warpgroups together.
__device__ __forceinline__ void clear_rows(std::uint32_t stage, int rows) {
  constexpr int lines = stage_bytes / (box_columns * 2), packs = 8;
  const int thread = static_cast<int>(threadIdx.x) - warpgroup;
  for (int i = thread; i < lines * packs; i += multiplying_warpgroups * warpgroup) {
    const int line = i / packs;
    if (line % tile_inner < rows) continue;
    asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(stage + line * box_columns * 2 + i % packs * 16),
                 "r"(0)
                 : "memory");
  }
  hopper::fence_shared();
  hopper::sync_threads(1, multiplying_warpgroups * warpgroup);
}

// Of at least one step.
template <class T, GroupedForm form>
__device__ __forceinline__ void multiply(float (&sum)[128], const Shape& s, const Tile& tile, Ring& ring, int which) {
  constexpr bool a_across = form == GroupedForm::weights, b_across = form != GroupedForm::rows_by_transposed;
  const std::int32_t steps = steps_of<form>(s, tile);
  std::uint32_t before = 0;  // the barrier of the stage whose products may be under way
  for (std::int32_t step = 0; step < steps; ++step, ring.next()) {
    hopper::wait(ring.is_full(), ring.parity);
    if constexpr (form == GroupedForm::weights) {
      const std::int32_t rows = tile.end - tile.first - step * tile_inner;
      if (rows < tile_inner) clear_rows(ring.a(), rows);
    }
    const std::uint32_t a = ring.a() + which * rows_each * tile_inner * 2, b = ring.b();
    hopper::fence_products();
#pragma unroll
    for (int k = 0; k < tile_inner / 16; ++k) {
      const auto of_a =
          a_across ? hopper::describe(a + k * 2048, block_bytes, 1024) : hopper::describe(a + k * 32, 16, 1024);
      const auto of_b =
          b_across ? hopper::describe(b + k * 2048, block_bytes, 1024) : hopper::describe(b + k * 32, 16, 1024);
      hopper::multiply_64x256<T, a_across, b_across>(sum, of_a, of_b, step > 0 || k > 0);
    }
    hopper::commit_products();
    if (step > 0) {
      hopper::wait_for_products<1>();
      if (threadIdx.x % warpgroup == 0) hopper::arrive(before);
    }
    before = ring.is_empty();
  }
  hopper::wait_for_products<0>();
  if (threadIdx.x % warpgroup == 0) hopper::arrive(before);
}

// The tile of a group without rows, whose sums are 0. By the multiplying warpgroups together.
template <class R>
__device__ __forceinline__ void store_zeros(const Shape& s, const Tile& tile) {
  const int rows = min(tile_rows, s.rows - tile.row), packs = min(tile_columns, s.columns - tile.column) / 8;
  R* const c =
      static_cast<R*>(s.c) + (static_cast<std::int64_t>(tile.group) * s.rows + tile.row) * s.columns + tile.column;
  for (int i = static_cast<int>(threadIdx.x) - warpgroup; i < rows * packs; i += multiplying_warpgroups * warpgroup)
    store_pack(c + static_cast<std::int64_t>(i / packs) * s.columns + i % packs * 8, Pack<R, 8>{});
}

// What a warpgroup does of a tile none of whose rows are its own: the other one has the matrix units to itself. Nothing
// else holds its warps together meanwhile: one that fell behind by two rounds of the ring would wait for ever.
template <GroupedForm form>
__device__ __forceinline__ void pass_over(const Shape& s, const Tile& tile, Ring& ring, int which) {
  for (std::int32_t left = steps_of<form>(s, tile); left > 0; --left, ring.next()) {
    hopper::wait(ring.is_full(), ring.parity);
    hopper::sync_threads(2 + which, warpgroup);
    if (threadIdx.x % warpgroup == 0) hopper::arrive(ring.is_empty());
  }
}

template <class T>
__device__ __forceinline__ std::uint32_t pair_of(float x, float y) {
  union {
    T values[2];
    std::uint32_t word;
  } both;
  both.values[0] = from_float<T>(x);
  both.values[1] = from_float<T>(y);
  return both.word;
}

// The warpgroup's 64 x 256 sums to c. Of a tile that had any products, or sums of 0.
template <class T, class R, GroupedForm form, bool updates>
__device__ __forceinline__ void store(float (&sum)[128], const Shape& s, const Tile& tile, std::uint32_t lines,
                                      int which, const AdamW& rule) {
  const int thread = static_cast<int>(threadIdx.x) % warpgroup, warp = thread / 32, lane = thread % 32;
  const std::int32_t rows_of_group = form == GroupedForm::weights ? s.rows : tile.end - tile.first;
  const std::int32_t rows = min(rows_each, rows_of_group - tile.row - which * rows_each);  // may be 0 and less
  const std::int64_t first_row = (form == GroupedForm::weights ? static_cast<std::int64_t>(tile.group) * s.rows
                                                               : static_cast<std::int64_t>(tile.first)) +
                                 tile.row + which * rows_each;
  R* const c = static_cast<R*>(s.c) + first_row * s.columns + tile.column;
  const int columns = min(tile_columns, s.columns - tile.column);
  const int row = warp * 16 + lane / 4, column = lane % 4 * 2;
  if constexpr (form != GroupedForm::weights) {
    if (s.bias) {
      const T* const bias =
          static_cast<const T*>(s.bias) + static_cast<std::int64_t>(tile.group) * s.columns + tile.column;
#pragma unroll
      for (int j = 0; j < 32; ++j) {
        if (8 * j + column >= columns) continue;
        const float x = to_float(bias[8 * j + column]), y = to_float(bias[8 * j + column + 1]);
        sum[4 * j] += x, sum[4 * j + 1] += y, sum[4 * j + 2] += x, sum[4 * j + 3] += y;
      }
    }
  } else if (s.accumulate) {
#pragma unroll
    for (int j = 0; j < 32; ++j) {
      if (8 * j + column >= columns) continue;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (row + 8 * half >= rows) continue;
        const R* const at = c + static_cast<std::int64_t>(row + 8 * half) * s.columns + 8 * j + column;
        sum[4 * j + 2 * half] += to_float(at[0]), sum[4 * j + 2 * half + 1] += to_float(at[1]);
      }
    }
  }
  constexpr int parts = static_cast<int>(tile_columns * sizeof(R) / line_bytes), part_columns = tile_columns / parts;
#pragma unroll
  for (int part = 0; part < parts; ++part) {
    if (thread < rows_each) hopper::wait_for_lines();
    hopper::sync_threads(2 + which, warpgroup);
    if constexpr (sizeof(R) == 2) {
      // Lane l gives the place of line l % 8 of matrix l / 8: rows 0 to 7 and 8 to 15 of 8 columns, then of the next 8.
      const std::uint32_t at = lines + (warp * 16 + lane % 16) * line_step + lane / 16 * 16;
#pragma unroll
      for (int j = 0; j < 32; j += 2)
        hopper::store_four_8x8(at + j * 16, pair_of<R>(sum[4 * j], sum[4 * j + 1]),
                               pair_of<R>(sum[4 * j + 2], sum[4 * j + 3]), pair_of<R>(sum[4 * j + 4], sum[4 * j + 5]),
                               pair_of<R>(sum[4 * j + 6], sum[4 * j + 7]));
    } else {
#pragma unroll
      for (int j = 0; j < 32 / parts; ++j) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int from = 4 * (part * (32 / parts) + j) + 2 * half;
          asm volatile(
              "st.shared.v2.f32 [%0], {%1, %2};" ::"r"(lines + (row + 8 * half) * line_step + (8 * j + column) * 4),
              "f"(sum[from]), "f"(sum[from + 1])
              : "memory");
        }
      }
    }
    hopper::fence_shared();
    hopper::sync_threads(2 + which, warpgroup);
    if constexpr (updates) return update_piece(s, tile, rule, lines, which);
    const int width = min(part_columns, columns - part * part_columns);
    if (thread < rows && width > 0)
      hopper::store_line(c + static_cast<std::int64_t>(thread) * s.columns + part * part_columns,
                         lines + thread * line_step, static_cast<std::uint32_t>(width * sizeof(R)));
    if (thread < rows_each) hopper::commit_lines();
  }
}

template <class T, class R, GroupedForm form, bool updates>
__global__ void __launch_bounds__(threads, 1)
    grouped_matmul_kernel(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, const Shape s) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ unsigned char memory[];
  const std::uint32_t base = (hopper::shared_address(memory) + alignment - 1) / alignment * alignment;
  unsigned char* const aligned = memory + (base - hopper::shared_address(memory));
  constexpr std::uint32_t lines_at = stages * stage_bytes,
                          barriers_at = lines_at + multiplying_warpgroups * lines_bytes;
  auto* const first_tile = reinterpret_cast<std::int32_t*>(aligned + barriers_at + 2 * stages * 8);
  std::int32_t* const offsets = first_tile + s.groups + 1;
  auto* const rule = reinterpret_cast<AdamW*>(offsets + s.groups + 1);
  const Groups groups{first_tile, offsets};
  Ring ring{base, base + barriers_at, base + barriers_at + stages * 8};
  if (threadIdx.x == 0) {
    hopper::prefetch_map(&a);
    hopper::prefetch_map(&b);
    for (int i = 0; i < stages; ++i) {
      hopper::init_barrier(ring.full + i * 8, 1);
      hopper::init_barrier(ring.empty + i * 8, multiplying_warpgroups);
    }
    hopper::fence_barrier_init();
    if constexpr (updates) {
      OptimizerArgs args{};
      args.step = s.update.step, args.lr = s.update.lr;
      *rule = AdamW::make(args, s.update.options);
    }
  }
  for (int i = static_cast<int>(threadIdx.x); i <= s.groups; i += threads) offsets[i] = s.offsets[i];
  if constexpr (form != GroupedForm::weights) count_row_tiles(s.offsets, s.groups, tile_rows, first_tile);
  __syncthreads();
  if (threadIdx.x < warpgroup) {
    hopper::leave_registers<40>();
    if (threadIdx.x == 0) copy_tiles<form>(&a, &b, s, groups, ring);
    return;
  }
  hopper::take_registers<232>();
  const int which = static_cast<int>(threadIdx.x) / warpgroup - 1;
  const std::uint32_t lines = base + lines_at + which * lines_bytes;
  const std::int32_t tiles = tiles_of<form>(s, groups);
  for (std::int32_t number = blockIdx.x; number < tiles; number += gridDim.x) {
    const Tile tile = tile_at<form>(s, groups, number);
    if (form == GroupedForm::weights && tile.first == tile.end && !updates) {
      if (!s.accumulate) store_zeros<R>(s, tile);
      continue;
    }
    if (form != GroupedForm::weights && tile.row + which * rows_each >= tile.end - tile.first) {
      pass_over<form>(s, tile, ring, which);
      continue;
    }
    float sum[128];
    if constexpr (updates) {
#pragma unroll
      for (float& x : sum) x = 0.0F;
    }
    if (!updates || tile.first < tile.end) multiply<T, form>(sum, s, tile, ring, which);
    store<T, R, form, updates>(sum, s, tile, lines, which, *rule);
  }
  hopper::wait_for_lines();
#endif
}

// ---- host ----------------------------------------------------------------------------------------------------------

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

EncodeTiled encode_tiled() {
  static const EncodeTiled function = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result),
          "look for cuTensorMapEncodeTiled");
    if (result != cudaDriverEntryPointSuccess || !found)
      throw Error(ASSAY_DEVICE_ERROR, "the driver has no cuTensorMapEncodeTiled; expected one of CUDA 12 or newer");
    return reinterpret_cast<EncodeTiled>(found);
  }();
  return function;
}

// Boxes of 64 columns, and `lines_of_box` of the next dimension.
CUtensorMap map_of(DType type, const void* data, std::int64_t columns, std::int64_t lines, std::int64_t matrices,
                   int lines_of_box) {
  CUtensorMap map;
  const std::uint32_t rank = matrices > 0 ? 3 : 2;
  const cuuint64_t dims[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(lines),
                             static_cast<cuuint64_t>(std::max<std::int64_t>(matrices, 1))};
  const cuuint64_t steps[] = {static_cast<cuuint64_t>(columns) * 2, static_cast<cuuint64_t>(columns * lines) * 2};
  const cuuint32_t box[] = {box_columns, static_cast<cuuint32_t>(lines_of_box), 1}, each[] = {1, 1, 1};
  const CUresult result =
      encode_tiled()(&map, type == DType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                     rank, const_cast<void*>(data), dims, steps, box, each, CU_TENSOR_MAP_INTERLEAVE_NONE,
                     CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw Error(ASSAY_DEVICE_ERROR, "cuTensorMapEncodeTiled: error " + std::to_string(static_cast<int>(result)));
  return map;
}

// Of the whole product, at most.
std::int64_t most_tiles(const GroupedProduct& p) {
  const std::int64_t columns = (p.columns + tile_columns - 1) / tile_columns;
  if (p.form == GroupedForm::weights) return p.groups * ((p.inner + tile_rows - 1) / tile_rows) * columns;
  return (std::min(p.rows, p.groups) + p.rows / tile_rows) * columns;
}

template <class T, class R, GroupedForm form, bool updates = false>
void launch(cudaStream_t stream, const GroupedProduct& p, int multiprocessors) {
  const auto number = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
  Shape s{};
  s.offsets = p.offsets, s.c = p.c, s.bias = p.bias, s.groups = number(p.groups), s.accumulate = p.accumulate;
  s.update = p.update;
  CUtensorMap a, b;
  if constexpr (form == GroupedForm::weights) {
    s.rows = number(p.inner), s.columns = number(p.columns);
    a = map_of(p.type, p.a, p.inner, p.rows, 0, tile_inner);
    b = map_of(p.type, p.b, p.columns, p.rows, 0, tile_inner);
  } else {
    s.columns = number(p.columns), s.inner = number(p.inner);
    a = map_of(p.type, p.a, p.inner, p.rows, 0, tile_rows);
    b = form == GroupedForm::rows_by_transposed ? map_of(p.type, p.b, p.inner, p.columns, p.groups, tile_columns)
                                                : map_of(p.type, p.b, p.columns, p.inner, p.groups, tile_inner);
  }
  s.column_tiles = number((p.columns + tile_columns - 1) / tile_columns);
  const std::size_t bytes = shared_bytes(p.groups);
  const auto kernel = grouped_matmul_kernel<T, R, form, updates>;
  check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared_bytes(most_groups))),
        "allow a kernel its shared memory");
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(multiprocessors, most_tiles(p)));
  kernel<<<blocks, threads, bytes, stream>>>(a, b, s);
  check_launch("grouped_product");
}

template <class T, GroupedForm form>
void launch_by_result(cudaStream_t stream, const GroupedProduct& p, int multiprocessors) {
  if constexpr (form == GroupedForm::weights) {
    if (p.result == DType::f32) return launch<T, float, form>(stream, p, multiprocessors);
    if constexpr (std::is_same_v<T, bf16>)
      if (p.update.parameter) return launch<T, T, form, true>(stream, p, multiprocessors);
  }
  launch<T, T, form>(stream, p, multiprocessors);
}

template <class T>
void launch_by_form(cudaStream_t stream, const GroupedProduct& p, int multiprocessors) {
  switch (p.form) {
    case GroupedForm::rows_by_transposed:
      return launch_by_result<T, GroupedForm::rows_by_transposed>(stream, p, multiprocessors);
    case GroupedForm::rows: return launch_by_result<T, GroupedForm::rows>(stream, p, multiprocessors);
    case GroupedForm::weights: return launch_by_result<T, GroupedForm::weights>(stream, p, multiprocessors);
  }
}

}  // namespace

// Maps want addresses of 16 bytes and lines of a multiple of that, and so do the lines of c.
bool serves_by_matrix_units(const GroupedProduct& p, int major) {
  const auto aligned = [](const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; };
  constexpr std::int64_t most = std::int64_t{1} << 30;
  return major == 9 && p.inner > 0 && (p.type == DType::bf16 || p.type == DType::f16) &&
         (p.result == p.type || (p.form == GroupedForm::weights && p.result == DType::f32)) && p.columns % 8 == 0 &&
         p.inner % 8 == 0 && p.groups <= most_groups && p.rows > 0 && p.rows < most && p.columns < most &&
         p.inner < most && most_tiles(p) < most && aligned(p.a) && aligned(p.b) && aligned(p.c);
}

void launch_grouped_by_matrix_units(cudaStream_t stream, const GroupedProduct& p, int multiprocessors) {
  if (p.groups == 0 || p.columns == 0) return;
  if (p.type == DType::bf16)
    launch_by_form<bf16>(stream, p, multiprocessors);
  else
    launch_by_form<f16>(stream, p, multiprocessors);
}

}  // namespace assay::cuda
