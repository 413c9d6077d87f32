// Philox 4x32-10 on the host: random numbers as a function of (key, counter). Numbered as the compute backends number
// theirs: the key is the seed, a counter is (block, stream), both 64 bits, low word first; a block has four words.
#pragma once
#include <array>
#include <cstdint>

namespace assay::data {

// Blocks are made in tiles, so that the rounds run in vector registers: of 32, as shorter loops are unrolled before the
// compiler comes to vectorise them.
inline constexpr int philox_tile_blocks = 32;
using PhiloxTile = std::array<std::uint32_t, 4 * philox_tile_blocks>;  // word w of block first + b at 4 b + w

inline void philox_tile(std::uint64_t seed, std::uint64_t stream, std::uint64_t first_block, PhiloxTile& word) {
  std::uint32_t c0[philox_tile_blocks], c1[philox_tile_blocks], c2[philox_tile_blocks], c3[philox_tile_blocks];
  for (int b = 0; b < philox_tile_blocks; ++b) {
    const std::uint64_t block = first_block + static_cast<std::uint64_t>(b);
    c0[b] = static_cast<std::uint32_t>(block), c1[b] = static_cast<std::uint32_t>(block >> 32);
    c2[b] = static_cast<std::uint32_t>(stream), c3[b] = static_cast<std::uint32_t>(stream >> 32);
  }
  auto k0 = static_cast<std::uint32_t>(seed);
  auto k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int b = 0; b < philox_tile_blocks; ++b) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0[b];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c2[b];
      const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1[b] ^ k0;
      const std::uint32_t n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3[b] ^ k1;
      c0[b] = n0, c1[b] = static_cast<std::uint32_t>(p1), c2[b] = n2, c3[b] = static_cast<std::uint32_t>(p0);
    }
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  for (int b = 0; b < philox_tile_blocks; ++b) {
    const auto at = static_cast<std::size_t>(4 * b);
    word[at] = c0[b], word[at + 1] = c1[b], word[at + 2] = c2[b], word[at + 3] = c3[b];
  }
}

}  // namespace assay::data
