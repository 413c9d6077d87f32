// Only the parameters' copy is read again before it would have left the cache, so the rest streams. A grid that fills
// the device goes over the arena; beside products, each block of the grid makes one turn. Each block computes the
// constants of the step once, while its first loads are on their way.
#include "kernels/optimizer.hpp"

#include "cuda_error.hpp"
#include "kernels/adamw.cuh"
#include "kernels/held.cuh"
#include "kernels/loss_scale.cuh"
#include "kernels/loss_scale.hpp"

namespace assay::cuda {
namespace {

constexpr int threads = 256;
constexpr int blocks_per_multiprocessor = 4;
// Packs of each array that a thread has on their way at once: 8 elements in all.
template <class P>
constexpr int unrolled = 8 / pack_width<P>;

struct NoCopy {};

struct Sgd {
  static constexpr int states = 0;
  using Options = compute::SgdOptions;
  float rate, weight_decay, unscale;

  __device__ static Sgd make(const OptimizerArgs& a, const Options& o) {
    return {rate_or_nan(a), o.weight_decay, unscale_factor(a.loss_scale)};
  }
  __device__ __forceinline__ void apply(float g, float& p, float&, float&) const {
    p = p - (g * unscale + p * weight_decay) * rate;
  }
};

struct SgdWithMomentum {
  static constexpr int states = 1;
  using Options = compute::SgdOptions;
  float rate, weight_decay, unscale, momentum;
  bool first;  // the buffer takes the gradient itself, whatever was in it

  __device__ static SgdWithMomentum make(const OptimizerArgs& a, const Options& o) {
    return {rate_or_nan(a), o.weight_decay, unscale_factor(a.loss_scale), o.momentum, *a.step == 1};
  }
  __device__ __forceinline__ void apply(float g, float& p, float& buffer, float&) const {
    g = g * unscale + p * weight_decay;
    buffer = first ? g : buffer * momentum + g;
    p = p - buffer * rate;
  }
};

// P, G and S: the types of parameter, gradient and state.
template <class P, class G, class S, int V, int states>
struct Packs {
  Held<P, V> parameter;
  Held<S, V> first, second;
  Held<G, V> gradient;

  __device__ __forceinline__ void load(const OptimizerArgs& a, std::int64_t i) {
    gradient = hold<V, Cache::streaming>(static_cast<const G*>(a.gradient) + i);
    parameter = hold<V, Cache::streaming>(static_cast<const P*>(a.parameter) + i);
    if constexpr (states > 0) first = hold<V, Cache::streaming>(static_cast<const S*>(a.first) + i);
    if constexpr (states > 1) second = hold<V, Cache::streaming>(static_cast<const S*>(a.second) + i);
  }
};

template <class Rule, class P, class G, class S, class C, int V>
__device__ __forceinline__ void update(const OptimizerArgs& a, const Rule& rule, std::int64_t i,
                                       const Packs<P, G, S, V, Rule::states>& packs) {
  float g[V], p[V], m[V] = {}, v[V] = {};
  unpack(packs.gradient, g);
  unpack(packs.parameter, p);
  if constexpr (Rule::states > 0) unpack(packs.first, m);
  if constexpr (Rule::states > 1) unpack(packs.second, v);
#pragma unroll
  for (int e = 0; e < V; ++e) rule.apply(g[e], p[e], m[e], v[e]);
  const Held<P, V> rounded = held_from<P>(p);
  store<Cache::streaming>(static_cast<P*>(a.parameter) + i, rounded);
  if constexpr (Rule::states > 0) store<Cache::streaming>(static_cast<S*>(a.first) + i, held_from<S>(m));
  if constexpr (Rule::states > 1) store<Cache::streaming>(static_cast<S*>(a.second) + i, held_from<S>(v));
  if constexpr (!std::is_same_v<C, NoCopy>) {
    unpack(rounded, p);
    store(static_cast<C*>(a.compute_copy) + i, held_from<C>(p));
  }
}

// Packs of V elements, and what is left over one element for a thread.
template <class Rule, class P, class G, class S, class C, int V>
__global__ void __launch_bounds__(threads, blocks_per_multiprocessor)
    step_kernel(const OptimizerArgs a, const typename Rule::Options options) {
  __shared__ Rule shared_rule;
  const std::int64_t packs = a.count / V;
  const std::int64_t per_block = std::int64_t{threads} * unrolled<P>;
  const std::int64_t step = gridDim.x * per_block;
  std::int64_t i = blockIdx.x * per_block + threadIdx.x;
  Packs<P, G, S, V, Rule::states> here[unrolled<P>];
  const auto load = [&] {
#pragma unroll
    for (int u = 0; u < unrolled<P>; ++u) {
      if (const std::int64_t pack = i + u * threads; pack < packs) here[u].load(a, pack * V);
    }
  };
  load();
  if (threadIdx.x == 0) shared_rule = Rule::make(a, options);
  const bool skip = skipped(a.loss_scale);
  __syncthreads();
  if (skip) return;
  const Rule rule = shared_rule;
  for (; i < packs; i += step, load()) {
#pragma unroll
    for (int u = 0; u < unrolled<P>; ++u) {
      if (const std::int64_t pack = i + u * threads; pack < packs)
        update<Rule, P, G, S, C, V>(a, rule, pack * V, here[u]);
    }
  }
  if constexpr (V > 1) {
    const std::int64_t left = packs * V + blockIdx.x * std::int64_t{threads} + threadIdx.x;
    if (left < a.count) {
      Packs<P, G, S, 1, Rule::states> last;
      last.load(a, left);
      update<Rule, P, G, S, C, 1>(a, rule, left, last);
    }
  }
}

template <class Rule, class P, class G, class S, class C>
void launch(const OptimizerArgs& a, const typename Rule::Options& options, cudaStream_t stream) {
  constexpr int wide = pack_width<P>;
  const bool vectorised = aligned({a.parameter, a.gradient, a.first, a.second, a.compute_copy});
  const std::int64_t packs = ceil_div(a.count, vectorised ? wide : 1);
  const std::int64_t most_blocks =
      a.short_blocks ? INT32_MAX : std::int64_t{a.multiprocessors} * blocks_per_multiprocessor;
  const unsigned blocks = grid_size(packs, threads * unrolled<P>, most_blocks);
  if (vectorised)
    step_kernel<Rule, P, G, S, C, wide><<<blocks, threads, 0, stream>>>(a, options);
  else
    step_kernel<Rule, P, G, S, C, 1><<<blocks, threads, 0, stream>>>(a, options);
}

template <class Rule, class P, class G, class S>
void with_copy(const OptimizerArgs& a, const typename Rule::Options& options, cudaStream_t stream) {
  if (!a.compute_copy)
    launch<Rule, P, G, S, NoCopy>(a, options, stream);
  else if (a.copy_type == compute::DType::bf16)
    launch<Rule, P, G, S, bf16>(a, options, stream);
  else
    launch<Rule, P, G, S, f16>(a, options, stream);
}

template <class Rule>
void run(const OptimizerArgs& a, const typename Rule::Options& options, const char* operation, cudaStream_t stream) {
  if (a.count == 0) return;
  if (a.parameter_type == compute::DType::bf16) {
    with_copy<Rule, bf16, bf16, bf16>(a, options, stream);
  } else {
    dispatch_float(a.gradient_type, [&](auto tag) {
      using G = typename decltype(tag)::type;
      if constexpr (Rule::states == 2) {
        if (a.state_type == compute::DType::bf16) return with_copy<Rule, float, G, bf16>(a, options, stream);
      }
      with_copy<Rule, float, G, float>(a, options, stream);
    });
  }
  check_launch(operation);
}

__global__ void advance_kernel(std::int64_t* step, const LossScalePointers loss_scale) {
  if (!skipped(loss_scale)) ++*step;
}

__global__ void update_loss_scale_kernel(const LossScalePointers loss_scale, std::int64_t* good_steps,
                                         std::int64_t* skipped_steps, const compute::LossScaleOptions options) {
  if (skipped(loss_scale)) {
    *loss_scale.scale = shrunk_loss_scale(*loss_scale.scale, options.backoff);
    ++*skipped_steps;
    *good_steps = 0;
  } else if (++*good_steps >= options.growth_interval) {
    *loss_scale.scale = grown_loss_scale(*loss_scale.scale, options.growth);
    *good_steps = 0;
  }
}

}  // namespace

void adamw(const OptimizerArgs& a, const compute::AdamWOptions& options, cudaStream_t stream) {
  run<AdamW>(a, options, "adamw", stream);
}

void sgd(const OptimizerArgs& a, const compute::SgdOptions& options, cudaStream_t stream) {
  if (a.first)
    run<SgdWithMomentum>(a, options, "sgd", stream);
  else
    run<Sgd>(a, options, "sgd", stream);
}

void advance(std::int64_t* step, const LossScalePointers& loss_scale, cudaStream_t stream) {
  advance_kernel<<<1, 1, 0, stream>>>(step, loss_scale);
  check_launch("advance");
}

void update_loss_scale(const LossScalePointers& loss_scale, std::int64_t* good_steps, std::int64_t* skipped_steps,
                       const compute::LossScaleOptions& options, cudaStream_t stream) {
  update_loss_scale_kernel<<<1, 1, 0, stream>>>(loss_scale, good_steps, skipped_steps, options);
  check_launch("update_loss_scale");
}

}  // namespace assay::cuda
