// The integers that compute::op::RandomIntegers draws, written down once more from their definition: Philox 4x32-10
// (Salmon, Moraes, Dror, Shaw 2011), whose key is the seed and whose counter is (block, stream), low words first. A
// block has two numbers of 64 bits, of which each is scaled to the range by its high half.
#pragma once
#include <array>
#include <cstdint>

namespace assay::verification {

inline std::array<std::uint32_t, 4> philox_block(std::uint64_t seed, std::uint64_t stream, std::uint64_t block) {
  std::array<std::uint64_t, 4> x{block & 0xffffffffu, block >> 32, stream & 0xffffffffu, stream >> 32};
  std::uint64_t key[2]{seed & 0xffffffffu, seed >> 32};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = x[0] * 0xD2511F53u, b = x[2] * 0xCD9E8D57u;
    x = {(b >> 32) ^ x[1] ^ key[0], b & 0xffffffffu, (a >> 32) ^ x[3] ^ key[1], a & 0xffffffffu};
    key[0] = (key[0] + 0x9E3779B9u) & 0xffffffffu;
    key[1] = (key[1] + 0xBB67AE85u) & 0xffffffffu;
  }
  return {static_cast<std::uint32_t>(x[0]), static_cast<std::uint32_t>(x[1]), static_cast<std::uint32_t>(x[2]),
          static_cast<std::uint32_t>(x[3])};
}

// Element `index` of what is drawn, in [0, range).
inline std::int64_t random_integer(std::uint64_t seed, std::uint64_t stream, std::int64_t index, std::int64_t range) {
  const std::array<std::uint32_t, 4> word = philox_block(seed, stream, static_cast<std::uint64_t>(index) / 2);
  const std::size_t first = index % 2 == 0 ? 0 : 2;
  // The high half of a product of 64 bits, by the halves of the factor: range fits into 32 bits, as a vocabulary does.
  const std::uint64_t low = word[first] * static_cast<std::uint64_t>(range);
  const std::uint64_t high = word[first + 1] * static_cast<std::uint64_t>(range);
  return static_cast<std::int64_t>((high + (low >> 32)) >> 32);
}

}  // namespace assay::verification
