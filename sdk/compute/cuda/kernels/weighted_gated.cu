// Gated units whose rows have weights, and their gradients. The forward goes by packs; in the backward a row is one
// team's, which adds up the gradient of the row's weight in one order.
#include "cuda_error.hpp"
#include "kernels/experts.hpp"
#include "kernels/math.cuh"
#include "kernels/rows.cuh"
#include "kernels/tiles.cuh"

namespace assay::cuda {
namespace {

using compute::GatedUnit;
using compute::SwigluShape;

// Both directions multiply in this order, with nothing to fuse: h comes out the same.
template <class T>
struct Gated {
  float gate, up, sigma, silu, h;  // gate and up: within the limit, up with its offset
  bool gate_moves, up_moves;       // they are not beyond the limit; NaN is not

  __device__ __forceinline__ Gated(float g, float u, const GatedUnit& unit) : gate_moves(true), up_moves(true) {
    if (unit.limit > 0.0F) {
      gate_moves = !(g > unit.limit);
      up_moves = !(fabsf(u) > unit.limit);
      if (!gate_moves) g = unit.limit;
      if (!up_moves) u = copysignf(unit.limit, u);
    }
    gate = g;
    up = __fadd_rn(u, unit.offset);
    sigma = sigmoid<T>(__fmul_rn(unit.alpha, gate));
    silu = __fmul_rn(gate, sigma);
    h = __fmul_rn(silu, up);
  }
};

__device__ __forceinline__ float weight_of(const RowWeights& weights, std::int32_t source) {
  return source >= 0 && source < weights.count ? __ldg(weights.weights + source) : __int_as_float(0x7fc00000);
}

constexpr int threads = 256;
constexpr int forward_packs = 2;  // per thread: four loads under way

// h is written as usual: the product that follows reads it.
template <class T, int N>
__global__ void __launch_bounds__(threads)
    weighted_gated_forward_kernel(const T* gate, const T* up, T* h, const RowWeights weights, const GatedUnit unit,
                                  std::uint32_t packs, FastDivision packs_per_row, const SwigluShape s) {
  const std::uint32_t first = blockIdx.x * (threads * forward_packs) + threadIdx.x;
  Held<T, N> g[forward_packs], u[forward_packs];
  std::int64_t target[forward_packs];
  float weight[forward_packs];
  bool is_used[forward_packs];
#pragma unroll
  for (int k = 0; k < forward_packs; ++k) {
    std::uint32_t row = first + k * threads;
    if (row >= packs) continue;
    const std::int64_t column = static_cast<std::int64_t>(packs_per_row.split(row)) * N;
    target[k] = row * s.h_step + column;
    const std::int32_t source = __ldg(weights.sources + row);
    is_used[k] = source != -1;
    if (!is_used[k]) continue;
    g[k] = hold<N>(gate + row * s.gate_step + column);
    u[k] = hold<N>(up + row * s.up_step + column);
    weight[k] = weight_of(weights, source);
  }
#pragma unroll
  for (int k = 0; k < forward_packs; ++k) {
    if (first + k * threads >= packs) continue;
    float y[N] = {};
    if (is_used[k]) {
      float x[N];
      unpack(g[k], x);
      unpack(u[k], y);
#pragma unroll
      for (int j = 0; j < N; ++j) y[j] = __fmul_rn(weight[k], Gated<T>(x[j], y[j], unit).h);
    }
    store(h + target[k], held_from<T>(y));
  }
}

template <class T, int N>
void forward(cudaStream_t stream, const T* gate, const T* up, T* h, const RowWeights& weights, const GatedUnit& unit,
             const SwigluShape& s) {
  for_tiles(s.rows, s.width / N, [&](std::int64_t row, std::int64_t rows, std::int64_t pack, std::int64_t packs) {
    const std::int64_t total = rows * packs, column = pack * N;
    const RowWeights of_rows{weights.weights, weights.count, weights.sources + row};
    weighted_gated_forward_kernel<T, N><<<grid_size(total, threads * forward_packs), threads, 0, stream>>>(
        gate + row * s.gate_step + column, up + row * s.up_step + column, h + row * s.h_step + column, of_rows, unit,
        static_cast<std::uint32_t>(total), FastDivision(packs), s);
    check_launch("weighted_gated_forward");
  });
}

// V elements in a pack, K packs held by a thread (0: any number, one after the other). gate and up may be the outputs:
// no access to them goes past the coherent caches. Nothing reads dh again.
template <class T, int V, int K, bool with_h>
__global__ void __launch_bounds__(512)
    weighted_gated_backward_kernel(const T* gate, const T* up, const T* dh, T* dgate, T* dup, T* h, float* dweights,
                                   const RowWeights weights, const GatedUnit unit, const SwigluShape s) {
  __shared__ float shared[row_reducer_floats];
  RowReducer reducer(shared);
  const int packs = static_cast<int>(s.width / V);
  for (std::int64_t row = blockIdx.x * std::int64_t{blockDim.y} + threadIdx.y; row < s.rows;
       row += gridDim.x * std::int64_t{blockDim.y}) {
    T* const dgate_row = dgate + row * s.dgate_step;
    T* const dup_row = dup + row * s.dup_step;
    T* const h_row = with_h ? h + row * s.h_step : nullptr;
    const std::int32_t source = __ldg(weights.sources + row);
    if (source == -1) {  // for all threads of the row
      const float zeros[V] = {};
      each_pack<K>(packs, [&](int i, int) {
        store(dgate_row + i * V, held_from<T>(zeros));
        store(dup_row + i * V, held_from<T>(zeros));
        if constexpr (with_h) store(h_row + i * V, held_from<T>(zeros));
      });
      continue;
    }
    const auto load = [&](int i, Held<T, V>& g, Held<T, V>& u, Held<T, V>& d) {
      g = hold<V>(gate + row * s.gate_step + i * V);
      u = hold<V>(up + row * s.up_step + i * V);
      d = hold<V, Cache::streaming>(dh + row * s.dh_step + i * V);
    };
    Held<T, V> g[K > 0 ? K : 1], u[K > 0 ? K : 1], d[K > 0 ? K : 1];
    if constexpr (K > 0) each_pack<K>(packs, [&](int i, int k) { load(i, g[k], u[k], d[k]); });
    const float weight = weight_of(weights, source);
    float dot[1] = {};
    each_pack<K>(packs, [&](int i, int k) {
      if constexpr (K == 0) load(i, g[0], u[0], d[0]);
      float x[V], y[V], z[V], product[V];
      unpack(g[k], x);
      unpack(u[k], y);
      unpack(d[k], z);
#pragma unroll
      for (int e = 0; e < V; ++e) {
        const Gated<T> unit_of(x[e], y[e], unit);
        const float slope = unit_of.sigma + unit.alpha * unit_of.silu * (1.0F - unit_of.sigma);
        const float of_row = weight * z[e];
        product[e] = __fmul_rn(weight, unit_of.h);
        dot[0] += z[e] * unit_of.h;
        x[e] = unit_of.gate_moves ? of_row * unit_of.up * slope : 0.0F;
        y[e] = unit_of.up_moves ? of_row * unit_of.silu : 0.0F;
      }
      store(dgate_row + i * V, held_from<T>(x));
      store(dup_row + i * V, held_from<T>(y));
      if constexpr (with_h) store(h_row + i * V, held_from<T>(product));
    });
    reducer.reduce<Sum>(dot);
    if (threadIdx.x == 0 && source >= 0 && source < weights.count) dweights[source] = dot[0];
  }
}

template <class T, bool with_h>
auto backward_kernel(bool wide, int held) {
  constexpr int V = pack_width<T>;
  if (!wide)
    return held > 0 ? weighted_gated_backward_kernel<T, 1, 4, with_h> : weighted_gated_backward_kernel<T, 1, 0, with_h>;
  if (held == 0) return weighted_gated_backward_kernel<T, V, 0, with_h>;
  return held <= 2 ? weighted_gated_backward_kernel<T, V, 2, with_h> : weighted_gated_backward_kernel<T, V, 4, with_h>;
}

}  // namespace

void launch_weighted_gated_forward(cudaStream_t stream, compute::DType type, const void* gate, const void* up, void* h,
                                   const RowWeights& weights, const GatedUnit& unit, const SwigluShape& s) {
  dispatch_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool wide = packs_fit<T>(s, {gate, up, h}, {s.gate_step, s.up_step, s.h_step});
    const auto launch = wide ? forward<T, pack_width<T>> : forward<T, 1>;
    launch(stream, static_cast<const T*>(gate), static_cast<const T*>(up), static_cast<T*>(h), weights, unit, s);
  });
}

void launch_weighted_gated_backward(cudaStream_t stream, compute::DType type, const void* gate, const void* up,
                                    const void* dh, void* dgate, void* dup, void* h, float* dweights,
                                    const RowWeights& weights, const GatedUnit& unit, const SwigluShape& s) {
  // Those that no row has, and rows write theirs after this.
  if (weights.count > 0)
    check(cudaMemsetAsync(dweights, 0, static_cast<std::size_t>(weights.count) * sizeof *dweights, stream),
          "clear the gradients of weighted_gated_backward");
  if (s.rows == 0 || s.width == 0) return;
  dispatch_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool wide = packs_fit<T>(s, {gate, up, dh, dgate, dup, h},
                                   {s.gate_step, s.up_step, s.dh_step, s.dgate_step, s.dup_step, s.h_step});
    const RowShape shape = row_shape(wide ? s.width / pack_width<T> : s.width, wide);
    const dim3 block(static_cast<unsigned>(shape.threads), static_cast<unsigned>(shape.rows));
    const auto kernel = h ? backward_kernel<T, true>(wide, shape.held) : backward_kernel<T, false>(wide, shape.held);
    kernel<<<row_grid(s.rows, shape), block, 0, stream>>>(
        static_cast<const T*>(gate), static_cast<const T*>(up), static_cast<const T*>(dh), static_cast<T*>(dgate),
        static_cast<T*>(dup), static_cast<T*>(h), dweights, weights, unit, s);
    check_launch("weighted_gated_backward");
  });
}

}  // namespace assay::cuda
