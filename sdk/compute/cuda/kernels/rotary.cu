// Rotary position: a table of cosines and sines, and the turning of adjacent pairs.
#include "cuda_error.hpp"
#include "kernels/embedding.hpp"
#include "kernels/tiles.cuh"
#include "kernels/types.cuh"

namespace assay::cuda {
namespace {

constexpr int threads = 256;

__global__ void __launch_bounds__(threads)
    table_kernel(float* __restrict__ cos_out, float* __restrict__ sin_out, std::int64_t count, std::int64_t pairs,
                 compute::RotaryCurve curve) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i >= count) return;
  const std::int64_t position = i / pairs, pair = i % pairs;
  double sine, cosine;
  sincos(static_cast<double>(position) * compute::rotary_frequency(curve, pair, pairs), &sine, &cosine);
  cos_out[i] = static_cast<float>(curve.magnitude * cosine);
  sin_out[i] = static_cast<float>(curve.magnitude * sine);
}

constexpr int heads_each = 4;  // per thread: cosines and sines are loaded once for them

// A thread turns the pairs of one pack in every `groups`-th head of one position; neighbouring threads lie on
// neighbouring packs and heads, so that a warp's accesses are one run of memory.
template <class T, int N>
__global__ void __launch_bounds__(threads)
    rotary_kernel(T* x, const float* __restrict__ cos, const float* __restrict__ sin, std::uint32_t count,
                  FastDivision packs_per_head, FastDivision groups, RotaryShape s, float sign) {
  std::uint32_t position = blockIdx.x * threads + threadIdx.x;
  if (position >= count) return;
  const std::uint32_t pack = packs_per_head.split(position), group = groups.split(position);
  const std::int64_t at = position * s.pairs + static_cast<std::int64_t>(pack) * (N / 2);
  const Pack<float, N / 2> cosine = load_pack<N / 2, Cache::constant>(cos + at);
  Pack<float, N / 2> turn = load_pack<N / 2, Cache::constant>(sin + at);
#pragma unroll
  for (int i = 0; i < N / 2; ++i) turn.v[i] *= sign;
  for (std::int64_t b = blockIdx.y; b < s.batch; b += gridDim.y) {
    T* const start = x + b * s.batch_step + position * s.position_step + static_cast<std::int64_t>(pack) * N;
    Pack<T, N> value[heads_each];
#pragma unroll
    for (int k = 0; k < heads_each; ++k) {
      const std::int64_t head = group + static_cast<std::int64_t>(k) * groups.divisor;
      if (head < s.heads) value[k] = load_pack<N>(start + head * s.head_step);
    }
#pragma unroll
    for (int k = 0; k < heads_each; ++k) {
      const std::int64_t head = group + static_cast<std::int64_t>(k) * groups.divisor;
      if (head >= s.heads) continue;
      float y[N];
#pragma unroll
      for (int i = 0; i < N / 2; ++i) {
        const float even = to_float(value[k].v[2 * i]), odd = to_float(value[k].v[2 * i + 1]);
        y[2 * i] = even * cosine.v[i] - odd * turn.v[i];
        y[2 * i + 1] = even * turn.v[i] + odd * cosine.v[i];
      }
      store_pack(start + head * s.head_step, pack_from<T>(y));
    }
  }
}

// As above, one pair to a thread and head, for addresses and strides that no pack fits.
template <class T>
__global__ void __launch_bounds__(threads)
    rotary_pairs_kernel(T* x, const float* __restrict__ cos, const float* __restrict__ sin, std::uint32_t count,
                        FastDivision pairs, FastDivision groups, RotaryShape s, float sign) {
  std::uint32_t position = blockIdx.x * threads + threadIdx.x;
  if (position >= count) return;
  const std::uint32_t pair = pairs.split(position), group = groups.split(position);
  const std::int64_t at = position * s.pairs + pair;
  const float cosine = cos[at], turn = sign * sin[at];
  for (std::int64_t b = blockIdx.y; b < s.batch; b += gridDim.y) {
    T* const start = x + b * s.batch_step + position * s.position_step + 2 * static_cast<std::int64_t>(pair);
    for (std::int64_t head = group; head < s.heads; head += groups.divisor) {
      T* const two = start + head * s.head_step;
      const float even = to_float(two[0]), odd = to_float(two[1]);
      two[0] = from_float<T>(even * cosine - odd * turn);
      two[1] = from_float<T>(even * turn + odd * cosine);
    }
  }
}

// Positions are cut where a launch would count too many threads, which no model comes near.
template <class T>
void turn(cudaStream_t stream, T* x, const float* cos, const float* sin, const RotaryShape& shape, float sign) {
  constexpr int N = pack_width<T>;
  const bool wide = 2 * shape.pairs % N == 0 && aligned({x, cos, sin}) && shape.batch_step % N == 0 &&
                    shape.position_step % N == 0 && shape.head_step % N == 0;
  const std::int64_t per_head = wide ? 2 * shape.pairs / N : shape.pairs, groups = ceil_div(shape.heads, heads_each);
  const auto batches = static_cast<unsigned>(std::min<std::int64_t>(shape.batch, 65535));
  for_tiles(shape.positions, groups * per_head,
            [&](std::int64_t first, std::int64_t positions, std::int64_t, std::int64_t each) {
              if (each != groups * per_head) misused("rotary: a position too large for one launch");
              const auto count = static_cast<std::uint32_t>(positions * each);
              const dim3 grid(grid_size(count, threads), batches);
              const auto kernel = wide ? rotary_kernel<T, N> : rotary_pairs_kernel<T>;
              kernel<<<grid, threads, 0, stream>>>(x + first * shape.position_step, cos + first * shape.pairs,
                                                   sin + first * shape.pairs, count, FastDivision(per_head),
                                                   FastDivision(groups), shape, sign);
              check_launch("rotary");
            });
}

}  // namespace

void launch_rotary_table(cudaStream_t stream, float* cos, float* sin, std::int64_t positions, std::int64_t pairs,
                         const compute::RotaryCurve& curve) {
  const std::int64_t count = positions * pairs;
  if (count <= 0) return;
  table_kernel<<<grid_size(count, threads), threads, 0, stream>>>(cos, sin, count, pairs, curve);
  check_launch("rotary_table");
}

void launch_rotary(cudaStream_t stream, compute::DType type, void* x, const float* cos, const float* sin,
                   const RotaryShape& given, bool inverse) {
  RotaryShape s = given;
  if (s.batch <= 0 || s.positions <= 0 || s.heads <= 0 || s.pairs <= 0) return;
  // The step of a dimension of one entry does not affect the alignment.
  if (s.batch == 1) s.batch_step = 0;
  if (s.positions == 1) s.position_step = 0;
  if (s.heads == 1) s.head_step = 0;
  dispatch_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    turn(stream, static_cast<T*>(x), cos, sin, s, inverse ? -1.0F : 1.0F);
  });
}

}  // namespace assay::cuda
