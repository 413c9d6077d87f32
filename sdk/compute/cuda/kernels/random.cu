#include "cuda_error.hpp"
#include "kernels/data.hpp"
#include "kernels/philox.cuh"
#include "kernels/types.cuh"

namespace assay::cuda {
namespace {

constexpr int threads = 256;

// Box and Muller on 24-bit uniforms: the radius from (0, 1], so that its logarithm is finite. The angle is handed over
// in half turns, which are exact, where radians would be rounded.
__device__ __forceinline__ void normal_pair(std::uint32_t a, std::uint32_t b, float* even, float* odd) {
  const float u = static_cast<float>((a >> 8) + 1) * 0x1p-24F;
  const float half_turns = static_cast<float>(b >> 8) * 0x1p-23F;
  const float radius = sqrtf(-2.0F * logf(u));
  float sine, cosine;
  sincospif(half_turns, &sine, &cosine);
  *even = radius * cosine;
  *odd = radius * sine;
}

// A thread has the four elements of one block.
template <class T, bool wide>
__global__ void __launch_bounds__(threads)
    normal_kernel(T* __restrict__ to, std::int64_t count, PhiloxKey key, float mean, float std) {
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x, first = 4 * block;
  if (first >= count) return;
  const PhiloxBlock random = philox(key, static_cast<std::uint64_t>(block));
  float z[4];
  normal_pair(random.word[0], random.word[1], &z[0], &z[1]);
  normal_pair(random.word[2], random.word[3], &z[2], &z[3]);
#pragma unroll
  for (int j = 0; j < 4; ++j) z[j] = mean + std * z[j];
  if (wide && first + 4 <= count) {
    store_pack(to + first, pack_from<T>(z));
  } else {
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (first + j < count) to[first + j] = from_float<T>(z[j]);
  }
}

// A thread has the two elements of one block.
__global__ void __launch_bounds__(threads) integers_kernel(std::int64_t* __restrict__ to, std::int64_t count,
                                                           PhiloxKey key, std::int64_t low, std::uint64_t range) {
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (2 * block >= count) return;
  const PhiloxBlock random = philox(key, static_cast<std::uint64_t>(block));
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    if (2 * block + j >= count) return;
    const std::uint64_t bits = random.word[2 * j] | static_cast<std::uint64_t>(random.word[2 * j + 1]) << 32;
    to[2 * block + j] = static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + __umul64hi(bits, range));
  }
}

}  // namespace

void launch_random_normal(cudaStream_t stream, compute::DType type, void* to, std::int64_t count, std::uint64_t seed,
                          std::uint64_t random_stream, float mean, float std) {
  if (count <= 0) return;
  dispatch_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto kernel = aligned({to}) ? normal_kernel<T, true> : normal_kernel<T, false>;
    kernel<<<grid_size(count, 4 * threads), threads, 0, stream>>>(static_cast<T*>(to), count,
                                                                  PhiloxKey{seed, random_stream}, mean, std);
    check_launch("random_normal");
  });
}

void launch_random_integers(cudaStream_t stream, std::int64_t* to, std::int64_t count, std::uint64_t seed,
                            std::uint64_t random_stream, std::int64_t low, std::uint64_t range) {
  if (count <= 0) return;
  integers_kernel<<<grid_size(count, 2 * threads), threads, 0, stream>>>(to, count, PhiloxKey{seed, random_stream}, low,
                                                                         range);
  check_launch("random_integers");
}

}  // namespace assay::cuda
