// Backward, in one pass: a fixed number of blocks walks the rows, many rows at a time. A team of threads has a row, and
// the next one on its way from memory. Each thread has its columns in every row that it meets, so that the gradients by
// the three vectors gather in registers. They are added up over the rows of a block at its end, and over the blocks by
// a second kernel, both in an order that is always the same.
//
// With n = (sum - mean) rstd and g = dy weight: dsum = rstd (g - mean(g) - n mean(g n)), dx = mask(dsum),
// dweight = sum of dy n, dnorm_bias = sum of dy, dbias = sum of dx.
//
// The floor: dy and sum are read, dsum is written, and dx where something is dropped: 3 or 4 columns elements a row.
// [32640, 128] of 16 bits: 33.7 MB, 8 us at 4.2 TB/s; [16384, 768]: 101 MB, 24 us.
#include "cuda_error.hpp"
#include "kernels/dropout.cuh"
#include "kernels/dropout_norm.hpp"
#include "kernels/norm_total.hpp"
#include "kernels/teams.cuh"
#include "scratch_sizes.hpp"

namespace assay::cuda {
namespace {

constexpr int block_warps = 16;
constexpr int block_threads = block_warps * warp_size;  // leaves 128 registers to a thread
constexpr int wide_threads = 1024;
constexpr int vectors = dropout_norm_vectors;

// dx from a pack of dsum, of elements from `first` on: stored where it is wanted, and added to dbias.
template <class X, int V, bool drops>
__device__ __forceinline__ void pass_on(const DropoutNormBackwardArgs& a, PhiloxKey key, std::int64_t first,
                                        float (&dsum)[V], float (&dbias)[V]) {
  if constexpr (drops) {
    drop(dsum, key, static_cast<std::uint64_t>(first), a.dropout);
    if (a.dx) store(static_cast<X*>(a.dx) + first, held_from<X>(dsum));
  }
#pragma unroll
  for (int e = 0; e < V; ++e) dbias[e] += dsum[e];
}

// V elements in a pack, K packs held by a thread. dsum may be dy: no read-only loads there.
template <class X, class W, int V, int K, bool half, bool drops>
__global__ void __launch_bounds__(block_threads, 1)
    dropout_norm_backward_kernel(const DropoutNormBackwardArgs a, const float one_column) {
  // The numbers of the rows' reductions; afterwards the sums of the block's rows. 32 KiB at most.
  alignas(pack_bytes) __shared__ float shared[std::max(row_reducer_floats, block_threads * K * V)];
  TeamReducer<half, Rows::several> reducer(shared);
  const int packs = static_cast<int>(a.columns / V);
  float dweight[K][V] = {}, dnorm_bias[K][V] = {}, dbias[K][V] = {};

  struct Row {
    Held<X, V> sum[K], dy[K];
    float mean = 0.0F, rstd = 0.0F;
  };
  const auto load = [&](std::int64_t row, Row& r) {
    if (row >= a.rows) return;
    const std::int64_t first = row * a.columns;
    r.mean = a.mean[row];
    r.rstd = a.rstd[row];
    each_pack<K>(packs, [&](int i, int k) {
      r.sum[k] = hold<V>(static_cast<const X*>(a.sum) + first + i * V);
      r.dy[k] = hold<V>(static_cast<const X*>(a.dy) + first + i * V);
    });
  };
  const auto weights = [&](int i, float(&w)[V]) {
    unpack(hold<V, Cache::constant>(static_cast<const W*>(a.weight) + i * V), w);
  };

  const std::int64_t stride = gridDim.x * std::int64_t{blockDim.y};
  Row next;
  load(blockIdx.x * std::int64_t{blockDim.y} + threadIdx.y, next);
  PhiloxKey key{};
  if constexpr (drops) key = step_key_of_block(a.dropout);
  // All teams of a block take the same number of turns, since two may share a warp; one without a row has no packs.
  for (std::int64_t tile = blockIdx.x * std::int64_t{blockDim.y}; tile < a.rows; tile += stride) {
    const Row current = next;
    const std::int64_t row = tile + threadIdx.y, first = row * a.columns;
    load(row + stride, next);
    const int mine = row < a.rows ? packs : 0;
    float total[2] = {};  // of g (sum - mean), and of g
    each_pack<K>(mine, [&](int i, int k) {
      float x[V], dy[V], w[V];
      unpack(current.sum[k], x);
      unpack(current.dy[k], dy);
      weights(i, w);
#pragma unroll
      for (int e = 0; e < V; ++e) {
        total[0] += dy[e] * w[e] * (x[e] - current.mean);
        total[1] += dy[e] * w[e];
      }
    });
    reducer.template reduce<Sum>(total);
    const float pull = total[0] * current.rstd * one_column, shift = total[1] * one_column;
    each_pack<K>(mine, [&](int i, int k) {
      float x[V], dy[V], w[V];
      unpack(current.sum[k], x);
      unpack(current.dy[k], dy);
      weights(i, w);
#pragma unroll
      for (int e = 0; e < V; ++e) {
        x[e] = (x[e] - current.mean) * current.rstd;
        dweight[k][e] += dy[e] * x[e];
        dnorm_bias[k][e] += dy[e];
        dy[e] = (dy[e] * w[e] - shift - x[e] * pull) * current.rstd;
      }
      store(static_cast<X*>(a.dsum) + first + i * V, held_from<X>(dy));
      pass_on<X, V, drops>(a, key, first + i * V, dy, dbias[k]);
    });
  }

  const int columns = static_cast<int>(a.columns), rows = static_cast<int>(blockDim.y);
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const int threads = static_cast<int>(blockDim.x * blockDim.y);
  const auto store_sums = [&](int vector, float(&gathered)[K][V]) {
    float* const to = a.partials + vector * norm_partials_step(a.rows, a.columns) + blockIdx.x * a.columns;
    __syncthreads();  // all have read what was there
    each_pack<K>(packs, [&](int i, int k) {
      store(shared + static_cast<int>(threadIdx.y) * columns + i * V, held_from<float>(gathered[k]));
    });
    __syncthreads();
    for (int c = thread; c < columns; c += threads) {
      float sum = 0.0F;
#pragma unroll 4
      for (int r = 0; r < rows; ++r) sum += shared[r * columns + c];
      to[c] = sum;
    }
  };
  store_sums(0, dweight);
  store_sums(1, dnorm_bias);
  if (a.dbias) store_sums(2, dbias);
}

// For rows that do not fit in registers: each look reads them again, and the sums gather where they end up.
template <class X, class W, int V, bool drops>
__global__ void __launch_bounds__(wide_threads)
    wide_dropout_norm_backward_kernel(const DropoutNormBackwardArgs a, const float one_column) {
  __shared__ float shared[row_reducer_floats];
  RowReducer reducer(shared);
  const int packs = static_cast<int>(a.columns / V);
  float* partials[vectors];
  for (int v = 0; v < vectors; ++v)
    partials[v] = a.partials + v * norm_partials_step(a.rows, a.columns) + blockIdx.x * a.columns;
  PhiloxKey key{};
  if constexpr (drops) key = step_key_of_block(a.dropout);

  for (std::int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const std::int64_t first = row * a.columns;
    const float mean = a.mean[row], rstd = a.rstd[row];
    const auto load = [&](int i, float(&x)[V], float(&dy)[V], float(&w)[V]) {
      unpack(hold<V>(static_cast<const X*>(a.sum) + first + i * V), x);
      unpack(hold<V>(static_cast<const X*>(a.dy) + first + i * V), dy);
      unpack(hold<V, Cache::constant>(static_cast<const W*>(a.weight) + i * V), w);
    };
    float total[2] = {};
    each_pack<0>(packs, [&](int i, int) {
      float x[V], dy[V], w[V];
      load(i, x, dy, w);
#pragma unroll
      for (int e = 0; e < V; ++e) {
        total[0] += dy[e] * w[e] * (x[e] - mean);
        total[1] += dy[e] * w[e];
      }
    });
    reducer.reduce<Sum>(total);
    const float pull = total[0] * rstd * one_column, shift = total[1] * one_column;
    each_pack<0>(packs, [&](int i, int) {
      float x[V], dy[V], w[V], gathered[vectors][V] = {};
      load(i, x, dy, w);
      if (row != blockIdx.x)
        for (int v = 0; v < vectors; ++v) unpack(hold<V>(partials[v] + i * V), gathered[v]);
#pragma unroll
      for (int e = 0; e < V; ++e) {
        x[e] = (x[e] - mean) * rstd;
        gathered[0][e] += dy[e] * x[e];
        gathered[1][e] += dy[e];
        dy[e] = (dy[e] * w[e] - shift - x[e] * pull) * rstd;
      }
      store(static_cast<X*>(a.dsum) + first + i * V, held_from<X>(dy));
      pass_on<X, V, drops>(a, key, first + i * V, dy, gathered[2]);
      for (int v = 0; v < vectors; ++v) store(partials[v] + i * V, held_from<float>(gathered[v]));
    });
  }
}

template <class X, class W, int V, int K, bool half>
unsigned launch_held(const DropoutNormBackwardArgs& a, int threads, cudaStream_t stream) {
  const int rows = block_threads / threads;
  const unsigned blocks = grid_size(a.rows, rows, most_norm_blocks);
  const dim3 block(static_cast<unsigned>(threads), static_cast<unsigned>(rows));
  const auto kernel = a.dropout.drop_below > 0 ? dropout_norm_backward_kernel<X, W, V, K, half, true>
                                               : dropout_norm_backward_kernel<X, W, V, K, half, false>;
  kernel<<<blocks, block, 0, stream>>>(a, 1.0F / static_cast<float>(a.columns));
  return blocks;
}

template <class X, class W, int V>
unsigned launch_wide(const DropoutNormBackwardArgs& a, cudaStream_t stream) {
  const unsigned blocks = grid_size(a.rows, 1, most_norm_blocks);
  const auto kernel = a.dropout.drop_below > 0 ? wide_dropout_norm_backward_kernel<X, W, V, true>
                                               : wide_dropout_norm_backward_kernel<X, W, V, false>;
  kernel<<<blocks, wide_threads, 0, stream>>>(a, 1.0F / static_cast<float>(a.columns));
  return blocks;
}

// Returns the number of blocks.
template <class X, class W>
unsigned launch(const DropoutNormBackwardArgs& a, cudaStream_t stream) {
  constexpr int wide = pack_width<X>, scalars = 4;
  const bool vectorised = a.columns % wide == 0 && aligned({a.dy, a.sum, a.weight, a.dsum, a.dx});
  const std::int64_t packs = vectorised ? a.columns / wide : a.columns;
  const auto threads_at = [packs](int held) {
    return static_cast<int>(ceil_div(ceil_div(packs, held), warp_size)) * warp_size;
  };
  if (vectorised) {
    if (packs <= half_warp) return launch_held<X, W, wide, 1, true>(a, half_warp, stream);
    if (packs <= 2 * block_threads) return launch_held<X, W, wide, 2, false>(a, threads_at(2), stream);
    return launch_wide<X, W, wide>(a, stream);
  }
  if (packs <= scalars * block_threads) return launch_held<X, W, 1, scalars, false>(a, threads_at(scalars), stream);
  return launch_wide<X, W, 1>(a, stream);
}

}  // namespace

void dropout_norm_backward(const DropoutNormBackwardArgs& a, cudaStream_t stream) {
  constexpr const char* operation = "dropout_add_layer_norm_backward";
  unsigned blocks = 0;  // without rows the gradients are 0
  if (a.rows > 0) {
    dispatch_float(a.type, [&](auto tag) {
      using X = typename decltype(tag)::type;
      blocks = a.weight_type == a.type ? launch<X, X>(a, stream) : launch<X, float>(a, stream);
    });
    check_launch(operation);
  }
  const std::int64_t step = norm_partials_step(a.rows, a.columns);
  launch_norm_totals({{{a.partials, a.dweight, a.dweight_type},
                       {a.partials + step, a.dnorm_bias, a.dnorm_bias_type},
                       {a.partials + 2 * step, a.dbias, a.dbias_type}}},
                     blocks, a.columns, a.accumulate, stream);
  check_launch(operation);
}

}  // namespace assay::cuda
