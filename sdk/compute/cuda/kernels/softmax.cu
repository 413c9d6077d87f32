#include "kernels/softmax.hpp"

#include "cuda_error.hpp"
#include "kernels/exponential.cuh"
#include "kernels/rows.cuh"
#include "kernels/sink_vector.cuh"

namespace assay::cuda {
namespace {

constexpr int most_threads = 512;

__device__ inline float score_of(const SoftmaxArgs& a, float x) {
  const float score = x * a.scale;
  return a.soft_cap > 0.0F ? a.soft_cap * tanhf(score / a.soft_cap) : score;
}

// V elements in a pack, K packs held by a thread (0: the row is read once per look). y may be x: no read-only loads.
template <class T, int V, int K>
__global__ void __launch_bounds__(most_threads, K == 4 ? 1 : 2) softmax_forward_kernel(const SoftmaxArgs a) {
  __shared__ float shared[row_reducer_floats];
  RowReducer reducer(shared);
  const int packs = static_cast<int>(a.columns / V);
  for (std::int64_t row = blockIdx.x * std::int64_t{blockDim.y} + threadIdx.y; row < a.rows;
       row += gridDim.x * std::int64_t{blockDim.y}) {
    const T* const x = static_cast<const T*>(a.x) + row * a.columns;
    T* const y = static_cast<T*>(a.out) + row * a.columns;
    std::int64_t seen = a.columns;
    if (a.causal) seen = min(seen, max(std::int64_t{0}, row % a.queries + 1 + a.columns - a.queries));
    const int visible = static_cast<int>(seen);
    const std::int64_t before = row % a.queries + 1 + a.columns - a.queries - a.window;
    int hidden = a.window > 0 ? static_cast<int>(max(std::int64_t{0}, before)) : 0;
    if (a.first_keys)
      hidden = max(hidden, a.first_keys[row / a.rows_of_sequence * a.first_keys_stride + row % a.queries]);
    const auto is_seen = [&](int column) { return column >= hidden && column < visible; };
    const int visible_packs = (visible + V - 1) / V;

    float held[K > 0 ? K : 1][V];
    const auto load = [&](int i, int k) {
      unpack(hold<V>(x + i * V), held[k]);
#pragma unroll
      for (int e = 0; e < V; ++e) held[k][e] = is_seen(i * V + e) ? score_of(a, held[k][e]) : Largest::nothing;
    };
    float high = Largest::nothing;
    if constexpr (K > 0) each_pack<K>(visible_packs, load);
    each_pack<K>(visible_packs, [&](int i, int k) {
      if constexpr (K == 0) load(i, k);
#pragma unroll
      for (int e = 0; e < V; ++e) high = fmaxf(high, held[k][e]);
    });
    high = reducer.reduce<Largest>(high);
    const float sink = a.sinks.data ? sink_of(a.sinks, row / a.queries % a.heads) : Largest::nothing;
    if (a.sinks.data) high = fmaxf(high, sink);

    // What lies before and behind the visible columns: minus infinity, whose exponential is 0, or NaN if nothing finite
    // is visible.
    float sum = 0.0F;
    each_pack<K>(visible_packs, [&](int i, int k) {
      if constexpr (K == 0) load(i, k);
#pragma unroll
      for (int e = 0; e < V; ++e) {
        held[k][e] = is_seen(i * V + e) ? exponential<T>(held[k][e] - high) : 0.0F;
        sum += held[k][e];
      }
    });
    sum = reducer.reduce<Sum>(sum);
    if (a.sinks.data) sum += exponential<T>(sink - high);
    if (a.lse && threadIdx.x == 0) a.lse[row] = high + logf(sum);
    const float factor = 1.0F / sum;
    each_pack<K>(packs, [&](int i, int k) {
      float values[V] = {};
      if (i < visible_packs) {
        if constexpr (K == 0) load(i, k);
#pragma unroll
        for (int e = 0; e < V; ++e) {
          if constexpr (K == 0) held[k][e] = is_seen(i * V + e) ? exponential<T>(held[k][e] - high) : 0.0F;
          values[e] = is_seen(i * V + e) ? held[k][e] * factor : 0.0F;
        }
      }
      store(y + i * V, held_from<T>(values));
    });
  }
}

// dx = y (dy - sum of y dy) scale. dx may be dy or y.
template <class T, int V, int K>
__global__ void __launch_bounds__(most_threads, K == 4 ? 1 : 2) softmax_backward_kernel(const SoftmaxArgs a) {
  __shared__ float shared[row_reducer_floats];
  RowReducer reducer(shared);
  const int packs = static_cast<int>(a.columns / V);
  for (std::int64_t row = blockIdx.x * std::int64_t{blockDim.y} + threadIdx.y; row < a.rows;
       row += gridDim.x * std::int64_t{blockDim.y}) {
    const T* const y_row = static_cast<const T*>(a.x) + row * a.columns;
    const T* const dy_row = static_cast<const T*>(a.dy) + row * a.columns;
    T* const dx_row = static_cast<T*>(a.out) + row * a.columns;
    Held<T, V> y_held[K > 0 ? K : 1], dy_held[K > 0 ? K : 1];
    const auto load = [&](int i, int k) {
      y_held[k] = hold<V>(y_row + i * V);
      dy_held[k] = hold<V>(dy_row + i * V);
    };
    if constexpr (K > 0) each_pack<K>(packs, load);
    float dot = 0.0F;
    each_pack<K>(packs, [&](int i, int k) {
      if constexpr (K == 0) load(i, k);
      float y[V], dy[V];
      unpack(y_held[k], y);
      unpack(dy_held[k], dy);
#pragma unroll
      for (int e = 0; e < V; ++e) dot += y[e] * dy[e];
    });
    dot = reducer.reduce<Sum>(dot);
    each_pack<K>(packs, [&](int i, int k) {
      if constexpr (K == 0) load(i, k);
      float y[V], dy[V];
      unpack(y_held[k], y);
      unpack(dy_held[k], dy);
#pragma unroll
      for (int e = 0; e < V; ++e) dy[e] = y[e] * (dy[e] - dot) * a.scale;
      if (a.soft_cap > 0.0F) {
#pragma unroll
        for (int e = 0; e < V; ++e) {
          const float t = y[e] > 0.0F ? (logf(y[e]) + a.lse[row]) / a.soft_cap : 0.0F;  // y = exp(score - lse)
          dy[e] *= 1.0F - t * t;
        }
      }
      store(dx_row + i * V, held_from<T>(dy));
    });
  }
}

constexpr int warps_of_head = 32;

// dsinks: a block per head; each warp has every 32nd row of it.
template <class T>
__global__ void __launch_bounds__(32 * warps_of_head) softmax_sink_gradients_kernel(const SoftmaxArgs a) {
  __shared__ float of_warps[warps_of_head];
  const std::int64_t head = blockIdx.x, rows = a.rows / a.heads;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const float sink = sink_of(a.sinks, head);
  float sum = 0.0F;  // this lane's columns of the warp's rows
  for (std::int64_t i = warp; i < rows; i += warps_of_head) {
    const std::int64_t row = (i / a.queries * a.heads + head) * a.queries + i % a.queries;
    const T* const y = static_cast<const T*>(a.x) + row * a.columns;
    const T* const dy = static_cast<const T*>(a.dy) + row * a.columns;
    float part = 0.0F;
    for (std::int64_t c = lane; c < a.columns; c += 32) part = fmaf(to_float(y[c]), to_float(dy[c]), part);
    sum = fmaf(-expf(sink - a.lse[row]), part, sum);
  }
  sum = warp_sum(sum);
  if (lane == 0) of_warps[warp] = sum;
  __syncthreads();
  if (warp > 0) return;
  sum = warp_sum(of_warps[lane]);
  if (lane == 0) store_sink_gradient(a.dsinks, head, sum, a.accumulate);
}

template <class T, int V, int K>
void launch(const SoftmaxArgs& a, const RowShape& shape, cudaStream_t stream) {
  const dim3 threads(static_cast<unsigned>(shape.threads), static_cast<unsigned>(shape.rows));
  const unsigned blocks = row_grid(a.rows, shape);
  if (a.dy)
    softmax_backward_kernel<T, V, K><<<blocks, threads, 0, stream>>>(a);
  else
    softmax_forward_kernel<T, V, K><<<blocks, threads, 0, stream>>>(a);
}

void run(const SoftmaxArgs& a, const char* operation, cudaStream_t stream) {
  if (a.rows == 0) return;
  dispatch_float(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int wide = pack_width<T>;
    const bool vectorised = a.columns % wide == 0 && aligned({a.x, a.dy, a.out});
    const RowShape shape = row_shape(vectorised ? a.columns / wide : a.columns, vectorised);
    if (vectorised) {
      if (shape.held == 2)
        launch<T, wide, 2>(a, shape, stream);
      else if (shape.held == 4)
        launch<T, wide, 4>(a, shape, stream);
      else
        launch<T, wide, 0>(a, shape, stream);
    } else if (shape.held == 4) {
      launch<T, 1, 4>(a, shape, stream);
    } else {
      launch<T, 1, 0>(a, shape, stream);
    }
  });
  check_launch(operation);
}

}  // namespace

void softmax_forward(const SoftmaxArgs& a, cudaStream_t stream) {
  SoftmaxArgs forward = a;
  forward.dy = nullptr;
  run(forward, "softmax_forward", stream);
}

void softmax_backward(const SoftmaxArgs& a, cudaStream_t stream) {
  constexpr const char* operation = "softmax_backward";
  if (a.sinks.data && a.heads > 0) {  // before dx, which may be dy
    dispatch_float(a.type, [&](auto tag) {
      softmax_sink_gradients_kernel<typename decltype(tag)::type>
          <<<static_cast<unsigned>(a.heads), 32 * warps_of_head, 0, stream>>>(a);
    });
    check_launch(operation);
  }
  run(a, operation, stream);
}

}  // namespace assay::cuda
