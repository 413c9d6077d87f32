// What a word adds to the hash of a tensor, on the host and on devices alike.
#pragma once
#include <cstdint>

namespace assay::compute {

// SplitMix64's mixing (Steele, Lea, Flood 2014) of the word and its place.
constexpr std::uint64_t hash_of_word(std::uint64_t word, std::uint64_t place) {
  std::uint64_t x = word + (place + 1) * 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace assay::compute
