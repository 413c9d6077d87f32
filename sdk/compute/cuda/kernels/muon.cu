// A row of blocks goes over each matrix. What is read once streams; the update, which products read and write next,
// stays in the cache as far as it fits.
#include "kernels/muon.hpp"

#include "cuda_error.hpp"
#include "kernels/held.cuh"
#include "kernels/loss_scale.cuh"
#include "scratch_sizes.hpp"

namespace assay::cuda {
namespace {

constexpr int threads = 256;
constexpr int wide = 8;  // elements of a pack
constexpr int blocks_per_multiprocessor = 8;
constexpr std::int64_t most_rows_of_blocks = 65535;

// The blocks over one matrix, and the matrices that have blocks at the same time.
dim3 grid_over(const MuonShape& shape, int elements_of_pack) {
  const std::int64_t all = std::int64_t{shape.multiprocessors} * blocks_per_multiprocessor;
  const std::int64_t rows = std::min(shape.matrices, most_rows_of_blocks);
  return {grid_size(shape.elements, std::int64_t{threads} * elements_of_pack, std::max<std::int64_t>(1, all / rows)),
          static_cast<unsigned>(rows)};
}

// Whether packs of every matrix lie at multiples of 16 bytes.
template <class... Matrices>
bool in_packs(const MuonShape& shape, const Matrices&... of) {
  const auto fits = [&](const auto& m) {
    const auto bytes = static_cast<std::int64_t>(compute::size_of(m.type));
    return aligned({m.data}) && (shape.matrices == 1 || m.step * bytes % pack_bytes == 0);
  };
  return (fits(of) && ...);
}

// body(matrix, element, width): packs of V elements, and what is left over one element for a thread.
template <int V, class Body>
__device__ __forceinline__ void over_matrices(const MuonShape& shape, const Body& body) {
  const std::int64_t packs = shape.elements / V, step = std::int64_t{gridDim.x} * threads;
  const std::int64_t first = blockIdx.x * std::int64_t{threads} + threadIdx.x;
  for (std::int64_t matrix = blockIdx.y; matrix < shape.matrices; matrix += gridDim.y) {
    for (std::int64_t i = first; i < packs; i += step) body(matrix, i * V, std::integral_constant<int, V>());
    if constexpr (V > 1) {
      if (const std::int64_t left = packs * V + first; left < shape.elements)
        body(matrix, left, std::integral_constant<int, 1>());
    }
  }
}

template <class T, class Void>
__device__ __forceinline__ auto* element_of(const MuonMatrices<Void>& of, std::int64_t matrix, std::int64_t i) {
  using Element = std::conditional_t<std::is_const_v<Void>, const T, T>;
  return static_cast<Element*>(of.data) + matrix * of.step + i;
}

template <class G, class M, class U, int V>
__global__ void __launch_bounds__(threads)
    momentum_kernel(const MuonMomentumArgs a, const compute::MuonOptions options) {
  if (skipped(a.loss_scale)) return;
  const float unscale = unscale_factor(a.loss_scale);
  const auto taken = static_cast<float>(1.0 - static_cast<double>(options.momentum));
  over_matrices<V>(a.shape, [&](std::int64_t matrix, std::int64_t i, auto width) {
    constexpr int n = decltype(width)::value;
    float g[n], m[n], u[n];
    unpack(hold<n, Cache::streaming>(element_of<G>(a.gradient, matrix, i)), g);
    M* const momentum = element_of<M>(a.momentum, matrix, i);
    unpack(hold<n, Cache::streaming>(momentum), m);
#pragma unroll
    for (int e = 0; e < n; ++e) {
      g[e] *= unscale;
      m[e] = m[e] + (g[e] - m[e]) * taken;
      u[e] = options.nesterov ? g[e] + (m[e] - g[e]) * options.momentum : m[e];
    }
    store<Cache::streaming>(momentum, held_from<M>(m));
    store(element_of<U>(a.update, matrix, i), held_from<U>(u));
  });
}

// The total over the block, in thread 0, in the same order each time.
__device__ double block_total(double total) {
  __shared__ double of_warps[threads / warp_size];
#pragma unroll
  for (int offset = warp_size / 2; offset > 0; offset /= 2) total += __shfl_down_sync(0xffffffffU, total, offset);
  if (threadIdx.x % warp_size == 0) of_warps[threadIdx.x / warp_size] = total;
  __syncthreads();
  if (threadIdx.x == 0) {
#pragma unroll
    for (int w = 1; w < threads / warp_size; ++w) total += of_warps[w];
  }
  __syncthreads();
  return total;
}

// Its grid has `parts` blocks over each matrix, by the number of elements alone, as has the order of the sums.
template <class T, int V>
__global__ void __launch_bounds__(threads) squares_kernel(const NormalizeRowsArgs a) {
  const std::int64_t packs = a.shape.elements / V, step = std::int64_t{gridDim.x} * threads;
  const std::int64_t first = blockIdx.x * std::int64_t{threads} + threadIdx.x;
  for (std::int64_t matrix = blockIdx.y; matrix < a.shape.matrices; matrix += gridDim.y) {
    double total = 0;
    const auto add = [&](std::int64_t i, auto width) {
      constexpr int n = decltype(width)::value;
      float x[n];
      unpack(hold<n>(element_of<T>(a.x, matrix, i)), x);
#pragma unroll
      for (int e = 0; e < n; ++e) total += static_cast<double>(x[e]) * static_cast<double>(x[e]);
    };
    for (std::int64_t i = first; i < packs; i += step) add(i * V, std::integral_constant<int, V>());
    if (const std::int64_t left = packs * V + first; V > 1 && left < a.shape.elements)
      add(left, std::integral_constant<int, 1>());
    total = block_total(total);
    if (threadIdx.x == 0) a.partials[matrix * gridDim.x + blockIdx.x] = total;
  }
}

// Each matrix has `parts` partial sums.
template <class T, int V>
__global__ void __launch_bounds__(threads) divide_kernel(const NormalizeRowsArgs a, int parts) {
  __shared__ float inverse;
  const std::int64_t packs = a.shape.elements / V, step = std::int64_t{gridDim.x} * threads;
  const std::int64_t first = blockIdx.x * std::int64_t{threads} + threadIdx.x;
  for (std::int64_t matrix = blockIdx.y; matrix < a.shape.matrices; matrix += gridDim.y) {
    const int own = static_cast<int>(threadIdx.x);
    const double total = block_total(own < parts ? a.partials[matrix * parts + own] : 0.0);
    if (threadIdx.x == 0) inverse = static_cast<float>(1.0 / fmax(sqrt(total), static_cast<double>(a.eps)));
    __syncthreads();
    const float factor = inverse;
    const auto divide = [&](std::int64_t i, auto width) {
      constexpr int n = decltype(width)::value;
      float x[n];
      T* const at = element_of<T>(a.x, matrix, i);
      unpack(hold<n>(at), x);
#pragma unroll
      for (int e = 0; e < n; ++e) x[e] *= factor;
      store(at, held_from<T>(x));
    };
    for (std::int64_t i = first; i < packs; i += step) divide(i * V, std::integral_constant<int, V>());
    if (const std::int64_t left = packs * V + first; V > 1 && left < a.shape.elements)
      divide(left, std::integral_constant<int, 1>());
  }
}

struct NoCopy {};

template <class P, class U, class C, int V>
__global__ void __launch_bounds__(threads)
    update_kernel(const MuonUpdateArgs a, const compute::MuonUpdateOptions options) {
  if (skipped(a.loss_scale)) return;
  const double lr = static_cast<double>(*a.lr);
  const auto keep = static_cast<float>(1.0 - lr * static_cast<double>(options.weight_decay));
  const auto rate = static_cast<float>(lr * static_cast<double>(options.factor));
  over_matrices<V>(a.shape, [&](std::int64_t matrix, std::int64_t i, auto width) {
    constexpr int n = decltype(width)::value;
    float p[n], u[n];
    P* const parameter = element_of<P>(a.parameter, matrix, i);
    unpack(hold<n, Cache::streaming>(parameter), p);
    unpack(hold<n, Cache::streaming>(element_of<U>(a.update, matrix, i)), u);
#pragma unroll
    for (int e = 0; e < n; ++e) p[e] = p[e] * keep - u[e] * rate;
    const Held<P, n> rounded = held_from<P>(p);
    store<Cache::streaming>(parameter, rounded);
    if constexpr (!std::is_same_v<C, NoCopy>) {
      unpack(rounded, p);
      store(element_of<C>(a.compute_copy, matrix, i), held_from<C>(p));
    }
  });
}

// f(TypeTag<T>()) for fp32 or bf16.
template <class F>
void dispatch_state(compute::DType type, F&& f) {
  type == compute::DType::bf16 ? f(TypeTag<bf16>()) : f(TypeTag<float>());
}

// f(the width of packs as a constant).
template <class F>
void dispatch_width(bool packs, F&& f) {
  packs ? f(std::integral_constant<int, wide>()) : f(std::integral_constant<int, 1>());
}

bool is_empty(const MuonShape& shape) { return shape.matrices == 0 || shape.elements == 0; }

}  // namespace

void muon_momentum(const MuonMomentumArgs& a, const compute::MuonOptions& options, cudaStream_t stream) {
  if (is_empty(a.shape)) return;
  dispatch_float(a.gradient.type, [&](auto gradient) {
    dispatch_state(a.momentum.type, [&](auto momentum) {
      dispatch_state(a.update.type, [&](auto update) {
        dispatch_width(in_packs(a.shape, a.gradient, a.momentum, a.update), [&](auto width) {
          constexpr int v = decltype(width)::value;
          momentum_kernel<typename decltype(gradient)::type, typename decltype(momentum)::type,
                          typename decltype(update)::type, v>
              <<<grid_over(a.shape, v), threads, 0, stream>>>(a, options);
        });
      });
    });
  });
  check_launch("muon_momentum");
}

void normalize_rows(const NormalizeRowsArgs& a, cudaStream_t stream) {
  if (is_empty(a.shape)) return;
  const int parts = normalize_parts(a.shape.elements);
  const dim3 parts_of_all(static_cast<unsigned>(parts), grid_over(a.shape, wide).y);
  dispatch_state(a.x.type, [&](auto type) {
    using T = typename decltype(type)::type;
    dispatch_width(in_packs(a.shape, a.x), [&](auto width) {
      constexpr int v = decltype(width)::value;
      squares_kernel<T, v><<<parts_of_all, threads, 0, stream>>>(a);
      check_launch("normalize_rows");
      divide_kernel<T, v><<<grid_over(a.shape, v), threads, 0, stream>>>(a, parts);
    });
  });
  check_launch("normalize_rows");
}

void muon_update(const MuonUpdateArgs& a, const compute::MuonUpdateOptions& options, cudaStream_t stream) {
  if (is_empty(a.shape)) return;
  const auto launch = [&](auto parameter, auto update, auto copy) {
    const bool packs =
        in_packs(a.shape, a.parameter, a.update) && (!a.compute_copy.data || in_packs(a.shape, a.compute_copy));
    dispatch_width(packs, [&](auto width) {
      constexpr int v = decltype(width)::value;
      update_kernel<typename decltype(parameter)::type, typename decltype(update)::type, typename decltype(copy)::type,
                    v><<<grid_over(a.shape, v), threads, 0, stream>>>(a, options);
    });
  };
  dispatch_state(a.parameter.type, [&](auto parameter) {
    dispatch_state(a.update.type, [&](auto update) {
      if (!a.compute_copy.data)
        launch(parameter, update, TypeTag<NoCopy>());
      else if (a.compute_copy.type == compute::DType::bf16)
        launch(parameter, update, TypeTag<bf16>());
      else
        launch(parameter, update, TypeTag<f16>());
    });
  });
  check_launch("muon_update");
}

}  // namespace assay::cuda
