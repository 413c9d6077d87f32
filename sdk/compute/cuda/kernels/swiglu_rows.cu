// SwiGLU with its results in 8 bits as well: a row is one team's, which must know the row's largest magnitude before it
// writes.
#include "cuda_error.hpp"
#include "kernels/eight_bit.cuh"
#include "kernels/elementwise.hpp"
#include "kernels/rows.cuh"
#include "kernels/swiglu.cuh"

namespace assay::cuda {
namespace {

// V elements in a pack, K packs held by a thread (0: the row is read twice). h may be NULL.
template <class T, int V, int K>
__global__ void __launch_bounds__(512)
    swiglu_forward_rows_kernel(const T* gate, const T* up, T* h, const SwigluShape s, const EightBitsOut out) {
  __shared__ float shared[row_reducer_floats];
  RowReducer reducer(shared);
  const int packs = static_cast<int>(s.width / V);
  for (std::int64_t row = blockIdx.x * std::int64_t{blockDim.y} + threadIdx.y; row < s.rows;
       row += gridDim.x * std::int64_t{blockDim.y}) {
    const T* const gate_row = gate + row * s.gate_step;
    const T* const up_row = up + row * s.up_step;
    Held<T, V> g[K > 0 ? K : 1], u[K > 0 ? K : 1];
    if constexpr (K > 0)
      each_pack<K>(packs, [&](int i, int k) { g[k] = hold<V>(gate_row + i * V), u[k] = hold<V>(up_row + i * V); });
    const auto rounded = [&](int i, int k) {
      if constexpr (K == 0) g[0] = hold<V>(gate_row + i * V), u[0] = hold<V>(up_row + i * V);
      float x[V], y[V];
      unpack(g[k], x);
      unpack(u[k], y);
#pragma unroll
      for (int e = 0; e < V; ++e) y[e] = swiglu<T>(x[e], y[e]);
      return held_from<T>(y);
    };
    float largest = 0.0F;
    each_pack<K>(packs, [&](int i, int k) {
      const Held<T, V> y = rounded(i, k);
      if (h) store(h + row * s.h_step + i * V, y);
      if constexpr (K > 0) g[k] = y;
      float numbers[V];
      unpack(y, numbers);
      largest = largest_magnitude(largest, numbers);
    });
    const compute::EightBitScale scale =
        compute::eight_bit_scale(reducer.reduce<LargestMagnitude>(largest), compute::E4m3::largest());
    if (threadIdx.x == 0) out.inverse_scale[row] = scale.inverse;
    each_pack<K>(packs, [&](int i, int k) {
      float numbers[V];
      if constexpr (K > 0)
        unpack(g[k], numbers);
      else
        unpack(rounded(i, k), numbers);
      store_pack(out.numbers + row * s.width + i * V, eight_bits<__NV_E4M3>(numbers, scale.scale));
    });
  }
}

// gate and up may be the outputs: no access to them goes past the coherent caches. A row of out is [dgate, dup], which
// may both be NULL, and so may h.
template <class T, int V, int K>
__global__ void __launch_bounds__(512)
    swiglu_backward_rows_kernel(const T* gate, const T* up, const T* dh, T* dgate, T* dup, T* h, const SwigluShape s,
                                const EightBitsOut out) {
  __shared__ float shared[row_reducer_floats];
  RowReducer reducer(shared);
  const int packs = static_cast<int>(s.width / V);
  for (std::int64_t row = blockIdx.x * std::int64_t{blockDim.y} + threadIdx.y; row < s.rows;
       row += gridDim.x * std::int64_t{blockDim.y}) {
    const auto load = [&](int i, Held<T, V>& g, Held<T, V>& u, Held<T, V>& d) {
      g = hold<V>(gate + row * s.gate_step + i * V);
      u = hold<V>(up + row * s.up_step + i * V);
      d = hold<V, Cache::streaming>(dh + row * s.dh_step + i * V);
    };
    Held<T, V> g[K > 0 ? K : 1], u[K > 0 ? K : 1], d[K > 0 ? K : 1];
    if constexpr (K > 0) each_pack<K>(packs, [&](int i, int k) { load(i, g[k], u[k], d[k]); });
    // Puts the gradients in the places of gate and up.
    const auto differentiate = [&](int k, float(&products)[V]) {
      float x[V], y[V], z[V];
      unpack(g[k], x);
      unpack(u[k], y);
      unpack(d[k], z);
#pragma unroll
      for (int e = 0; e < V; ++e) {
        const SwigluGradients all = swiglu_backward<T>(x[e], y[e], z[e]);
        products[e] = all.h, x[e] = all.dgate, y[e] = all.dup;
      }
      g[k] = held_from<T>(x), u[k] = held_from<T>(y);
    };
    float largest = 0.0F;
    each_pack<K>(packs, [&](int i, int k) {
      if constexpr (K == 0) load(i, g[0], u[0], d[0]);
      float x[V], y[V], products[V];
      differentiate(k, products);
      if (h) store(h + row * s.h_step + i * V, held_from<T>(products));
      if (dgate) {
        store(dgate + row * s.dgate_step + i * V, g[k]);
        store(dup + row * s.dup_step + i * V, u[k]);
      }
      unpack(g[k], x);
      unpack(u[k], y);
      largest = largest_magnitude(largest_magnitude(largest, x), y);
    });
    const compute::EightBitScale scale =
        compute::eight_bit_scale(reducer.reduce<LargestMagnitude>(largest), compute::E4m3::largest());
    if (threadIdx.x == 0) out.inverse_scale[row] = scale.inverse;
    std::uint8_t* const to = out.numbers + row * 2 * s.width;
    each_pack<K>(packs, [&](int i, int k) {
      if constexpr (K == 0) {
        if (dgate) {  // each thread reads again what it wrote itself
          g[0] = hold<V>(dgate + row * s.dgate_step + i * V);
          u[0] = hold<V>(dup + row * s.dup_step + i * V);
        } else {
          float products[V];
          load(i, g[0], u[0], d[0]);
          differentiate(0, products);
        }
      }
      float x[V], y[V];
      unpack(g[k], x);
      unpack(u[k], y);
      store_pack(to + i * V, eight_bits<__NV_E4M3>(x, scale.scale));
      store_pack(to + s.width + i * V, eight_bits<__NV_E4M3>(y, scale.scale));
    });
  }
}

template <class T>
bool in_packs(const SwigluShape& s, std::initializer_list<const void*> addresses,
              std::initializer_list<std::int64_t> steps, const EightBitsOut& out) {
  constexpr std::int64_t wide = pack_width<T>;
  return s.width % wide == 0 && aligned(addresses) && aligned({out.numbers}, wide) &&
         std::all_of(steps.begin(), steps.end(), [](std::int64_t step) { return step % wide == 0; });
}

}  // namespace

void launch_swiglu_forward_rows(cudaStream_t stream, compute::DType type, const void* gate, const void* up, void* h,
                                const SwigluShape& s, const EightBitsOut& out) {
  if (s.rows == 0 || s.width == 0) return;
  dispatch_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int wide = pack_width<T>;
    const bool vectorised = in_packs<T>(s, {gate, up, h}, {s.gate_step, s.up_step, s.h_step}, out);
    const RowShape shape = row_shape(vectorised ? s.width / wide : s.width, vectorised);
    const dim3 threads(static_cast<unsigned>(shape.threads), static_cast<unsigned>(shape.rows));
    const auto kernel =
        vectorised ? (shape.held ? swiglu_forward_rows_kernel<T, wide, 4> : swiglu_forward_rows_kernel<T, wide, 0>)
                   : (shape.held ? swiglu_forward_rows_kernel<T, 1, 4> : swiglu_forward_rows_kernel<T, 1, 0>);
    kernel<<<row_grid(s.rows, shape), threads, 0, stream>>>(static_cast<const T*>(gate), static_cast<const T*>(up),
                                                            static_cast<T*>(h), s, out);
    check_launch("swiglu_forward");
  });
}

void launch_swiglu_backward_rows(cudaStream_t stream, compute::DType type, const void* gate, const void* up,
                                 const void* dh, void* dgate, void* dup, void* h, const SwigluShape& s,
                                 const EightBitsOut& out) {
  if (s.rows == 0 || s.width == 0) return;
  dispatch_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int wide = pack_width<T>;
    const bool vectorised = in_packs<T>(s, {gate, up, dh, dgate, dup, h},
                                        {s.gate_step, s.up_step, s.dh_step, s.dgate_step, s.dup_step, s.h_step}, out);
    const RowShape shape = row_shape(vectorised ? s.width / wide : s.width, vectorised);
    const dim3 threads(static_cast<unsigned>(shape.threads), static_cast<unsigned>(shape.rows));
    const auto kernel =
        vectorised ? (shape.held ? swiglu_backward_rows_kernel<T, wide, 4> : swiglu_backward_rows_kernel<T, wide, 0>)
                   : (shape.held ? swiglu_backward_rows_kernel<T, 1, 4> : swiglu_backward_rows_kernel<T, 1, 0>);
    kernel<<<row_grid(s.rows, shape), threads, 0, stream>>>(static_cast<const T*>(gate), static_cast<const T*>(up),
                                                            static_cast<const T*>(dh), static_cast<T*>(dgate),
                                                            static_cast<T*>(dup), static_cast<T*>(h), s, out);
    check_launch("swiglu_backward");
  });
}

}  // namespace assay::cuda
