// A row is read once and held in registers, as exponentials once its largest logit is known, until the gradient goes
// where the logits were: memory is passed twice in all. A row that is too wide for that is read once for its loss, and
// once more for its gradient.
#include "kernels/cross_entropy.hpp"

#include "cuda_error.hpp"
#include "kernels/exponential.cuh"
#include "kernels/rows.cuh"

namespace assay::cuda {
namespace {

constexpr int most_threads = 512;

struct Label {
  bool counts, ignored, out_of_range;  // none of them: its column is in another part of the row
  int pack, element;                   // where the label's column is, if it counts

  __device__ __forceinline__ Label(std::int64_t label, const CrossEntropyArgs& a, int pack_elements)
      : ignored(label < 0), out_of_range(label >= a.classes) {
    std::int64_t column = label - a.first_class;
    if (a.classes_each > 1 && column >= 0) column /= a.classes_each;
    counts = !ignored && !out_of_range && column >= 0 && column < a.columns;
    pack = counts ? static_cast<int>(column) / pack_elements : -1;
    element = counts ? static_cast<int>(column) % pack_elements : -1;
  }

  // Whether each_pack gives this thread the label's pack.
  __device__ __forceinline__ bool is_mine() const {
    return counts && static_cast<unsigned>(pack) % blockDim.x == threadIdx.x;
  }
};

__device__ __forceinline__ float gradient_scale(const CrossEntropyArgs& a) {
  return a.loss_scale ? a.scale * *a.loss_scale : a.scale;
}

// What a soft cap makes of a logit, and its slope there.
template <bool capped>
struct Cap {
  float cap;
  __device__ __forceinline__ explicit Cap(const CrossEntropyArgs& a) : cap(a.soft_cap) {}
  __device__ __forceinline__ float value(float x) const { return capped ? cap * tanhf(x / cap) : x; }
  __device__ __forceinline__ float slope(float value) const {
    const float t = capped ? value / cap : 0.0F;
    return 1.0F - t * t;
  }
};

template <class T, int V>
__device__ __forceinline__ void fill_row(T* row, int packs, float value) {
  float values[V];
#pragma unroll
  for (int e = 0; e < V; ++e) values[e] = value;
  each_pack<0>(packs, [&](int i, int) { store(row + i * V, held_from<T>(values)); });
}

// What a row has where its label does not count.
template <class T, int V>
__device__ __forceinline__ void leave_out(const CrossEntropyArgs& a, std::int64_t row, const Label& label, int packs) {
  const float value = label.ignored ? 0.0F : __builtin_nanf("");
  fill_row<T, V>(static_cast<T*>(a.dlogits) + row * a.columns, packs, value);
  if (threadIdx.x == 0) a.losses[row] = value;
}
__device__ __forceinline__ float gradient_at_label(float below, float sum, float scale) {
  return (expf(-below) / sum - 1.0F) * scale;
}
// Of rows whose gradient is another operation's.
__device__ __forceinline__ void keep_lse(const CrossEntropyArgs& a, std::int64_t row, const Label& label, float lse) {
  if (threadIdx.x != 0) return;
  a.lse[row] = label.out_of_range ? __builtin_nanf("") : lse;
  if (!label.counts) a.losses[row] = label.out_of_range ? __builtin_nanf("") : 0.0F;
}

// V elements in a pack, K packs held by a thread. The thread that has the label's column keeps its distance to the
// largest logit, and writes the loss. With a soft cap logits stay in the registers, whose slopes the gradient needs.
template <class T, int V, int K, bool in_place, bool capped>
__global__ void __launch_bounds__(most_threads, K* V <= 32 ? 2 : 1)
    cross_entropy_losses_kernel(const CrossEntropyArgs a) {
  __shared__ float shared[row_reducer_floats];
  RowReducer reducer(shared);
  const Cap<capped> cap(a);
  const int packs = static_cast<int>(a.columns / V);
  for (std::int64_t row = blockIdx.x * std::int64_t{blockDim.y} + threadIdx.y; row < a.rows;
       row += gridDim.x * std::int64_t{blockDim.y}) {
    const T* const x = static_cast<const T*>(a.logits) + row * a.columns;
    float held[K][V];
    each_pack<K>(packs, [&](int i, int k) {
      unpack(hold<V>(x + i * V), held[k]);
      if constexpr (capped) {
#pragma unroll
        for (int e = 0; e < V; ++e) held[k][e] = cap.value(held[k][e]);
      }
    });
    const Label label(a.labels[row], a, V);
    if constexpr (in_place) {
      if (!label.counts) {
        leave_out<T, V>(a, row, label, packs);
        continue;
      }
    }

    float high = Largest::nothing;
    each_pack<K>(packs, [&](int, int k) {
#pragma unroll
      for (int e = 0; e < V; ++e) high = fmaxf(high, held[k][e]);
    });
    high = reducer.reduce<Largest>(high);

    float sum = 0.0F;
    float below = 0.0F;  // largest logit - the label's
    each_pack<K>(packs, [&](int i, int k) {
      if (i == label.pack) {
#pragma unroll
        for (int e = 0; e < V; ++e) below = e == label.element ? high - held[k][e] : below;
      }
#pragma unroll
      for (int e = 0; e < V; ++e) {
        const float raised = exponential<T>(held[k][e] - high);
        if constexpr (!capped) held[k][e] = raised;
        sum += raised;
      }
    });
    sum = reducer.reduce<Sum>(sum);

    if constexpr (in_place) {
      T* const dx = static_cast<T*>(a.dlogits) + row * a.columns;
      const float scale = gradient_scale(a);
      const float factor = scale / sum;
      const float at_label = gradient_at_label(below, sum, scale) * cap.slope(high - below);
      if (label.is_mine()) a.losses[row] = below + logf(sum);
      each_pack<K>(packs, [&](int i, int k) {
        float values[V];
#pragma unroll
        for (int e = 0; e < V; ++e)
          values[e] = capped ? exponential<T>(held[k][e] - high) * cap.slope(held[k][e]) * factor : held[k][e] * factor;
        if (i == label.pack) {
#pragma unroll
          for (int e = 0; e < V; ++e) values[e] = e == label.element ? at_label : values[e];
        }
        store(dx + i * V, held_from<T>(values));
      });
    } else {
      const float log_sum = logf(sum);
      // (high - x) first: exact where the label's logit is near the largest, however large both are.
      if (label.is_mine()) a.losses[row] = below + log_sum;
      keep_lse(a, row, label, high + log_sum);
    }
  }
}

constexpr int under_way = 4;  // packs that a thread loads at once, of rows that registers do not hold

// body(i, values) for the packs i of a row that this thread has; in place, what it writes has been read before.
template <class T, int V, class Body>
__device__ __forceinline__ void each_wide_pack(const T* x, int packs, Body body) {
  const int step = static_cast<int>(blockDim.x);
  for (int first = static_cast<int>(threadIdx.x); first < packs; first += under_way * step) {
    Held<T, V> held[under_way];
#pragma unroll
    for (int k = 0; k < under_way; ++k) {
      if (const int i = first + k * step; i < packs) held[k] = hold<V>(x + i * V);
    }
#pragma unroll
    for (int k = 0; k < under_way; ++k) {
      const int i = first + k * step;
      if (i >= packs) continue;
      float values[V];
      unpack(held[k], values);
      body(i, values);
    }
  }
}

// Each thread adds up exponentials relative to the largest logit that it has met so far.
template <class T, int V, bool in_place, bool capped>
__global__ void __launch_bounds__(most_threads, 2) cross_entropy_wide_kernel(const CrossEntropyArgs a) {
  __shared__ float shared[row_reducer_floats];
  RowReducer reducer(shared);
  const Cap<capped> cap(a);
  const int packs = static_cast<int>(a.columns / V);
  for (std::int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const T* const x = static_cast<const T*>(a.logits) + row * a.columns;
    const Label label(a.labels[row], a, V);
    if constexpr (in_place) {
      if (!label.counts) {
        leave_out<T, V>(a, row, label, packs);
        continue;
      }
    }
    float logit = 0.0F;
    if (label.is_mine()) logit = cap.value(to_float(x[label.pack * V + label.element]));
    float met = Largest::nothing, sum = 0.0F;
    each_wide_pack<T, V>(x, packs, [&](int, const float(&logits)[V]) {
      float values[V];
#pragma unroll
      for (int e = 0; e < V; ++e) values[e] = cap.value(logits[e]);
      float most = met;
#pragma unroll
      for (int e = 0; e < V; ++e) most = fmaxf(most, values[e]);
      if (most > met) {
        sum *= exponential<T>(met - most);
        met = most;
      }
      const bool nothing = met == Largest::nothing;  // so far there are infinities below 0 alone, or no numbers
#pragma unroll
      for (int e = 0; e < V; ++e) sum += nothing && values[e] == met ? 0.0F : exponential<T>(values[e] - met);
    });
    const float high = reducer.reduce<Largest>(met);
    sum = reducer.reduce<Sum>(met == Largest::nothing ? sum : sum * exponential<T>(met - high));
    const float below = high - logit;
    if constexpr (in_place) {
      T* const dx = static_cast<T*>(a.dlogits) + row * a.columns;
      const float scale = gradient_scale(a);
      const float factor = scale / sum;
      const float at_label = gradient_at_label(below, sum, scale) * cap.slope(logit);
      if (label.is_mine()) a.losses[row] = below + logf(sum);
      each_wide_pack<T, V>(x, packs, [&](int i, const float(&values)[V]) {
        float gradients[V];
#pragma unroll
        for (int e = 0; e < V; ++e) {
          const float value = cap.value(values[e]);
          gradients[e] = exponential<T>(value - high) * factor * cap.slope(value);
        }
        if (i == label.pack) {
#pragma unroll
          for (int e = 0; e < V; ++e) gradients[e] = e == label.element ? at_label : gradients[e];
        }
        store(dx + i * V, held_from<T>(gradients));
      });
    } else {
      const float log_sum = logf(sum);
      if (label.is_mine()) a.losses[row] = below + log_sum;
      keep_lse(a, row, label, high + log_sum);
    }
  }
}

template <class T, int V, int K, bool capped>
__global__ void __launch_bounds__(most_threads, K* V <= 32 ? 2 : 1)
    cross_entropy_gradient_kernel(const CrossEntropyArgs a) {
  const Cap<capped> cap(a);
  const int packs = static_cast<int>(a.columns / V);
  for (std::int64_t row = blockIdx.x * std::int64_t{blockDim.y} + threadIdx.y; row < a.rows;
       row += gridDim.x * std::int64_t{blockDim.y}) {
    const T* const x = static_cast<const T*>(a.logits) + row * a.columns;
    T* const dx = static_cast<T*>(a.dlogits) + row * a.columns;
    Held<T, V> held[K > 0 ? K : 1];
    if constexpr (K > 0) each_pack<K>(packs, [&](int i, int k) { held[k] = hold<V>(x + i * V); });
    const Label label(a.labels[row], a, V);
    if (label.ignored || label.out_of_range) {
      fill_row<T, V>(dx, packs, label.ignored ? 0.0F : __builtin_nanf(""));
      continue;
    }
    const float lse = a.lse[row];
    const float scale = gradient_scale(a);
    each_pack<K>(packs, [&](int i, int k) {
      if constexpr (K == 0) held[0] = hold<V>(x + i * V);
      float values[V];
      unpack(held[k], values);
#pragma unroll
      for (int e = 0; e < V; ++e) {
        const float value = cap.value(values[e]), probability = exponential<T>(value - lse);
        const bool at_label = i == label.pack && e == label.element;
        values[e] = (at_label ? probability - 1.0F : probability) * scale * cap.slope(value);
      }
      store(dx + i * V, held_from<T>(values));
    });
  }
}

enum class Form { forward, in_place, backward };

template <class T, int V, int K, bool capped>
void launch_typed(const CrossEntropyArgs& a, Form form, const RowShape& shape, cudaStream_t stream) {
  const dim3 threads(static_cast<unsigned>(shape.threads), static_cast<unsigned>(shape.rows));
  const unsigned blocks = row_grid(a.rows, shape);
  const auto losses = [&](auto in_place) {
    if constexpr (K > 0)
      cross_entropy_losses_kernel<T, V, K, in_place, capped><<<blocks, threads, 0, stream>>>(a);
    else
      cross_entropy_wide_kernel<T, V, in_place, capped><<<blocks, threads, 0, stream>>>(a);
  };
  switch (form) {
    case Form::forward: losses(std::false_type()); break;
    case Form::in_place: losses(std::true_type()); break;
    case Form::backward: cross_entropy_gradient_kernel<T, V, K, capped><<<blocks, threads, 0, stream>>>(a); break;
  }
}

template <class T, int V, int K>
void launch(const CrossEntropyArgs& a, Form form, const RowShape& shape, cudaStream_t stream) {
  if (a.soft_cap > 0.0F)
    launch_typed<T, V, K, true>(a, form, shape, stream);
  else
    launch_typed<T, V, K, false>(a, form, shape, stream);
}

void run(const CrossEntropyArgs& a, Form form, const char* operation, cudaStream_t stream) {
  if (a.rows == 0) return;
  dispatch_float(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int wide = pack_width<T>;
    constexpr int most_held = 32 / wide;  // 32 numbers of fp32 in registers
    const bool vectorised = a.columns % wide == 0 && aligned({a.logits, a.dlogits});
    const std::int64_t packs = vectorised ? a.columns / wide : a.columns;
    RowShape shape{most_threads, 1, 0};
    if (packs <= 4 * warp_size)
      shape = {warp_size, 4, 4};
    else if (packs <= 4 * most_threads)
      shape = {static_cast<int>(ceil_div(ceil_div(packs, 4), warp_size)) * warp_size, 1, 4};
    else if (vectorised && packs <= most_held * most_threads)
      shape = {static_cast<int>(ceil_div(ceil_div(packs, most_held), warp_size)) * warp_size, 1, most_held};
    if (vectorised) {
      if (shape.held == 4)
        launch<T, wide, 4>(a, form, shape, stream);
      else if (shape.held == most_held)
        launch<T, wide, most_held>(a, form, shape, stream);
      else
        launch<T, wide, 0>(a, form, shape, stream);
    } else if (shape.held == 4) {
      launch<T, 1, 4>(a, form, shape, stream);
    } else {
      launch<T, 1, 0>(a, form, shape, stream);
    }
  });
  check_launch(operation);
}

}  // namespace

void cross_entropy_forward(const CrossEntropyArgs& a, cudaStream_t stream) {
  run(a, Form::forward, "cross_entropy_forward", stream);
}

void cross_entropy_backward(const CrossEntropyArgs& a, cudaStream_t stream) {
  run(a, Form::backward, "cross_entropy_backward", stream);
}

void cross_entropy_in_place(const CrossEntropyArgs& a, cudaStream_t stream) {
  run(a, Form::in_place, "cross_entropy_in_place", stream);
}

}  // namespace assay::cuda
