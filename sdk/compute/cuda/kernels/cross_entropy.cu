// A row is read once and held in registers, as exponentials once its largest logit is known, until the gradient goes
// where the logits were: memory is passed twice in all.
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

template <class T, int V>
__device__ __forceinline__ void fill_row(T* row, int packs, float value) {
  float values[V];
#pragma unroll
  for (int e = 0; e < V; ++e) values[e] = value;
  each_pack<0>(packs, [&](int i, int) { store(row + i * V, held_from<T>(values)); });
}

// V elements in a pack, K packs held by a thread (0: the row is read once per look). The thread that has the label's
// column keeps its distance to the largest logit, and writes the loss.
template <class T, int V, int K, bool in_place>
__global__ void __launch_bounds__(most_threads, K* V <= 32 ? 2 : 1)
    cross_entropy_losses_kernel(const CrossEntropyArgs a) {
  __shared__ float shared[row_reducer_floats];
  RowReducer reducer(shared);
  const int packs = static_cast<int>(a.columns / V);
  for (std::int64_t row = blockIdx.x * std::int64_t{blockDim.y} + threadIdx.y; row < a.rows;
       row += gridDim.x * std::int64_t{blockDim.y}) {
    const T* const x = static_cast<const T*>(a.logits) + row * a.columns;
    float held[K > 0 ? K : 1][V];
    const auto load = [&](int i, int k) { unpack(hold<V>(x + i * V), held[k]); };
    if constexpr (K > 0) each_pack<K>(packs, load);
    const Label label(a.labels[row], a, V);
    if constexpr (in_place) {
      if (!label.counts) {
        const float value = label.ignored ? 0.0F : __builtin_nanf("");
        fill_row<T, V>(static_cast<T*>(a.dlogits) + row * a.columns, packs, value);
        if (threadIdx.x == 0) a.losses[row] = value;
        continue;
      }
    }

    float high = Largest::nothing;
    each_pack<K>(packs, [&](int i, int k) {
      if constexpr (K == 0) load(i, k);
#pragma unroll
      for (int e = 0; e < V; ++e) high = fmaxf(high, held[k][e]);
    });
    high = reducer.reduce<Largest>(high);

    float sum = 0.0F;
    float below = 0.0F;  // largest logit - the label's
    each_pack<K>(packs, [&](int i, int k) {
      if constexpr (K == 0) load(i, k);
      if (i == label.pack) {
#pragma unroll
        for (int e = 0; e < V; ++e) below = e == label.element ? high - held[k][e] : below;
      }
#pragma unroll
      for (int e = 0; e < V; ++e) {
        held[k][e] = exponential<T>(held[k][e] - high);
        sum += held[k][e];
      }
    });
    sum = reducer.reduce<Sum>(sum);

    if constexpr (in_place) {
      T* const dx = static_cast<T*>(a.dlogits) + row * a.columns;
      const float scale = gradient_scale(a);
      const float factor = scale / sum;
      const float at_label = (expf(-below) / sum - 1.0F) * scale;
      if (label.is_mine()) a.losses[row] = below + logf(sum);
      each_pack<K>(packs, [&](int i, int k) {
        if constexpr (K == 0) load(i, k);
        float values[V];
#pragma unroll
        for (int e = 0; e < V; ++e) values[e] = (K > 0 ? held[k][e] : exponential<T>(held[k][e] - high)) * factor;
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
      if (threadIdx.x == 0) {
        a.lse[row] = label.out_of_range ? __builtin_nanf("") : high + log_sum;
        if (!label.counts) a.losses[row] = label.out_of_range ? __builtin_nanf("") : 0.0F;
      }
    }
  }
}

template <class T, int V, int K>
__global__ void __launch_bounds__(most_threads, K* V <= 32 ? 2 : 1)
    cross_entropy_gradient_kernel(const CrossEntropyArgs a) {
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
        const float probability = exponential<T>(values[e] - lse);
        values[e] = (i == label.pack && e == label.element ? probability - 1.0F : probability) * scale;
      }
      store(dx + i * V, held_from<T>(values));
    });
  }
}

enum class Form { forward, in_place, backward };

template <class T, int V, int K>
void launch(const CrossEntropyArgs& a, Form form, const RowShape& shape, cudaStream_t stream) {
  const dim3 threads(static_cast<unsigned>(shape.threads), static_cast<unsigned>(shape.rows));
  const unsigned blocks = row_grid(a.rows, shape);
  switch (form) {
    case Form::forward: cross_entropy_losses_kernel<T, V, K, false><<<blocks, threads, 0, stream>>>(a); break;
    case Form::in_place: cross_entropy_losses_kernel<T, V, K, true><<<blocks, threads, 0, stream>>>(a); break;
    case Form::backward: cross_entropy_gradient_kernel<T, V, K><<<blocks, threads, 0, stream>>>(a); break;
  }
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
