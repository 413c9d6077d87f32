// h = f(gate) * up and its gradient, f SiLU or GELU, by rows with their own strides.
#include "cuda_error.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/swiglu.cuh"
#include "kernels/tiles.cuh"
#include "kernels/types.cuh"

namespace assay::cuda {
namespace {

constexpr int threads = 256;
constexpr int forward_packs = 2;   // per thread: four loads under way
constexpr int backward_packs = 1;  // three loads; the registers of more would cost threads

// Where the pack of a thread lies: row and column.
struct Place {
  std::int64_t row, column;
};
template <int N>
__device__ __forceinline__ Place place_of(std::uint32_t i, const FastDivision& packs_per_row) {
  const std::uint32_t column = packs_per_row.split(i);
  return {i, static_cast<std::int64_t>(column) * N};
}

// h is written as usual: the product that follows reads it.
template <class T, Activation activation, int N>
__global__ void __launch_bounds__(threads) swiglu_forward_kernel(const T* gate, const T* up, T* h, std::uint32_t packs,
                                                                 FastDivision packs_per_row, SwigluShape s) {
  const std::uint32_t first = blockIdx.x * (threads * forward_packs) + threadIdx.x;
  Pack<T, N> g[forward_packs], u[forward_packs];
  Place place[forward_packs];
#pragma unroll
  for (int k = 0; k < forward_packs; ++k) {
    const std::uint32_t i = first + k * threads;
    if (i >= packs) continue;
    place[k] = place_of<N>(i, packs_per_row);
    g[k] = load_pack<N>(gate + place[k].row * s.gate_step + place[k].column);
    u[k] = load_pack<N>(up + place[k].row * s.up_step + place[k].column);
  }
#pragma unroll
  for (int k = 0; k < forward_packs; ++k) {
    if (first + k * threads >= packs) continue;
    float y[N];
#pragma unroll
    for (int j = 0; j < N; ++j) {
      y[j] = swiglu<T, activation>(to_float(g[k].v[j]), to_float(u[k].v[j]));
    }
    store_pack(h + place[k].row * s.h_step + place[k].column, pack_from<T>(y));
  }
}

// gate and up may be the outputs: no access to them goes past the coherent caches. Nothing reads dh again.
template <class T, Activation activation, int N, bool with_h>
__global__ void __launch_bounds__(threads)
    swiglu_backward_kernel(const T* gate, const T* up, const T* dh, T* dgate, T* dup, T* h, std::uint32_t packs,
                           FastDivision packs_per_row, SwigluShape s) {
  const std::uint32_t first = blockIdx.x * (threads * backward_packs) + threadIdx.x;
  Pack<T, N> g[backward_packs], u[backward_packs], d[backward_packs];
  Place place[backward_packs];
#pragma unroll
  for (int k = 0; k < backward_packs; ++k) {
    const std::uint32_t i = first + k * threads;
    if (i >= packs) continue;
    place[k] = place_of<N>(i, packs_per_row);
    g[k] = load_pack<N>(gate + place[k].row * s.gate_step + place[k].column);
    u[k] = load_pack<N>(up + place[k].row * s.up_step + place[k].column);
    d[k] = load_pack<N, Cache::streaming>(dh + place[k].row * s.dh_step + place[k].column);
  }
#pragma unroll
  for (int k = 0; k < backward_packs; ++k) {
    if (first + k * threads >= packs) continue;
    float y[N], dg[N], du[N];
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const SwigluGradients all =
          swiglu_backward<T, activation>(to_float(g[k].v[j]), to_float(u[k].v[j]), to_float(d[k].v[j]));
      y[j] = all.h, dg[j] = all.dgate, du[j] = all.dup;
    }
    if constexpr (with_h) store_pack(h + place[k].row * s.h_step + place[k].column, pack_from<T>(y));
    store_pack(dgate + place[k].row * s.dgate_step + place[k].column, pack_from<T>(dg));
    store_pack(dup + place[k].row * s.dup_step + place[k].column, pack_from<T>(du));
  }
}

template <class T, Activation activation, int N>
void forward(cudaStream_t stream, const T* gate, const T* up, T* h, const SwigluShape& s) {
  for_tiles(s.rows, s.width / N, [&](std::int64_t row, std::int64_t rows, std::int64_t pack, std::int64_t packs) {
    const std::int64_t total = rows * packs, column = pack * N;
    swiglu_forward_kernel<T, activation, N><<<grid_size(total, threads * forward_packs), threads, 0, stream>>>(
        gate + row * s.gate_step + column, up + row * s.up_step + column, h + row * s.h_step + column,
        static_cast<std::uint32_t>(total), FastDivision(packs), s);
    check_launch("swiglu_forward");
  });
}

template <class T, Activation activation, int N, bool with_h>
void backward(cudaStream_t stream, const T* gate, const T* up, const T* dh, T* dgate, T* dup, T* h,
              const SwigluShape& s) {
  for_tiles(s.rows, s.width / N, [&](std::int64_t row, std::int64_t rows, std::int64_t pack, std::int64_t packs) {
    const std::int64_t total = rows * packs, column = pack * N;
    swiglu_backward_kernel<T, activation, N, with_h>
        <<<grid_size(total, threads * backward_packs), threads, 0, stream>>>(
            gate + row * s.gate_step + column, up + row * s.up_step + column, dh + row * s.dh_step + column,
            dgate + row * s.dgate_step + column, dup + row * s.dup_step + column,
            with_h ? h + row * s.h_step + column : nullptr, static_cast<std::uint32_t>(total), FastDivision(packs), s);
    check_launch("swiglu_backward");
  });
}

// call(type, activation) with constants.
template <class Call>
void dispatch(compute::DType type, Activation activation, Call call) {
  dispatch_float(type, [&](auto tag) {
    if (activation == Activation::silu)
      call(tag, std::integral_constant<Activation, Activation::silu>());
    else
      call(tag, std::integral_constant<Activation, Activation::gelu_tanh>());
  });
}

}  // namespace

void launch_swiglu_forward(cudaStream_t stream, compute::DType type, Activation activation, const void* gate,
                           const void* up, void* h, const SwigluShape& s) {
  dispatch(type, activation, [&](auto tag, auto constant) {
    using T = typename decltype(tag)::type;
    constexpr Activation f = decltype(constant)::value;
    const bool wide = packs_fit<T>(s, {gate, up, h}, {s.gate_step, s.up_step, s.h_step});
    const auto launch = wide ? forward<T, f, pack_width<T>> : forward<T, f, 1>;
    launch(stream, static_cast<const T*>(gate), static_cast<const T*>(up), static_cast<T*>(h), s);
  });
}

void launch_swiglu_backward(cudaStream_t stream, compute::DType type, Activation activation, const void* gate,
                            const void* up, const void* dh, void* dgate, void* dup, void* h, const SwigluShape& s) {
  dispatch(type, activation, [&](auto tag, auto constant) {
    using T = typename decltype(tag)::type;
    constexpr Activation f = decltype(constant)::value;
    const bool wide = packs_fit<T>(s, {gate, up, dh, dgate, dup, h},
                                   {s.gate_step, s.up_step, s.dh_step, s.dgate_step, s.dup_step, s.h_step});
    constexpr int N = pack_width<T>;
    const auto launch = h ? (wide ? backward<T, f, N, true> : backward<T, f, 1, true>)
                          : (wide ? backward<T, f, N, false> : backward<T, f, 1, false>);
    launch(stream, static_cast<const T*>(gate), static_cast<const T*>(up), static_cast<const T*>(dh),
           static_cast<T*>(dgate), static_cast<T*>(dup), static_cast<T*>(h), s);
  });
}

}  // namespace assay::cuda
