// Backward: a fixed number of blocks walks the rows, many rows at a time. Each row has a few warps, which wait only for
// each other, so that a multiprocessor always has rows on their way from memory. Each thread has its columns in every
// row that it meets, so that the gradients by weight and bias gather in registers. They are added up over the rows of a
// block at its end, and over the blocks by a second kernel, both in an order that is always the same.
//
// With n = (x - mean) rstd and g = dy weight: dx = rstd (g - mean(g) - n mean(g n)), dweight = sum of dy n, dbias = sum
// of dy. For RMS normalisation mean and mean(g) are left out.
#include <cuda_pipeline.h>

#include "cuda_error.hpp"
#include "kernels/eight_bit.cuh"
#include "kernels/norm.hpp"
#include "kernels/norm_total.hpp"
#include "kernels/norm_types.cuh"
#include "kernels/rows.cuh"
#include "scratch_sizes.hpp"

namespace assay::cuda {
namespace {

constexpr int block_warps = 16;
constexpr int block_threads = block_warps * warp_size;  // leaves 128 registers to a thread
constexpr int wide_threads = 1024;

// Packs of V elements that a thread may hold of a row: as many as fit in its registers next to its sums.
template <int V, bool layer>
constexpr int most_held = V == 1 ? 4 : (V == 8 && layer ? 2 : 3);

// What a block shares: the numbers of the rows' reductions and, where they come in packs, the weights; in the same
// place afterwards the sums of its rows. 48 KiB at most.
template <int V, int K>
constexpr int shared_floats = std::min(row_reducer_floats + block_threads * K * V, 48 * 1024 / 4);

template <int V>
__device__ __forceinline__ void add_offset(const NormArgs& a, float (&w)[V]) {
#pragma unroll
  for (int e = 0; e < V; ++e) w[e] += a.weight_offset;
}

// V elements in a pack, K packs held by a thread. dx may be dy or residual: no read-only loads there.
template <class X, class W, int V, int K, bool layer>
__global__ void __launch_bounds__(block_threads, 1) norm_backward_kernel(const NormArgs a, const float one_column) {
  constexpr int sums = layer ? 2 : 1;
  constexpr bool staged = V > 1;
  alignas(pack_bytes) __shared__ float shared[shared_floats<V, K>];
  static_assert(block_threads * K * V <= shared_floats<V, K>);
  BasicRowReducer<Rows::several> reducer(shared);
  W* const staged_weight = reinterpret_cast<W*>(shared + row_reducer_floats);
  const int packs = static_cast<int>(a.columns / V);
  float dweight[K][V] = {}, dbias[layer ? K : 1][V] = {};

  Held<X, V> held_x[K], held_dy[K], held_residual[K];
  float rstd = 0.0F, mean = 0.0F;
  const auto load = [&](std::int64_t row) {
    if (row >= a.rows) return;
    const std::int64_t first = row * a.columns;
    rstd = a.rstd[row];
    if constexpr (layer) mean = a.mean[row];
    each_pack<K>(packs, [&](int i, int k) {
      held_x[k] = hold<V>(static_cast<const X*>(a.x) + first + i * V);
      held_dy[k] = hold<V>(static_cast<const X*>(a.dy) + first + i * V);
      if (a.residual) held_residual[k] = hold<V>(static_cast<const X*>(a.residual) + first + i * V);
    });
  };
  const auto factors = [&](int i, float(&w)[V]) {
    if constexpr (staged)
      unpack(hold<V>(staged_weight + i * V), w);
    else
      unpack(hold<V, Cache::constant>(static_cast<const W*>(a.weight) + i * V), w);
    if constexpr (!layer) add_offset(a, w);
  };

  // The weights come beside the first rows, so that no row waits for them later.
  if constexpr (staged) {
    constexpr int part = pack_width<W>;
    const int threads = static_cast<int>(blockDim.x * blockDim.y);
    for (int c = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x) * part; c < packs * V; c += threads * part)
      __pipeline_memcpy_async(staged_weight + c, static_cast<const W*>(a.weight) + c, pack_bytes);
    __pipeline_commit();
  }
  const std::int64_t stride = gridDim.x * std::int64_t{blockDim.y};
  std::int64_t row = blockIdx.x * std::int64_t{blockDim.y} + threadIdx.y;
  load(row);
  if constexpr (staged) {
    __pipeline_wait_prior(0);
    __syncthreads();
  }
  for (; row < a.rows; row += stride, load(row)) {
    float total[sums] = {};  // of g (x - mean), and of g
    each_pack<K>(packs, [&](int i, int k) {
      float x[V], dy[V], w[V];
      unpack(held_x[k], x);
      unpack(held_dy[k], dy);
      factors(i, w);
#pragma unroll
      for (int e = 0; e < V; ++e) {
        total[0] += dy[e] * w[e] * (x[e] - mean);
        if constexpr (layer) total[1] += dy[e] * w[e];
      }
    });
    reducer.reduce<Sum>(total);
    const float pull = total[0] * rstd * one_column;
    const float shift = layer ? total[sums - 1] * one_column : 0.0F;

    const std::int64_t first = row * a.columns;
    each_pack<K>(packs, [&](int i, int k) {
      float x[V], dy[V], w[V];
      unpack(held_x[k], x);
      unpack(held_dy[k], dy);
      factors(i, w);
#pragma unroll
      for (int e = 0; e < V; ++e) {
        x[e] = (x[e] - mean) * rstd;
        dweight[k][e] += dy[e] * x[e];
        if constexpr (layer) dbias[k][e] += dy[e];
        dy[e] = (dy[e] * w[e] - shift - x[e] * pull) * rstd;
      }
      if (a.residual) {
        float residual[V];
        unpack(held_residual[k], residual);
#pragma unroll
        for (int e = 0; e < V; ++e) dy[e] += residual[e];
      }
      held_dy[k] = held_from<X>(dy);
      store(static_cast<X*>(a.dx) + first + i * V, held_dy[k]);
      if constexpr (!layer) {
        if (a.y) {
#pragma unroll
          for (int e = 0; e < V; ++e) x[e] *= w[e];
          store(static_cast<X*>(a.y) + first + i * V, held_from<X>(x));
        }
      }
    });
    if constexpr (!layer) {
      if (a.eight_bits) {
        float largest = 0.0F;
        each_pack<K>(packs, [&](int, int k) {
          float dx[V];
          unpack(held_dy[k], dx);
          largest = largest_magnitude(largest, dx);
        });
        const compute::EightBitScale s =
            compute::eight_bit_scale(reducer.template reduce<LargestMagnitude>(largest), compute::E4m3::largest());
        if (threadIdx.x == 0) a.inverse_scale[row] = s.inverse;
        each_pack<K>(packs, [&](int i, int k) {
          float dx[V];
          unpack(held_dy[k], dx);
          store_pack(a.eight_bits + first + i * V, eight_bits<__NV_E4M3>(dx, s.scale));
        });
      }
    }
  }

  const auto store_sums = [&](float* to, float(&gathered)[K][V]) {
    to += blockIdx.x * a.columns;
    if (blockDim.y == 1) {
      each_pack<K>(packs, [&](int i, int k) { store(to + i * V, held_from<float>(gathered[k])); });
      return;
    }
    const int columns = static_cast<int>(a.columns);
    float* const mine = shared + static_cast<int>(threadIdx.y) * columns;
    __syncthreads();  // all have read what was there
    each_pack<K>(packs, [&](int i, int k) { store(mine + i * V, held_from<float>(gathered[k])); });
    __syncthreads();
    const int threads = static_cast<int>(blockDim.x * blockDim.y);
    const int rows = static_cast<int>(blockDim.y);
    for (int c = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); c < columns; c += threads) {
      float sum = 0.0F;
#pragma unroll 4
      for (int r = 0; r < rows; ++r) sum += shared[r * columns + c];
      to[c] = sum;
    }
  };
  store_sums(a.partials, dweight);
  if constexpr (layer) store_sums(a.partials + norm_partials_step(a.rows, a.columns), dbias);
}

// For rows that do not fit in registers: each look reads them again, and the sums gather where they end up.
template <class X, class W, int V, bool layer>
__global__ void __launch_bounds__(wide_threads) wide_norm_backward_kernel(const NormArgs a, const float one_column) {
  constexpr int sums = layer ? 2 : 1;
  __shared__ float shared[row_reducer_floats];
  RowReducer reducer(shared);
  const int packs = static_cast<int>(a.columns / V);
  const W* const weight = static_cast<const W*>(a.weight);
  float* const dweight = a.partials + blockIdx.x * a.columns;
  float* const dbias = dweight + norm_partials_step(a.rows, a.columns);

  for (std::int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const std::int64_t first = row * a.columns;
    const X* const x_row = static_cast<const X*>(a.x) + first;
    const X* const dy_row = static_cast<const X*>(a.dy) + first;
    const float rstd = a.rstd[row];
    const float mean = layer ? a.mean[row] : 0.0F;
    float total[sums] = {};
    each_pack<0>(packs, [&](int i, int) {
      float x[V], dy[V], w[V];
      unpack(hold<V>(x_row + i * V), x);
      unpack(hold<V>(dy_row + i * V), dy);
      unpack(hold<V, Cache::constant>(weight + i * V), w);
      if constexpr (!layer) add_offset(a, w);
#pragma unroll
      for (int e = 0; e < V; ++e) {
        total[0] += dy[e] * w[e] * (x[e] - mean);
        if constexpr (layer) total[1] += dy[e] * w[e];
      }
    });
    reducer.reduce<Sum>(total);
    const float pull = total[0] * rstd * one_column;
    const float shift = layer ? total[sums - 1] * one_column : 0.0F;
    const bool first_row = row == blockIdx.x;

    each_pack<0>(packs, [&](int i, int) {
      float x[V], dy[V], w[V], gathered[V] = {};
      unpack(hold<V>(x_row + i * V), x);
      unpack(hold<V>(dy_row + i * V), dy);
      unpack(hold<V, Cache::constant>(weight + i * V), w);
      if constexpr (!layer) add_offset(a, w);
      if constexpr (layer) {
        if (!first_row) unpack(hold<V>(dbias + i * V), gathered);
#pragma unroll
        for (int e = 0; e < V; ++e) gathered[e] += dy[e];
        store(dbias + i * V, held_from<float>(gathered));
#pragma unroll
        for (int e = 0; e < V; ++e) gathered[e] = 0.0F;
      }
      if (!first_row) unpack(hold<V>(dweight + i * V), gathered);
#pragma unroll
      for (int e = 0; e < V; ++e) {
        x[e] = (x[e] - mean) * rstd;
        gathered[e] += dy[e] * x[e];
        dy[e] = (dy[e] * w[e] - shift - x[e] * pull) * rstd;
      }
      store(dweight + i * V, held_from<float>(gathered));
      if (a.residual) {
        float residual[V];
        unpack(hold<V>(static_cast<const X*>(a.residual) + first + i * V), residual);
#pragma unroll
        for (int e = 0; e < V; ++e) dy[e] += residual[e];
      }
      store(static_cast<X*>(a.dx) + first + i * V, held_from<X>(dy));
      if constexpr (!layer) {
        if (a.y) {
#pragma unroll
          for (int e = 0; e < V; ++e) x[e] *= w[e];
          store(static_cast<X*>(a.y) + first + i * V, held_from<X>(x));
        }
      }
    });
    if constexpr (!layer) {
      if (a.eight_bits) {  // each thread reads again what it wrote itself
        const X* const dx_row = static_cast<const X*>(a.dx) + first;
        float largest = 0.0F;
        each_pack<0>(packs, [&](int i, int) {
          float dx[V];
          unpack(hold<V>(dx_row + i * V), dx);
          largest = largest_magnitude(largest, dx);
        });
        const compute::EightBitScale s =
            compute::eight_bit_scale(reducer.reduce<LargestMagnitude>(largest), compute::E4m3::largest());
        if (threadIdx.x == 0) a.inverse_scale[row] = s.inverse;
        each_pack<0>(packs, [&](int i, int) {
          float dx[V];
          unpack(hold<V>(dx_row + i * V), dx);
          store_pack(a.eight_bits + first + i * V, eight_bits<__NV_E4M3>(dx, s.scale));
        });
      }
    }
  }
}

template <class X, class W, int V, int K, bool layer>
unsigned launch_held(const NormArgs& a, int row_warps, cudaStream_t stream) {
  const int rows = block_warps / row_warps;
  const unsigned blocks = grid_size(a.rows, rows, most_norm_blocks);
  const dim3 threads(static_cast<unsigned>(row_warps * warp_size), static_cast<unsigned>(rows));
  norm_backward_kernel<X, W, V, K, layer><<<blocks, threads, 0, stream>>>(a, 1.0F / static_cast<float>(a.columns));
  return blocks;
}

// Returns the number of blocks.
template <class X, class W, int V, bool layer>
unsigned launch(const NormArgs& a, cudaStream_t stream) {
  constexpr int most = most_held<V, layer>;
  const std::int64_t packs = a.columns / V;
  const std::int64_t row_warps = ceil_div(packs, most * warp_size);
  const std::int64_t weight_floats = V > 1 ? a.columns * static_cast<std::int64_t>(sizeof(W)) / 4 : 0;
  if (row_warps > block_warps || row_reducer_floats + weight_floats > shared_floats<V, most>) {
    const unsigned blocks = grid_size(a.rows, 1, most_norm_blocks);
    wide_norm_backward_kernel<X, W, V, layer>
        <<<blocks, wide_threads, 0, stream>>>(a, 1.0F / static_cast<float>(a.columns));
    return blocks;
  }
  if constexpr (most == 3) {
    if (packs <= row_warps * 2 * warp_size)
      return launch_held<X, W, V, 2, layer>(a, static_cast<int>(row_warps), stream);
  }
  return launch_held<X, W, V, most, layer>(a, static_cast<int>(row_warps), stream);
}

template <bool layer>
void backward(const NormArgs& a, const char* operation, cudaStream_t stream) {
  unsigned blocks = 0;  // without rows the gradients are 0
  if (a.rows > 0) {
    with_norm_types(a, [&](auto x_tag, auto w_tag) {
      using X = typename decltype(x_tag)::type;
      using W = typename decltype(w_tag)::type;
      constexpr int wide = pack_width<X>;
      const bool vectorised = a.columns % wide == 0 && aligned({a.x, a.dy, a.weight, a.residual, a.dx, a.y}) &&
                              aligned({a.eight_bits}, wide);
      blocks = vectorised ? launch<X, W, wide, layer>(a, stream) : launch<X, W, 1, layer>(a, stream);
    });
    check_launch(operation);
  }
  NormTotals totals;
  totals[0] = {a.partials, a.dweight, a.dweight_type};
  if (layer) totals[1] = {a.partials + norm_partials_step(a.rows, a.columns), a.dbias, a.dbias_type};
  launch_norm_totals(totals, blocks, a.columns, a.accumulate, stream);
  check_launch(operation);
}

}  // namespace

void rms_norm_backward(const NormArgs& a, cudaStream_t stream) { backward<false>(a, "rms_norm_backward", stream); }
void layer_norm_backward(const NormArgs& a, cudaStream_t stream) { backward<true>(a, "layer_norm_backward", stream); }

}  // namespace assay::cuda
