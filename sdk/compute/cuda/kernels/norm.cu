// Forward: one row per warp or block, held in registers between the statistics and the result.
#include "kernels/norm.hpp"

#include "cuda_error.hpp"
#include "kernels/eight_bit.cuh"
#include "kernels/norm_types.cuh"
#include "kernels/rows.cuh"

namespace assay::cuda {
namespace {

// V elements in a pack, K packs held by a thread. x, residual and sum may be one place: no read-only loads there.
template <class X, class W, int V, int K, bool layer>
__global__ void __launch_bounds__(512, K == 4 ? 1 : 2) norm_forward_kernel(const NormArgs a) {
  __shared__ float shared[row_reducer_floats];
  RowReducer reducer(shared);
  const int packs = static_cast<int>(a.columns / V);
  const auto columns = static_cast<float>(a.columns);
  const W* const weight = static_cast<const W*>(a.weight);
  const W* const bias = static_cast<const W*>(a.bias);
  // The weight comes while the row is being summed, where registers allow it.
  constexpr bool weight_ahead = K > 0 && K * V * sizeof(W) <= 64;

  for (std::int64_t row = blockIdx.x * std::int64_t{blockDim.y} + threadIdx.y; row < a.rows;
       row += gridDim.x * std::int64_t{blockDim.y}) {
    const X* x = static_cast<const X*>(a.x) + row * a.columns;
    X* const y = static_cast<X*>(a.y) + row * a.columns;
    Held<X, V> held[K > 0 ? K : 1];
    Held<W, V> weights[weight_ahead ? K : 1];
    if constexpr (K > 0) each_pack<K>(packs, [&](int i, int k) { held[k] = hold<V>(x + i * V); });
    if constexpr (weight_ahead)
      each_pack<K>(packs, [&](int i, int k) { weights[k] = hold<V, Cache::constant>(weight + i * V); });
    if constexpr (!layer) {
      if (a.residual) {
        const X* const residual = static_cast<const X*>(a.residual) + row * a.columns;
        X* const sum = static_cast<X*>(a.sum) + row * a.columns;
        Held<X, V> other[K > 0 ? K : 1];
        if constexpr (K > 0) each_pack<K>(packs, [&](int i, int k) { other[k] = hold<V>(residual + i * V); });
        each_pack<K>(packs, [&](int i, int k) {
          if constexpr (K == 0) {
            held[0] = hold<V>(x + i * V);
            other[0] = hold<V>(residual + i * V);
          }
          float left[V], right[V];
          unpack(held[k], left);
          unpack(other[k], right);
#pragma unroll
          for (int e = 0; e < V; ++e) left[e] += right[e];
          // What was stored is normalised: the backward will see the rounded sum.
          held[k] = held_from<X>(left);
          store(sum + i * V, held[k]);
        });
        x = sum;  // each thread reads again what it wrote itself
      }
    }
    const auto row_values = [&](int i, int k, float(&values)[V]) {
      if constexpr (K == 0)
        unpack(hold<V>(x + i * V), values);
      else
        unpack(held[k], values);
    };

    float mean = 0.0F;
    if constexpr (layer) {
      float sum = 0.0F;
      each_pack<K>(packs, [&](int i, int k) {
        float values[V];
        row_values(i, k, values);
#pragma unroll
        for (int e = 0; e < V; ++e) sum += values[e];
      });
      mean = reducer.reduce<Sum>(sum) / columns;
    }
    // From the distances to the mean, not from the squares: the latter lose everything where mean >> deviation.
    float squares = 0.0F;
    each_pack<K>(packs, [&](int i, int k) {
      float values[V];
      row_values(i, k, values);
#pragma unroll
      for (int e = 0; e < V; ++e) squares += (values[e] - mean) * (values[e] - mean);
    });
    const float rstd = 1.0F / sqrtf(reducer.reduce<Sum>(squares) / columns + a.eps);
    if (threadIdx.x == 0) {
      a.rstd[row] = rstd;
      if constexpr (layer) a.mean[row] = mean;
    }
    const auto normed = [&](int i, int k, float(&values)[V]) {
      float scales[V];
      row_values(i, k, values);
      if constexpr (weight_ahead)
        unpack(weights[k], scales);
      else
        unpack(hold<V, Cache::constant>(weight + i * V), scales);
#pragma unroll
      for (int e = 0; e < V; ++e) {
        if constexpr (!layer) scales[e] += a.weight_offset;
        values[e] = (values[e] - mean) * rstd * scales[e];
      }
      if constexpr (layer) {
        float shifts[V];
        unpack(hold<V, Cache::constant>(bias + i * V), shifts);
#pragma unroll
        for (int e = 0; e < V; ++e) values[e] += shifts[e];
      }
    };
    if (layer || !a.eight_bits) {
      each_pack<K>(packs, [&](int i, int k) {
        float values[V];
        normed(i, k, values);
        store(y + i * V, held_from<X>(values));
      });
      continue;
    }
    float largest = 0.0F;
    each_pack<K>(packs, [&](int i, int k) {
      float values[V];
      normed(i, k, values);
      const Held<X, V> rounded = held_from<X>(values);
      if (a.y) store(y + i * V, rounded);
      if constexpr (K > 0) held[k] = rounded;
      unpack(rounded, values);
      largest = largest_magnitude(largest, values);
    });
    const compute::EightBitScale s =
        compute::eight_bit_scale(reducer.reduce<LargestMagnitude>(largest), compute::E4m3::largest());
    if (threadIdx.x == 0) a.inverse_scale[row] = s.inverse;
    each_pack<K>(packs, [&](int i, int k) {
      float values[V];
      if constexpr (K > 0) {
        unpack(held[k], values);
      } else {
        normed(i, k, values);
        unpack(held_from<X>(values), values);
      }
      store_pack(a.eight_bits + row * a.columns + i * V, eight_bits<__NV_E4M3>(values, s.scale));
    });
  }
}

template <class X, class W, int V, int K, bool layer>
void launch(const NormArgs& a, const RowShape& shape, cudaStream_t stream) {
  const dim3 threads(static_cast<unsigned>(shape.threads), static_cast<unsigned>(shape.rows));
  norm_forward_kernel<X, W, V, K, layer><<<row_grid(a.rows, shape), threads, 0, stream>>>(a);
}

template <bool layer>
void forward(const NormArgs& a, cudaStream_t stream) {
  with_norm_types(a, [&](auto x_tag, auto w_tag) {
    using X = typename decltype(x_tag)::type;
    using W = typename decltype(w_tag)::type;
    constexpr int wide = pack_width<X>;
    const bool vectorised = a.columns % wide == 0 && aligned({a.x, a.residual, a.sum, a.weight, a.bias, a.y}) &&
                            aligned({a.eight_bits}, wide);
    const RowShape shape = row_shape(vectorised ? a.columns / wide : a.columns, vectorised);
    if (vectorised) {
      if (shape.held == 2)
        launch<X, W, wide, 2, layer>(a, shape, stream);
      else if (shape.held == 4)
        launch<X, W, wide, 4, layer>(a, shape, stream);
      else
        launch<X, W, wide, 0, layer>(a, shape, stream);
    } else if (shape.held == 4) {
      launch<X, W, 1, 4, layer>(a, shape, stream);
    } else {
      launch<X, W, 1, 0, layer>(a, shape, stream);
    }
  });
}

}  // namespace

void rms_norm_forward(const NormArgs& a, cudaStream_t stream) {
  if (a.rows == 0) return;
  forward<false>(a, stream);
  check_launch(a.residual ? "add_rms_norm_forward" : "rms_norm_forward");
}

void layer_norm_forward(const NormArgs& a, cudaStream_t stream) {
  if (a.rows == 0) return;
  forward<true>(a, stream);
  check_launch("layer_norm_forward");
}

}  // namespace assay::cuda
