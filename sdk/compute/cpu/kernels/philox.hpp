// Philox 4x32-10: random numbers as a function of (key, counter), so that an element's number depends on no other
// element and on no thread. Included by kernel files only (see isa.hpp).
//
// Numbering, which other backends repeat: the key is the seed, a counter is (block, stream), both 64 bits, low word
// first. A block has four 32-bit words; how elements map to words is said where they are used.
#pragma once
#include <stdint.h>

#include "math.hpp"

namespace assay::cpu::ASSAY_ISA {

struct PhiloxKey {
  uint64_t seed, stream;
};

// Blocks are made in tiles, so that the rounds run in vector registers.
constexpr int philox_blocks = 32;
constexpr int philox_words = 4 * philox_blocks;

// word[4 b + w] is word w of block first + b.
ASSAY_INLINE void philox_tile(PhiloxKey key, uint64_t first, uint32_t* __restrict word) {
  uint32_t c0[philox_blocks], c1[philox_blocks], c2[philox_blocks], c3[philox_blocks];
  for (int b = 0; b < philox_blocks; ++b) {
    c0[b] = uint32_t(first + uint64_t(b));
    c1[b] = uint32_t((first + uint64_t(b)) >> 32);
    c2[b] = uint32_t(key.stream);
    c3[b] = uint32_t(key.stream >> 32);
  }
  uint32_t k0 = uint32_t(key.seed), k1 = uint32_t(key.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int b = 0; b < philox_blocks; ++b) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0[b];
      const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2[b];
      const uint32_t n0 = uint32_t(p1 >> 32) ^ c1[b] ^ k0;
      const uint32_t n2 = uint32_t(p0 >> 32) ^ c3[b] ^ k1;
      c0[b] = n0, c1[b] = uint32_t(p1), c2[b] = n2, c3[b] = uint32_t(p0);
    }
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  for (int b = 0; b < philox_blocks; ++b) {
    word[4 * b] = c0[b], word[4 * b + 1] = c1[b], word[4 * b + 2] = c2[b], word[4 * b + 3] = c3[b];
  }
}

// The key of one step of a repeated draw: block `step` of (seed, stream).
ASSAY_INLINE PhiloxKey philox_key_of_step(uint64_t seed, uint64_t stream, uint64_t step) {
  uint32_t word[philox_words];
  philox_tile({seed, stream}, step, word);
  return {word[0] | uint64_t(word[1]) << 32, word[2] | uint64_t(word[3]) << 32};
}

}  // namespace assay::cpu::ASSAY_ISA
