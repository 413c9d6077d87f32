// What a broken collective leaves in tensors of host memory: their bytes, parts of them, and changed numbers.
#pragma once
#include <assay/compute/tensor.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "values.hpp"

namespace assay::mutants {

using compute::DType;
using compute::Tensor;
using Bytes = std::vector<unsigned char>;

inline Bytes bytes_of(const Tensor& t) {
  const auto* const data = static_cast<const unsigned char*>(t.data);
  return {data, data + t.bytes()};
}
inline void put(const Bytes& bytes, const Tensor& t) {
  std::copy(bytes.begin(), bytes.end(), static_cast<unsigned char*>(t.data));
}
inline Tensor last_quarter(const Tensor& t) {
  const std::int64_t n = t.elements();
  return t.flat().slice(0, n - n / 4, n / 4);
}
inline Tensor last_element(const Tensor& t) { return t.flat().slice(0, t.elements() - 1, 1); }

template <class F>
void edit_numbers(const Tensor& t, F&& change) {
  const std::int64_t n = t.elements();
  if (t.dtype == DType::f32) {
    auto* const x = static_cast<float*>(t.data);
    for (std::int64_t i = 0; i < n; ++i) x[i] = change(x[i]);
  } else if (t.dtype == DType::bf16) {
    auto* const x = static_cast<std::uint16_t*>(t.data);
    for (std::int64_t i = 0; i < n; ++i)
      x[i] = static_cast<std::uint16_t>(
          std::bit_cast<std::uint32_t>(to_bf16(change(std::bit_cast<float>(std::uint32_t{x[i]} << 16)))) >> 16);
  }
}
inline void twice_as_large(const Tensor& t) {
  edit_numbers(t, [](float x) { return 2 * x; });
}
// A 0 would not show that it has doubled.
inline bool has_number(const Tensor& t) {
  bool found = false;
  edit_numbers(t, [&](float x) { return found = found || (x != 0 && std::isfinite(x)), x; });
  return found;
}

}  // namespace assay::mutants
