// Philox 4x32-10: random numbers as a function of (key, counter), so that an element's number depends on no other
// element and on no thread. Included by kernel files only (see isa.hpp).
//
// Numbering, which other backends repeat: the key is the seed, a counter is (block, stream), both 64 bits, low word
// first. A block has four 32-bit words; how elements map to words is said where they are used.
#pragma once
#include <stdint.h>

#include <utility>

#include "vec.hpp"

namespace assay::cpu::ASSAY_ISA {

struct PhiloxKey {
  uint64_t seed, stream;
};

// A block lies in one 64-bit lane of four vectors, a word in the lower half of each. What is above a word is left over
// from products and never looked at, so that a round needs no shuffle.
typedef uint64_t BlockVec __attribute__((vector_size(4 * lanes)));
typedef uint64_t BlockVecAnywhere __attribute__((vector_size(4 * lanes), aligned(4), may_alias));
constexpr int block_lanes = lanes / 2;

// The compiler's own product of 64-bit lanes takes several instructions. (A mask that takes all: see vec.hpp.)
ASSAY_INLINE BlockVec multiply_low_halves(BlockVec a, BlockVec b) {
#if defined(__AVX512F__)
  return reinterpret_cast<BlockVec>(
      _mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<BlockVec>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif defined(__SSE2__)
  return reinterpret_cast<BlockVec>(_mm_mul_epu32(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  return (a & 0xffffffffu) * (b & 0xffffffffu);
#endif
}
template <int... I>
ASSAY_INLINE BlockVec blocks_from(uint64_t first, Lanes<I...>) {
  return BlockVec{(first + uint64_t(I))...};
}
template <int offset, int... I>
ASSAY_INLINE BlockVec alternate(BlockVec a, BlockVec b, Lanes<I...>) {  // a[offset], b[offset], a[offset + 1], ...
  return __builtin_shufflevector(a, b, ((I & 1) * block_lanes + offset + I / 2)...);
}

// Words of block_lanes * groups blocks. Several groups at once: the rounds of one wait for each other.
template <int groups>
ASSAY_INLINE void philox_groups(PhiloxKey key, uint64_t first, uint32_t* word) {
  using BlockLanes = std::make_integer_sequence<int, block_lanes>;
  BlockVec c0[groups], c1[groups], c2[groups], c3[groups];
#pragma GCC unroll 8
  for (int g = 0; g < groups; ++g) {
    c0[g] = blocks_from(first + uint64_t(g * block_lanes), BlockLanes{});
    c1[g] = c0[g] >> 32;
    c2[g] = BlockVec{} + key.stream;
    c3[g] = BlockVec{} + (key.stream >> 32);
  }
  BlockVec k0 = BlockVec{} + key.seed, k1 = BlockVec{} + (key.seed >> 32);
  const BlockVec m0 = BlockVec{} + uint64_t{0xD2511F53u}, m1 = BlockVec{} + uint64_t{0xCD9E8D57u};
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
#pragma GCC unroll 8
    for (int g = 0; g < groups; ++g) {
      const BlockVec p0 = multiply_low_halves(c0[g], m0), p1 = multiply_low_halves(c2[g], m1);
      c0[g] = (p1 >> 32) ^ c1[g] ^ k0;
      c2[g] = (p0 >> 32) ^ c3[g] ^ k1;
      c1[g] = p1, c3[g] = p0;
    }
    k0 += uint64_t{0x9E3779B9u}, k1 += uint64_t{0xBB67AE85u};
  }
#pragma GCC unroll 8
  for (int g = 0; g < groups; ++g) {
    const BlockVec low = (c0[g] & 0xffffffffu) | c1[g] << 32, high = (c2[g] & 0xffffffffu) | c3[g] << 32;
    // Not auto: a deduced type has lost the alignment.
    BlockVecAnywhere* const to = reinterpret_cast<BlockVecAnywhere*>(word + 4 * block_lanes * g);
    to[0] = alternate<0>(low, high, BlockLanes{});
    to[1] = alternate<block_lanes / 2>(low, high, BlockLanes{});
  }
}

// word[4 b + w] is word w of block first + b, for at least the first `words`. Writes in pieces: `word` must hold
// philox_room(words).
constexpr int philox_piece = 4 * block_lanes;
constexpr int philox_room(int words) { return (words + philox_piece - 1) / philox_piece * philox_piece; }
__attribute__((noinline)) static inline void philox_words(PhiloxKey key, uint64_t first, int words,
                                                          uint32_t* __restrict word) {
  constexpr int many = lanes == 16 ? 4 : 2;  // as many as fit the registers
  int done = 0;
  for (; done + many * philox_piece <= words; done += many * philox_piece)
    philox_groups<many>(key, first + uint64_t(done / 4), word + done);
  for (; done < words; done += philox_piece) philox_groups<1>(key, first + uint64_t(done / 4), word + done);
}

// As many words as the loops over all elements take at a time.
constexpr int philox_tile_words = 128;

// The key of one step of a repeated draw: block `step` of (seed, stream).
ASSAY_INLINE PhiloxKey philox_key_of_step(uint64_t seed, uint64_t stream, uint64_t step) {
  uint32_t word[philox_room(4)];
  philox_words({seed, stream}, step, 4, word);
  return {word[0] | uint64_t(word[1]) << 32, word[2] | uint64_t(word[3]) << 32};
}

}  // namespace assay::cpu::ASSAY_ISA
