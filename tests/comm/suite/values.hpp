// Numbers of the suite: small integers that every dtype holds exactly, so that sums are exact in any order, and random
// ones.
#pragma once
#include <assay/comm/communicator.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace assay::test {

// A rank's numbers are in [-4, 4], different for each rank, element and case. Of one case those of all ranks depend on
// the element's phase alone, which 7 goes on by from element to element, and 8 where a block of them begins.
inline constexpr std::size_t phases = 9, block_elements = 1000;
inline std::size_t phase_of(std::uint64_t salt, std::size_t i) {
  return (i * 7 + salt * 3 + i / block_elements) % phases;
}
inline int small_integer(std::size_t phase, std::int32_t rank) {
  return static_cast<int>((phase + static_cast<std::size_t>(rank) * 5) % phases) - 4;
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

// Appends value(0) to value(count - 1) as elements of `dtype`. The type is chosen once: a suite makes millions of them.
template <class F>
void append(std::vector<char>& bytes, compute::DType dtype, std::size_t count, F&& value) {
  const auto put = [&](auto as_element) {
    using Element = decltype(as_element(0.0F));
    const std::size_t begin = bytes.size();
    bytes.resize(begin + count * sizeof(Element));
    char* to = bytes.data() + begin;
    for (std::size_t i = 0; i < count; ++i, to += sizeof(Element)) {
      const Element element = as_element(static_cast<float>(value(i)));
      std::memcpy(to, &element, sizeof element);
    }
  };
  switch (dtype) {
    case compute::DType::f32: return put([](float x) { return x; });
    case compute::DType::bf16: return put(bf16_bits);
    case compute::DType::f16: return put(fp16_bits);
    case compute::DType::i64: return put([](float x) { return static_cast<std::int64_t>(x); });
    case compute::DType::i32: return put([](float x) { return static_cast<std::int32_t>(x); });
    case compute::DType::u8:
    case compute::DType::f8_e4m3:  // bits that travel
    case compute::DType::f8_e5m2: return put([](float x) { return static_cast<std::uint8_t>(static_cast<int>(x)); });
  }
}

// Appends value(phase) of the elements from `begin` on. Within a block they repeat: a suite has millions of them, which
// are copied and not computed.
template <class F>
void append_by_phase(std::vector<char>& bytes, compute::DType dtype, std::uint64_t salt, std::size_t begin,
                     std::size_t count, F&& value) {
  std::vector<char> wave;  // begins with phase 0
  append(wave, dtype, std::min(count, block_elements) + phases, [&](std::size_t i) { return value(i * 7 % phases); });
  const std::size_t size = compute::size_of(dtype);
  bytes.reserve(bytes.size() + count * size);
  for (std::size_t i = begin, end = begin + count; i < end;) {
    const std::size_t n = std::min(end - i, block_elements - i % block_elements);
    const std::size_t first = phase_of(salt, i) * 4 % phases;  // 4 * 7 is 1 more than 3 * phases
    bytes.insert(bytes.end(), wave.data() + first * size, wave.data() + (first + n) * size);
    i += n;
  }
}

}  // namespace assay::test
