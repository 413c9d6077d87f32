// Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011) once more, a block at a time: what masks of dropout, samples,
// orders of data and batches are held against. The key is the seed and the counter is (block, stream), each 64 bits,
// low word first.
#pragma once
#include <array>
#include <cstdint>

namespace assay::verification {

inline std::array<std::uint32_t, 4> philox_block(std::uint64_t seed, std::uint64_t stream, std::uint64_t block) {
  constexpr std::uint64_t low_half = 0xffffffffu;
  std::uint64_t a = block & low_half, b = block >> 32, c = stream & low_half, d = stream >> 32;
  std::uint64_t key_a = seed & low_half, key_b = seed >> 32;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t of_a = 0xD2511F53u * a, of_c = 0xCD9E8D57u * c;
    a = (of_c >> 32) ^ b ^ key_a;
    b = of_c & low_half;
    c = (of_a >> 32) ^ d ^ key_b;
    d = of_a & low_half;
    key_a = (key_a + 0x9E3779B9u) & low_half;
    key_b = (key_b + 0xBB67AE85u) & low_half;
  }
  return {static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(c),
          static_cast<std::uint32_t>(d)};
}

// Word pair 0 or 1 of a block, as 64 bits.
inline std::uint64_t philox_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t block, std::size_t pair) {
  const std::array<std::uint32_t, 4> words = philox_block(seed, stream, block);
  return words[2 * pair] | std::uint64_t{words[2 * pair + 1]} << 32;
}

// A number below `limit`, from 64 bits: their product's upper half.
inline std::uint64_t below(std::uint64_t limit, std::uint64_t bits) {
  __extension__ typedef unsigned __int128 Wide;
  return static_cast<std::uint64_t>(Wide(bits) * limit >> 64);
}

// Element `index` of what compute::op::RandomIntegers draws from [0, range): two in a block, scaled by the upper half.
inline std::int64_t random_integer(std::uint64_t seed, std::uint64_t stream, std::int64_t index, std::int64_t range) {
  const auto place = static_cast<std::uint64_t>(index);
  return static_cast<std::int64_t>(below(static_cast<std::uint64_t>(range),
                                         philox_bits(seed, stream, place / 2, static_cast<std::size_t>(place % 2))));
}

}  // namespace assay::verification
