// Numbers without a pattern, for what a verification makes up: the finaliser of SplitMix64.
#pragma once
#include <cstdint>

namespace assay::verification {

inline std::uint64_t scrambled(std::uint64_t x) {
  x = (x + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  return (x ^ x >> 27) * 0x94d049bb133111ebu >> 32;
}

}  // namespace assay::verification
