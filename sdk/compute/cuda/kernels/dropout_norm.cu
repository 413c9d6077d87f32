// Forward, in one pass: a row is read once, and held in registers between the sum, the statistics and the result.
//
// The floor: x and residual are read, sum and y are written, which is 4 columns elements a row and 8 bytes of
// statistics. [32640, 128] of 16 bits: 33.7 MB, 8 us at 4.2 TB/s; [16384, 768]: 101 MB, 24 us.
#include "kernels/dropout_norm.hpp"

#include "cuda_error.hpp"
#include "kernels/dropout.cuh"
#include "kernels/teams.cuh"

namespace assay::cuda {
namespace {

constexpr int narrow_threads = 256;  // of a block with several rows
constexpr int most_threads = 512;

// V elements in a pack, K packs held by a thread (0: the row does not fit, and is read again for each look). x,
// residual and sum may be one place: no read-only loads there. A block has one row for each threadIdx.y, and a team
// past the last row has no packs: it takes part in the barriers, and that is all.
template <class X, class W, int V, int K, bool half, bool drops>
__global__ void __launch_bounds__(most_threads, K == 0 ? 1 : 2) dropout_norm_kernel(const DropoutNormForwardArgs a) {
  __shared__ float shared[row_reducer_floats];
  TeamReducer<half, Rows::one> reducer(shared);
  const std::int64_t row = blockIdx.x * std::int64_t{blockDim.y} + threadIdx.y, first = row * a.columns;
  const bool valid = row < a.rows;
  const int packs = valid ? static_cast<int>(a.columns / V) : 0;
  const auto columns = static_cast<float>(a.columns);
  const X* const x = static_cast<const X*>(a.x) + first;
  const X* const residual = static_cast<const X*>(a.residual) + first;
  X* const sum = static_cast<X*>(a.sum) + first;
  const W* const bias = static_cast<const W*>(a.bias);

  Held<X, V> held[K > 0 ? K : 1], other[K > 0 ? K : 1];
  const auto load = [&](int i, int k) {
    held[k] = hold<V>(x + i * V);
    other[k] = hold<V>(residual + i * V);
  };
  if constexpr (K > 0) each_pack<K>(packs, load);
  PhiloxKey key{};
  if constexpr (drops) key = step_key_of_block(a.dropout);  // while the row is on its way
  each_pack<K>(packs, [&](int i, int k) {
    if constexpr (K == 0) load(i, k);
    float left[V], right[V];
    unpack(held[k], left);
    if (bias) {
      unpack(hold<V, Cache::constant>(bias + i * V), right);
#pragma unroll
      for (int e = 0; e < V; ++e) left[e] += right[e];
    }
    if constexpr (drops) drop(left, key, static_cast<std::uint64_t>(first + i * V), a.dropout);
    unpack(other[k], right);
#pragma unroll
    for (int e = 0; e < V; ++e) left[e] += right[e];
    // What was stored is normalised: the backward will see the rounded sum.
    held[k] = held_from<X>(left);
    store(sum + i * V, held[k]);
  });
  const auto row_values = [&](int i, int k, float(&values)[V]) {
    if constexpr (K == 0)
      unpack(hold<V>(sum + i * V), values);  // each thread reads again what it wrote itself
    else
      unpack(held[k], values);
  };

  float total = 0.0F;
  each_pack<K>(packs, [&](int i, int k) {
    float values[V];
    row_values(i, k, values);
#pragma unroll
    for (int e = 0; e < V; ++e) total += values[e];
  });
  const float mean = reducer.template reduce<Sum>(total) / columns;
  // From the distances to the mean, not from the squares: the latter lose everything where mean >> deviation.
  float squares = 0.0F;
  each_pack<K>(packs, [&](int i, int k) {
    float values[V];
    row_values(i, k, values);
#pragma unroll
    for (int e = 0; e < V; ++e) squares += (values[e] - mean) * (values[e] - mean);
  });
  const float rstd = 1.0F / sqrtf(reducer.template reduce<Sum>(squares) / columns + a.eps);
  if (valid && threadIdx.x == 0) {
    a.mean[row] = mean;
    a.rstd[row] = rstd;
  }
  X* const y = static_cast<X*>(a.y) + first;
  each_pack<K>(packs, [&](int i, int k) {
    float values[V], scales[V], shifts[V];
    row_values(i, k, values);
    unpack(hold<V, Cache::constant>(static_cast<const W*>(a.weight) + i * V), scales);
    unpack(hold<V, Cache::constant>(static_cast<const W*>(a.norm_bias) + i * V), shifts);
#pragma unroll
    for (int e = 0; e < V; ++e) values[e] = (values[e] - mean) * rstd * scales[e] + shifts[e];
    store(y + i * V, held_from<X>(values));
  });
}

template <class X, class W, int V, int K, bool half>
void launch(const DropoutNormForwardArgs& a, int threads, cudaStream_t stream) {
  const int rows = threads > warp_size ? 1 : narrow_threads / threads;
  const dim3 block(static_cast<unsigned>(threads), static_cast<unsigned>(rows));
  const auto kernel = a.dropout.drop_below > 0 ? dropout_norm_kernel<X, W, V, K, half, true>
                                               : dropout_norm_kernel<X, W, V, K, half, false>;
  kernel<<<grid_size(a.rows, rows), block, 0, stream>>>(a);
}

template <class X, class W>
void forward(const DropoutNormForwardArgs& a, cudaStream_t stream) {
  constexpr int wide = pack_width<X>;
  const bool vectorised =
      a.columns % wide == 0 && aligned({a.x, a.residual, a.sum, a.weight, a.bias, a.norm_bias, a.y});
  const std::int64_t packs = vectorised ? a.columns / wide : a.columns;
  const auto threads_at = [packs](int held) {
    return static_cast<int>(ceil_div(ceil_div(packs, held), warp_size)) * warp_size;
  };
  const bool fits = packs <= 4 * most_threads;
  if (!vectorised)
    return fits ? launch<X, W, 1, 4, false>(a, threads_at(4), stream)
                : launch<X, W, 1, 0, false>(a, most_threads, stream);
  if (packs <= half_warp) return launch<X, W, wide, 1, true>(a, half_warp, stream);
  if (packs <= 2 * warp_size) return launch<X, W, wide, 2, false>(a, warp_size, stream);
  if (fits) return launch<X, W, wide, 4, false>(a, threads_at(4), stream);
  launch<X, W, wide, 0, false>(a, most_threads, stream);
}

}  // namespace

void dropout_norm_forward(const DropoutNormForwardArgs& a, cudaStream_t stream) {
  if (a.rows == 0) return;
  dispatch_float(a.type, [&](auto tag) {
    using X = typename decltype(tag)::type;
    if (a.weight_type == a.type)
      forward<X, X>(a, stream);
    else
      forward<X, float>(a, stream);
  });
  check_launch("dropout_add_layer_norm_forward");
}

}  // namespace assay::cuda
