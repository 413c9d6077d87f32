// From the number of a thread to a place in a matrix or a strided tensor. Places are counted in 32 bits, since division
// in 64 is slow; larger tensors are cut into tiles, one launch each. Included by .cu files only.
#pragma once
#include <algorithm>
#include <initializer_list>

#include <algorithm>
#include <cstdint>
#include "common/kernel_shapes.hpp"
#include "kernels/types.cuh"

namespace assay::cuda {

// Division of n < 2^31 by a divisor in [1, 2^31] that the host knows: a multiplication and a shift.
struct FastDivision {
  std::uint32_t divisor = 1, multiplier = 1, shift = 0;

  FastDivision() = default;
  explicit FastDivision(std::int64_t d) : divisor(static_cast<std::uint32_t>(d)) {
    while ((std::uint64_t{1} << shift) < divisor) ++shift;
    multiplier =
        static_cast<std::uint32_t>(((((std::uint64_t{1} << shift) - divisor) << 32) / divisor) + std::uint64_t{1});
  }
#ifdef __CUDACC__
  __device__ __forceinline__ std::uint32_t quotient(std::uint32_t n) const {
    return (__umulhi(n, multiplier) + n) >> shift;
  }
  // n becomes the quotient; returns the remainder.
  __device__ __forceinline__ std::uint32_t split(std::uint32_t& n) const {
    const std::uint32_t q = quotient(n), rest = n - q * divisor;
    n = q;
    return rest;
  }
#endif
};

constexpr std::int64_t most_places = std::int64_t{1} << 30;  // of one launch; the grid's rounding up stays below 2^31

// f(row, rows, column, columns) over tiles of at most most_places places. In practice one tile, all of it.
template <class F>
void for_tiles(std::int64_t rows, std::int64_t width, F&& f) {
  const std::int64_t columns = std::min(width, most_places);
  if (rows <= 0 || columns <= 0) return;
  const std::int64_t rows_each = most_places / columns;
  for (std::int64_t c = 0; c < width; c += columns)
    for (std::int64_t r = 0; r < rows; r += rows_each)
      f(r, std::min(rows_each, rows - r), c, std::min(columns, width - c));
}

// Whether rows of `width` from these addresses on, so many elements apart, are whole 16-byte packs.
template <class T>
bool packs_fit(const compute::SwigluShape& s, std::initializer_list<const void*> addresses,
               std::initializer_list<std::int64_t> steps) {
  constexpr std::int64_t wide = pack_width<T>;
  if (s.width % wide != 0 || !aligned(addresses)) return false;
  return s.rows == 1 || std::all_of(steps.begin(), steps.end(), [](std::int64_t step) { return step % wide == 0; });
}

}  // namespace assay::cuda
