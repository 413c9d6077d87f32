// Which experts a token goes to, the gradient of that, and its losses. A warp has a token, and each lane every 32nd of
// its experts in registers.
#include "cuda_error.hpp"
#include "kernels/experts.hpp"
#include "kernels/types.cuh"
#include "scratch_sizes.hpp"

namespace assay::cuda {
namespace {

constexpr int tokens_each = 4;  // of a block
constexpr int threads = tokens_each * warp_size;
constexpr unsigned all_lanes = 0xffffffffU;

// body(i, e) for the experts e of a lane; i is the register that may hold one.
template <int V, class Body>
__device__ __forceinline__ void each_expert(int experts, Body body) {
#pragma unroll
  for (int i = 0; i < V; ++i) {
    const int e = i * warp_size + static_cast<int>(threadIdx.x) % warp_size;
    if (e < experts) body(i, e);
  }
}

__device__ __forceinline__ bool is_index(std::int32_t i, std::int32_t count) {
  return static_cast<std::uint32_t>(i) < static_cast<std::uint32_t>(count);
}

// Integers in the order of numbers, with NaN below all of them; 0 is left for what cannot be chosen.
__device__ __forceinline__ unsigned order_of(float x) {
  const unsigned bits = __float_as_uint(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return 1;
  return bits & 0x80000000U ? ~bits : bits | 0x80000000U;
}

// The expert of the highest order, of equals the lowest, in all lanes. It cannot be chosen again.
template <int V>
__device__ __forceinline__ std::int32_t take_highest(unsigned (&order)[V]) {
  const unsigned lane = threadIdx.x % warp_size;
  unsigned highest = 0, at = ~0U;
#pragma unroll
  for (int i = 0; i < V; ++i)
    if (order[i] > highest) highest = order[i], at = i * warp_size + lane;
  const unsigned top = __reduce_max_sync(all_lanes, highest);
  const unsigned taken = __reduce_min_sync(all_lanes, highest == top ? at : ~0U);
#pragma unroll
  for (int i = 0; i < V; ++i)
    if (taken == i * warp_size + lane) order[i] = 0;
  return static_cast<std::int32_t>(taken);
}

template <class T, int V>
__global__ void __launch_bounds__(threads) route_forward_kernel(const RouteForwardArgs a) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const std::int64_t token = blockIdx.x * std::int64_t{tokens_each} + threadIdx.x / warp_size;
  if (token >= a.shape.tokens) return;
  const int experts = a.shape.experts, chosen = a.shape.chosen;
  const T* const logits = static_cast<const T*>(a.logits) + token * experts;
  float* const scores = a.scores + token * experts;

  float x[V], largest = -__builtin_huge_valf();
  each_expert<V>(experts, [&](int i, int e) {
    x[i] = to_float(logits[e]);
    largest = fmaxf(largest, x[i]);
  });
  largest = warp_max(largest);
  float s[V], sum = 0.0F;
  each_expert<V>(experts, [&](int i, int) {
    s[i] = expf(x[i] - largest);
    sum += s[i];
  });
  sum = warp_sum(sum);
  if (lane == 0) a.lse[token] = largest + logf(sum);

  unsigned order[V] = {};
  each_expert<V>(experts, [&](int i, int e) {
    s[i] = a.rule.score == compute::ExpertScore::softmax ? s[i] / sum : 1.0F / (1.0F + expf(-x[i]));
    scores[e] = s[i];
    order[i] = order_of(a.bias ? s[i] + a.bias[e] : s[i]);
  });
  __syncwarp();  // the scores are there for all lanes

  float total = 0.0F;
  for (int first = 0; first < chosen; first += warp_size) {
    const int count = min(warp_size, chosen - first);
    const std::int64_t place = token * chosen + first + lane;
    std::int32_t mine = -1;
    if (a.given) {
      if (lane < count) mine = a.given[place];
    } else {
      for (int j = 0; j < count; ++j) {
        const std::int32_t taken = take_highest(order);
        if (lane == j) mine = taken;
      }
    }
    const float score = is_index(mine, experts) ? scores[mine] : 0.0F;
    for (int j = 0; j < count; ++j) total += __shfl_sync(all_lanes, score, j);
    if (lane < count) {
      a.experts[place] = mine;
      a.weights[place] = score;
    }
  }
  for (int j = lane; j < chosen; j += warp_size) {  // each lane reads what it wrote itself
    float& weight = a.weights[token * chosen + j];
    weight = a.rule.factor * (a.rule.normalized ? weight / total : weight);
  }
}

template <class T, int V>
__global__ void __launch_bounds__(threads) route_backward_kernel(const RouteBackwardArgs a) {
  __shared__ float gradients[tokens_each][V * warp_size];  // by the scores
  const int lane = static_cast<int>(threadIdx.x) % warp_size, warp = static_cast<int>(threadIdx.x) / warp_size;
  const std::int64_t token = blockIdx.x * std::int64_t{tokens_each} + warp;
  if (token >= a.shape.tokens) return;
  const int experts = a.shape.experts, chosen = a.shape.chosen;
  const float* const scores = a.scores + token * experts;
  const float scale = a.scale ? *a.scale : 1.0F;
  float* const ds = gradients[warp];

  float s[V];
  each_expert<V>(experts, [&](int i, int e) {
    s[i] = scores[e];
    ds[e] = a.balance == 0.0F ? 0.0F : a.balance * scale * static_cast<float>(a.counts[e]);
  });
  __syncwarp();

  // f(expert, its score, gradient of its weight) for the choices of this lane.
  const auto each_choice = [&](auto f) {
    for (int j = lane; j < chosen; j += warp_size) {
      const std::int32_t e = a.experts[token * chosen + j];
      if (is_index(e, experts)) f(e, scores[e], a.dweights[token * chosen + j]);
    }
  };
  float factor = a.rule.factor, mean = 0.0F;
  if (a.rule.normalized) {
    float total = 0.0F, dot = 0.0F;
    each_choice([&](std::int32_t, float score, float dweight) {
      total += score;
      dot += score * dweight;
    });
    total = warp_sum(total);
    mean = warp_sum(dot) / total;
    factor /= total;
  }
  each_choice([&](std::int32_t e, float, float dweight) { ds[e] += factor * (dweight - mean); });
  __syncwarp();

  T* const dlogits = static_cast<T*>(a.dlogits) + token * experts;
  if (a.rule.score == compute::ExpertScore::sigmoid) {
    each_expert<V>(experts, [&](int i, int e) { dlogits[e] = from_float<T>(ds[e] * s[i] * (1.0F - s[i])); });
    return;
  }
  float along = 0.0F;
  each_expert<V>(experts, [&](int i, int e) { along += ds[e] * s[i]; });
  along = warp_sum(along);
  const float z = a.z == 0.0F ? 0.0F : a.z * scale * a.lse[token];
  each_expert<V>(experts, [&](int i, int e) { dlogits[e] = from_float<T>(s[i] * (ds[e] - along + z)); });
}

// f(TypeTag of the logits, registers of a lane).
template <class F>
void dispatch(compute::DType type, int experts, F&& f) {
  if (experts > most_experts) misused("routing to more experts than a warp has registers for");
  dispatch_float(type, [&](auto tag) {
    const auto with = [&](auto registers) { f(tag, registers); };
    if (experts <= 32) return with(std::integral_constant<int, 1>());
    if (experts <= 64) return with(std::integral_constant<int, 2>());
    if (experts <= 128) return with(std::integral_constant<int, 4>());
    if (experts <= 256) return with(std::integral_constant<int, 8>());
    if (experts <= 512) return with(std::integral_constant<int, 16>());
    with(std::integral_constant<int, most_experts / warp_size>());
  });
}

// ---- losses --------------------------------------------------------------------------------------------------------
// sum_e counts[e] sum_t scores[t, e] is a sum over all scores, each times a count: blocks have tokens, and a second
// kernel adds up what the blocks found. In double, as other sums of whole tensors.

constexpr int loss_threads = 256, loss_warps = loss_threads / warp_size;

// The sum over the block, in thread 0.
__device__ __forceinline__ double sum_of_block(double x, double* shared) {
#pragma unroll
  for (int offset = warp_size / 2; offset > 0; offset /= 2) x += __shfl_down_sync(all_lanes, x, offset);
  if (threadIdx.x % warp_size == 0) shared[threadIdx.x / warp_size] = x;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int w = 1; w < loss_warps; ++w) x += shared[w];
  __syncthreads();  // all have read before the next call writes
  return x;
}

__global__ void __launch_bounds__(loss_threads)
    routing_losses_kernel(const RouteShape shape, const float* __restrict__ scores, const float* __restrict__ lse,
                          const std::int32_t* __restrict__ counts, double* __restrict__ partials) {
  __shared__ float shared_counts[most_experts];
  __shared__ double shared[loss_warps];
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  for (int e = static_cast<int>(threadIdx.x); e < shape.experts; e += loss_threads)
    shared_counts[e] = static_cast<float>(counts[e]);
  __syncthreads();
  const std::int64_t step = std::int64_t{gridDim.x} * loss_warps;
  double balance = 0.0, z = 0.0;
  for (std::int64_t t = blockIdx.x * std::int64_t{loss_warps} + threadIdx.x / warp_size; t < shape.tokens; t += step) {
    const float* const row = scores + t * shape.experts;
#pragma unroll 4
    for (int e = lane; e < shape.experts; e += warp_size)
      balance += static_cast<double>(row[e]) * static_cast<double>(shared_counts[e]);
    if (lane == 0) z += static_cast<double>(lse[t]) * static_cast<double>(lse[t]);
  }
  balance = sum_of_block(balance, shared);
  z = sum_of_block(z, shared);
  if (threadIdx.x != 0) return;
  partials[2 * blockIdx.x] = balance;
  partials[2 * blockIdx.x + 1] = z;
}

// How many choices there are only the counts say.
__global__ void __launch_bounds__(loss_threads)
    finish_routing_losses_kernel(const double* __restrict__ partials, int blocks, const RouteShape shape,
                                 const std::int32_t* __restrict__ counts, float* __restrict__ losses) {
  __shared__ double shared[loss_warps];
  double balance = 0.0, z = 0.0, choices = 0.0;
  for (int b = static_cast<int>(threadIdx.x); b < blocks; b += loss_threads) {
    balance += partials[2 * b];
    z += partials[2 * b + 1];
  }
  for (int e = static_cast<int>(threadIdx.x); e < shape.experts; e += loss_threads) choices += counts[e];
  balance = sum_of_block(balance, shared);
  z = sum_of_block(z, shared);
  choices = sum_of_block(choices, shared);
  if (threadIdx.x != 0) return;
  const auto tokens = static_cast<double>(shape.tokens);
  losses[0] = static_cast<float>(balance * shape.experts / (choices * tokens));
  losses[1] = static_cast<float>(z / tokens);
}

}  // namespace

void launch_route_forward(cudaStream_t stream, const RouteForwardArgs& a) {
  if (a.shape.tokens == 0) return;
  dispatch(a.type, a.shape.experts, [&](auto tag, auto registers) {
    using T = typename decltype(tag)::type;
    route_forward_kernel<T, registers.value><<<grid_size(a.shape.tokens, tokens_each), threads, 0, stream>>>(a);
  });
  check_launch("route_forward");
}

void launch_route_backward(cudaStream_t stream, const RouteBackwardArgs& a) {
  if (a.shape.tokens == 0) return;
  dispatch(a.type, a.shape.experts, [&](auto tag, auto registers) {
    using T = typename decltype(tag)::type;
    route_backward_kernel<T, registers.value><<<grid_size(a.shape.tokens, tokens_each), threads, 0, stream>>>(a);
  });
  check_launch("route_backward");
}

void launch_routing_losses(cudaStream_t stream, const RouteShape& shape, const float* scores, const float* lse,
                           const std::int32_t* counts, float* losses, double* partials) {
  const auto blocks = static_cast<unsigned>(routing_loss_blocks(shape.tokens));
  routing_losses_kernel<<<blocks, loss_threads, 0, stream>>>(shape, scores, lse, counts, partials);
  check_launch("routing_losses");
  finish_routing_losses_kernel<<<1, loss_threads, 0, stream>>>(partials, static_cast<int>(blocks), shape, counts,
                                                               losses);
  check_launch("routing_losses");
}

}  // namespace assay::cuda
