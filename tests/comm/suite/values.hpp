// Numbers of the suite: small integers that every dtype holds exactly, so that sums are exact in any order, and random
// ones.
#pragma once
#include <assay/comm/communicator.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace assay::test {

// In [-4, 4], different for each rank, element and case.
inline int small_integer(std::uint64_t salt, std::int32_t rank, std::size_t i) {
  return static_cast<int>((i * 7 + static_cast<std::size_t>(rank) * 5 + salt * 3 + i / 1000) % 9) - 4;
}

// In [-1, 1).
inline float random_value(std::uint64_t salt, std::int32_t rank, std::size_t i) {
  std::uint64_t z = (salt << 40) + (static_cast<std::uint64_t>(rank) << 34) + i + 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  z ^= z >> 31;
  return static_cast<float>(static_cast<std::int32_t>(z >> 40)) / 8388608.0F - 1.0F;
}

inline std::uint16_t bf16_bits(float x) {  // nearest, ties to even; no NaN
  const auto u = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
inline float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
// Of numbers that fp16 holds exactly, without its subnormals.
inline std::uint16_t fp16_bits(float x) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  if (x == 0.0F) return static_cast<std::uint16_t>((u >> 16) & 0x8000u);
  return static_cast<std::uint16_t>(((u >> 16) & 0x8000u) | ((((u >> 23) & 0xffu) - 112u) << 10) |
                                    ((u >> 13) & 0x3ffu));
}

// Appends `x` as one element of `dtype`.
inline void append(std::vector<char>& bytes, compute::DType dtype, float x) {
  const auto put = [&](const auto& value) {
    const auto* p = reinterpret_cast<const char*>(&value);
    bytes.insert(bytes.end(), p, p + sizeof value);
  };
  switch (dtype) {
    case compute::DType::f32: return put(x);
    case compute::DType::bf16: return put(bf16_bits(x));
    case compute::DType::f16: return put(fp16_bits(x));
    case compute::DType::i64: return put(static_cast<std::int64_t>(x));
    case compute::DType::i32: return put(static_cast<std::int32_t>(x));
    case compute::DType::u8:
    case compute::DType::f8_e4m3:  // bits that travel
    case compute::DType::f8_e5m2: return put(static_cast<std::uint8_t>(static_cast<int>(x)));
  }
}

}  // namespace assay::test
