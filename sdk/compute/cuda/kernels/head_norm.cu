// A team of threads has a head: a few lanes of a warp if each may hold one pack of it, so that it is read once; else a
// block, which walks its pairs. The number of teams is a multiple of the heads, and teams go from position to position.
// Each keeps its head, and so its weights, and its sums for the gradient by them. A block adds up these sums over its
// teams at its end, and a second kernel over the blocks, both in an order that is always the same.
//
// With n = x rstd, u the gradient turned back and g = u weight: dx = rstd (g - n mean(g n)), dweight = sum of u n.
#include "kernels/head_norm.hpp"

#include "cuda_error.hpp"
#include "kernels/held.cuh"
#include "kernels/norm_total.hpp"
#include "kernels/norm_types.cuh"
#include "kernels/tiles.cuh"
#include "scratch_sizes.hpp"

namespace assay::cuda {
namespace {

constexpr int walk_threads = 128;

// What kernels divide by.
struct HeadWalk {
  FastDivision heads, positions;
  std::uint32_t tokens = 0;
  float one_element = 0;
};

// Where a team begins, and how far it steps: `token` is not below `step` where it has nothing to do.
struct Team {
  std::uint32_t token, head, step;
  bool of_queries;

  __device__ __forceinline__ Team(std::uint32_t team, std::uint32_t teams, const HeadWalk& walk,
                                  const compute::HeadNormShape& s)
      : token(team), step(walk.heads.quotient(teams)) {
    head = walk.heads.split(token);
    of_queries = head < s.queries;
  }
  __device__ __forceinline__ bool works() const { return token < step; }
};

struct Place {
  std::uint32_t batch, position;
  __device__ __forceinline__ Place(std::uint32_t token, const HeadWalk& walk) : batch(token) {
    position = walk.positions.split(batch);
  }
  __device__ __forceinline__ std::int64_t at(const compute::HeadSteps& steps, std::uint32_t head) const {
    return batch * steps.batch + position * steps.position + head * steps.head;
  }
};

// Over `lanes` adjacent lanes, in each of them and in the same order each time.
template <int lanes>
__device__ __forceinline__ float team_sum(float x) {
  const unsigned first = threadIdx.x % warp_size / lanes * lanes;
  const unsigned mask = (lanes == warp_size ? 0xffffffffU : (1U << (lanes % warp_size)) - 1U) << first;
#pragma unroll
  for (int offset = lanes / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(mask, x, offset);
  return x;
}

template <int N>
__device__ __forceinline__ void turn(float (&x)[N], const Pack<float, N / 2>& cos, const Pack<float, N / 2>& sin,
                                     float sign) {
#pragma unroll
  for (int i = 0; i < N / 2; ++i) {
    const float even = x[2 * i], odd = x[2 * i + 1], sine = sign * sin.v[i];
    x[2 * i] = even * cos.v[i] - odd * sine;
    x[2 * i + 1] = even * sine + odd * cos.v[i];
  }
}

template <class X, class W, int V, int lanes>
__global__ void __launch_bounds__(head_norm_threads, 2)
    head_norm_forward_kernel(const HeadNormArgs a, const HeadWalk walk) {
  constexpr std::uint32_t teams = head_norm_threads / lanes;
  const compute::HeadNormShape& s = a.shape;
  const Team team(blockIdx.x * teams + threadIdx.x / lanes, gridDim.x * teams, walk, s);
  if (!team.works()) return;
  const int first = static_cast<int>(threadIdx.x % lanes) * V;
  const bool holds = first < 2 * s.pairs;
  float weight[V] = {};
  if (holds)
    unpack(hold<V, Cache::constant>(static_cast<const W*>(a.weight) + (team.of_queries ? 0 : 2 * s.pairs) + first),
           weight);
#pragma unroll
  for (int e = 0; e < V; ++e) weight[e] += a.weight_offset;
  for (std::uint32_t token = team.token; token < walk.tokens; token += team.step) {
    const Place place(token, walk);
    const std::int64_t angle = place.position * s.pairs + first / 2;
    float x[V] = {}, squares = 0.0F;
    Pack<float, V / 2> cos{}, sin{};
    if (holds) {
      unpack(hold<V, Cache::constant>(static_cast<const X*>(a.x) + place.at(s.x, team.head) + first), x);
      cos = load_pack<V / 2, Cache::constant>(a.cos + angle);
      sin = load_pack<V / 2, Cache::constant>(a.sin + angle);
    }
#pragma unroll
    for (int e = 0; e < V; ++e) squares += x[e] * x[e];
    const float rstd = 1.0F / sqrtf(team_sum<lanes>(squares) * walk.one_element + a.eps);
#pragma unroll
    for (int e = 0; e < V; ++e) x[e] *= rstd * weight[e];
    turn(x, cos, sin, 1.0F);
    if (holds) store(static_cast<X*>(a.rotated) + place.at(s.rotated, team.head) + first, held_from<X>(x));
  }
}

// dx may be drotated: no read-only loads there.
template <class X, class W, int V, int lanes>
__global__ void __launch_bounds__(head_norm_threads, 2)
    head_norm_backward_kernel(const HeadNormArgs a, const HeadWalk walk) {
  constexpr std::uint32_t teams = head_norm_threads / lanes;
  alignas(pack_bytes) __shared__ float shared[head_norm_threads * V];
  const compute::HeadNormShape& s = a.shape;
  const int width = static_cast<int>(2 * s.pairs);
  const Team team(blockIdx.x * teams + threadIdx.x / lanes, gridDim.x * teams, walk, s);
  const int first = static_cast<int>(threadIdx.x % lanes) * V;
  const bool holds = first < width;
  float weight[V] = {}, dweight[V] = {};
  if (holds)
    unpack(hold<V, Cache::constant>(static_cast<const W*>(a.weight) + (team.of_queries ? 0 : width) + first), weight);
#pragma unroll
  for (int e = 0; e < V; ++e) weight[e] += a.weight_offset;
  const std::uint32_t end = team.works() ? walk.tokens : 0;
  for (std::uint32_t token = team.token; token < end; token += team.step) {
    const Place place(token, walk);
    const std::int64_t angle = place.position * s.pairs + first / 2;
    float x[V] = {}, dy[V] = {}, squares = 0.0F, dot = 0.0F;
    Pack<float, V / 2> cos{}, sin{};
    if (holds) {
      unpack(hold<V, Cache::constant>(static_cast<const X*>(a.x) + place.at(s.x, team.head) + first), x);
      unpack(hold<V>(static_cast<const X*>(a.drotated) + place.at(s.rotated, team.head) + first), dy);
      cos = load_pack<V / 2, Cache::constant>(a.cos + angle);
      sin = load_pack<V / 2, Cache::constant>(a.sin + angle);
    }
    turn(dy, cos, sin, -1.0F);
#pragma unroll
    for (int e = 0; e < V; ++e) squares += x[e] * x[e], dot += dy[e] * weight[e] * x[e];
    const float rstd = 1.0F / sqrtf(team_sum<lanes>(squares) * walk.one_element + a.eps);
    const float pull = team_sum<lanes>(dot) * rstd * walk.one_element;
#pragma unroll
    for (int e = 0; e < V; ++e) {
      x[e] *= rstd;
      dweight[e] += dy[e] * x[e];
      dy[e] = (dy[e] * weight[e] - x[e] * pull) * rstd;
    }
    if (holds) store(static_cast<X*>(a.dx) + place.at(s.dx, team.head) + first, held_from<X>(dy));
  }
  const int own_team = static_cast<int>(threadIdx.x) / lanes;
  if (holds) store(shared + own_team * width + first, held_from<float>(dweight));
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < 2 * width; c += head_norm_threads) {
    const bool of_queries = c < width;
    float sum = 0.0F;
    for (int t = 0; t < static_cast<int>(teams); ++t) {
      std::uint32_t other = blockIdx.x * teams + t;
      if ((walk.heads.split(other) < s.queries) == of_queries) sum += shared[t * width + (of_queries ? c : c - width)];
    }
    a.partials[blockIdx.x * std::int64_t{2} * width + c] = sum;
  }
}

// A block has a head, for addresses, strides and widths that no pack fits. Each look reads the head again.
template <class X>
__device__ __forceinline__ float walked_rstd(const X* x, const HeadNormArgs& a, const HeadWalk& walk, float* shared) {
  float squares = 0.0F;
  for (std::int64_t i = threadIdx.x; i < 2 * a.shape.pairs; i += walk_threads) {
    const float value = to_float(x[i]);
    squares += value * value;
  }
  return 1.0F / sqrtf(block_sum<walk_threads>(squares, shared) * walk.one_element + a.eps);
}

// Elements 2 i and 2 i + 1, turned by angle i.
template <class T>
__device__ __forceinline__ float2 load_pair(const T* x, std::int64_t i) {
  return {to_float(x[2 * i]), to_float(x[2 * i + 1])};
}
template <class T>
__device__ __forceinline__ void store_pair(T* x, std::int64_t i, float2 pair) {
  x[2 * i] = from_float<T>(pair.x), x[2 * i + 1] = from_float<T>(pair.y);
}
__device__ __forceinline__ float2 turned(float2 x, float cos, float sin) {
  return {x.x * cos - x.y * sin, x.x * sin + x.y * cos};
}

template <class W>
__device__ __forceinline__ float2 factors(const W* weight, const HeadNormArgs& a, std::int64_t i) {
  const float2 w = load_pair(weight, i);
  return {w.x + a.weight_offset, w.y + a.weight_offset};
}

template <class X, class W>
__global__ void __launch_bounds__(walk_threads)
    head_norm_walk_forward_kernel(const HeadNormArgs a, const HeadWalk walk) {
  __shared__ float shared[walk_threads / warp_size];
  const compute::HeadNormShape& s = a.shape;
  const Team team(blockIdx.x, gridDim.x, walk, s);
  if (!team.works()) return;
  const W* const weight = static_cast<const W*>(a.weight) + (team.of_queries ? 0 : 2 * s.pairs);
  for (std::uint32_t token = team.token; token < walk.tokens; token += team.step) {
    const Place place(token, walk);
    const X* const x = static_cast<const X*>(a.x) + place.at(s.x, team.head);
    X* const rotated = static_cast<X*>(a.rotated) + place.at(s.rotated, team.head);
    const float rstd = walked_rstd(x, a, walk, shared);
    for (std::int64_t i = threadIdx.x; i < s.pairs; i += walk_threads) {
      const float2 two = load_pair(x, i), w = factors(weight, a, i);
      const std::int64_t angle = place.position * s.pairs + i;
      store_pair(rotated, i, turned({two.x * rstd * w.x, two.y * rstd * w.y}, a.cos[angle], a.sin[angle]));
    }
  }
}

template <class X, class W>
__global__ void __launch_bounds__(walk_threads)
    head_norm_walk_backward_kernel(const HeadNormArgs a, const HeadWalk walk) {
  __shared__ float shared[walk_threads / warp_size];
  const compute::HeadNormShape& s = a.shape;
  const Team team(blockIdx.x, gridDim.x, walk, s);
  const W* const weight = static_cast<const W*>(a.weight) + (team.of_queries ? 0 : 2 * s.pairs);
  float* const partials = a.partials + blockIdx.x * 4 * s.pairs;
  float* const dweight = partials + (team.of_queries ? 0 : 2 * s.pairs);
  for (std::int64_t i = threadIdx.x; i < s.pairs; i += walk_threads)  // by the threads that add to them
    store_pair(partials, i, {0.0F, 0.0F}), store_pair(partials + 2 * s.pairs, i, {0.0F, 0.0F});
  if (!team.works()) return;
  for (std::uint32_t token = team.token; token < walk.tokens; token += team.step) {
    const Place place(token, walk);
    const X* const x = static_cast<const X*>(a.x) + place.at(s.x, team.head);
    const X* const drotated = static_cast<const X*>(a.drotated) + place.at(s.rotated, team.head);
    X* const dx = static_cast<X*>(a.dx) + place.at(s.dx, team.head);
    const auto turned_back = [&](std::int64_t i) {
      const std::int64_t angle = place.position * s.pairs + i;
      return turned(load_pair(drotated, i), a.cos[angle], -a.sin[angle]);
    };
    const float rstd = walked_rstd(x, a, walk, shared);
    float dot = 0.0F;
    for (std::int64_t i = threadIdx.x; i < s.pairs; i += walk_threads) {
      const float2 u = turned_back(i), two = load_pair(x, i), w = factors(weight, a, i);
      dot += u.x * w.x * two.x + u.y * w.y * two.y;
    }
    const float pull = block_sum<walk_threads>(dot, shared) * rstd * walk.one_element;
    for (std::int64_t i = threadIdx.x; i < s.pairs; i += walk_threads) {
      const float2 u = turned_back(i), two = load_pair(x, i), w = factors(weight, a, i), sum = load_pair(dweight, i);
      const float2 n{two.x * rstd, two.y * rstd};
      store_pair(dweight, i, {sum.x + u.x * n.x, sum.y + u.y * n.y});
      store_pair(dx, i, {(u.x * w.x - n.x * pull) * rstd, (u.y * w.y - n.y * pull) * rstd});
    }
  }
}

// ---- host side -----------------------------------------------------------------------------------------------------

// The step of a dimension of one entry does not affect the alignment.
compute::HeadNormShape without_idle_steps(compute::HeadNormShape s) {
  for (compute::HeadSteps* steps : {&s.x, &s.rotated, &s.dx}) {
    if (s.batch == 1) steps->batch = 0;
    if (s.positions == 1) steps->position = 0;
    if (s.heads == 1) steps->head = 0;
  }
  return s;
}

bool steps_fit(const compute::HeadNormShape& s, int wide) {
  for (const compute::HeadSteps& steps : {s.x, s.rotated, s.dx})
    if (steps.batch % wide != 0 || steps.position % wide != 0 || steps.head % wide != 0) return false;
  return true;
}

// At least a team for each head.
unsigned blocks_of(const compute::HeadNormShape& s, std::int64_t teams) {
  const std::int64_t least = least_head_norm_blocks(s.heads, teams);
  return grid_size(s.batch * s.positions * s.heads, teams, std::max(most_head_norm_blocks, least));
}

// Returns the number of blocks.
template <class X, class W, int lanes>
unsigned launch_packed(const HeadNormArgs& a, const HeadWalk& walk, bool backward, cudaStream_t stream) {
  constexpr int V = pack_width<X>;
  const unsigned blocks = blocks_of(a.shape, head_norm_threads / lanes);
  const auto kernel = backward ? head_norm_backward_kernel<X, W, V, lanes> : head_norm_forward_kernel<X, W, V, lanes>;
  kernel<<<blocks, head_norm_threads, 0, stream>>>(a, walk);
  return blocks;
}

template <class X, class W>
unsigned launch_walk(const HeadNormArgs& a, const HeadWalk& walk, bool backward, cudaStream_t stream) {
  const unsigned blocks = blocks_of(a.shape, 1);
  const auto kernel = backward ? head_norm_walk_backward_kernel<X, W> : head_norm_walk_forward_kernel<X, W>;
  kernel<<<blocks, walk_threads, 0, stream>>>(a, walk);
  return blocks;
}

unsigned launch(const HeadNormArgs& given, bool backward, const char* operation, cudaStream_t stream) {
  HeadNormArgs a = given;
  a.shape = without_idle_steps(given.shape);
  const compute::HeadNormShape& s = a.shape;
  const std::int64_t tokens = s.batch * s.positions;
  if (tokens == 0 || s.heads == 0) return 0;
  if (tokens > most_places) misused("head norm: too many positions for one launch");
  const HeadWalk walk{FastDivision(s.heads), FastDivision(s.positions), static_cast<std::uint32_t>(tokens),
                      1.0F / static_cast<float>(2 * s.pairs)};
  unsigned blocks = 0;
  with_norm_types(a, [&](auto x_tag, auto w_tag) {
    using X = typename decltype(x_tag)::type;
    using W = typename decltype(w_tag)::type;
    constexpr int wide = pack_width<X>;
    const std::int64_t packs = 2 * s.pairs / wide;
    const bool packed = 2 * s.pairs % wide == 0 && packs <= warp_size && steps_fit(s, wide) &&
                        aligned({a.x, a.weight, a.cos, a.sin, a.rotated, a.drotated, a.dx});
    if (!packed)
      blocks = launch_walk<X, W>(a, walk, backward, stream);
    else if (packs <= 8)
      blocks = launch_packed<X, W, 8>(a, walk, backward, stream);
    else if (packs <= 16)
      blocks = launch_packed<X, W, 16>(a, walk, backward, stream);
    else
      blocks = launch_packed<X, W, 32>(a, walk, backward, stream);
  });
  check_launch(operation);
  return blocks;
}

}  // namespace

void head_norm_rotary_forward(const HeadNormArgs& a, cudaStream_t stream) {
  launch(a, false, "head_norm_rotary_forward", stream);
}

void head_norm_rotary_backward(const HeadNormArgs& a, cudaStream_t stream) {
  const unsigned blocks = launch(a, true, "head_norm_rotary_backward", stream);
  NormTotals totals;
  totals[0] = {a.partials, a.dweight, a.dweight_type};
  launch_norm_totals(totals, blocks, 4 * a.shape.pairs, a.accumulate, stream);
  check_launch("head_norm_rotary_backward");
}

}  // namespace assay::cuda
