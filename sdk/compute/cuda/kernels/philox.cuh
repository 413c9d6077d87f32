// Philox 4x32-10: random numbers as a function of (key, counter), so that an element's number depends on no other
// element and on no thread. Included by .cu files only.
//
// The numbering is that of the CPU backend: the key is the seed, a counter is (block, stream), both 64 bits, low word
// first. A block has four 32-bit words; how elements map to words is said where they are used.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

namespace assay::cuda {

struct PhiloxKey {
  std::uint64_t seed, stream;
};
struct PhiloxBlock {
  std::uint32_t word[4];
};

__device__ __forceinline__ PhiloxBlock philox(PhiloxKey key, std::uint64_t block) {
  std::uint32_t c0 = static_cast<std::uint32_t>(block), c1 = static_cast<std::uint32_t>(block >> 32);
  std::uint32_t c2 = static_cast<std::uint32_t>(key.stream), c3 = static_cast<std::uint32_t>(key.stream >> 32);
  std::uint32_t k0 = static_cast<std::uint32_t>(key.seed), k1 = static_cast<std::uint32_t>(key.seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0;
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<std::uint32_t>(p1);
    c3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// The key of one step of a repeated draw: block `step` of (seed, stream).
__device__ __forceinline__ PhiloxKey philox_key_of_step(PhiloxKey key, std::uint64_t step) {
  const PhiloxBlock b = philox(key, step);
  return {b.word[0] | static_cast<std::uint64_t>(b.word[1]) << 32, b.word[2] | static_cast<std::uint64_t>(b.word[3])
                                                                                   << 32};
}

}  // namespace assay::cuda
