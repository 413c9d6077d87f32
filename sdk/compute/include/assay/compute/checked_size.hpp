// Sizes of memory that may be absurd: dimensions that a table of parameters allows are soon, multiplied, more than 64
// bits hold, and a product that has wrapped looks small.
#pragma once
#include <assay/plugin/error.hpp>

#include <assay/compute/tensor.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace assay::compute {

// An exbibyte, which no machine has. Up to here no sum of a few sizes wraps, and the places of no memory end
// (tensor.hpp).
inline constexpr std::size_t most_bytes = std::size_t{1} << unbound_bit;

// The bytes of a tensor; nothing where a dimension is negative or they are more than most_bytes.
inline std::optional<std::size_t> bytes_of(DType dtype, std::span<const std::int64_t> dims) {
  std::size_t bytes = size_of(dtype);
  for (const std::int64_t d : dims)
    if (d < 0 || __builtin_mul_overflow(bytes, static_cast<std::size_t>(d), &bytes)) return std::nullopt;
  return bytes <= most_bytes ? std::optional(bytes) : std::nullopt;
}

// The same, or throws Error(OUT_OF_MEMORY) that names the object: "the buffer 'logits'".
inline std::size_t checked_bytes(const std::string& what, DType dtype, std::span<const std::int64_t> dims) {
  if (const std::optional<std::size_t> bytes = bytes_of(dtype, dims)) return *bytes;
  std::string text;
  for (const std::int64_t d : dims) text += (text.empty() ? "" : " x ") + std::to_string(d);
  throw Error(ASSAY_OUT_OF_MEMORY,
              what + " of " + text + " elements in " + name_of(dtype) + " has more than 2^60 bytes; choose less");
}

// Of several together: their sum with `bytes` more, or throws as above.
inline std::size_t checked_sum(const std::string& what, std::size_t sum, std::size_t bytes) {
  if (sum > most_bytes || bytes > most_bytes - sum)
    throw Error(ASSAY_OUT_OF_MEMORY, what + " comes to more than 2^60 bytes; choose less");
  return sum + bytes;
}

}  // namespace assay::compute
