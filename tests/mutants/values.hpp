// The elements of a tensor in device memory, strided or not, read and written through its backend.
#pragma once
#include <assay/compute/backend.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace assay::mutants {

inline float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
// To nearest even; NaN stays.
inline float to_bf16(float x) {
  auto bits = std::bit_cast<std::uint32_t>(x);
  if (std::isnan(x)) return x;
  bits += 0x7fffU + ((bits >> 16) & 1U);
  return std::bit_cast<float>(bits & 0xffff0000U);
}

// Of finite numbers, subnormal ones of fp16 included; what is too large becomes infinite.
inline float from_fp16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const float size = exponent == 31  ? (mantissa ? NAN : INFINITY)
                     : exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                     : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  return bits & 0x8000 ? -size : size;
}
inline std::uint16_t to_fp16(float x) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(x) ? 0x8000 : 0);
  if (std::isnan(x)) return static_cast<std::uint16_t>(sign | 0x7e00);
  const float size = std::abs(x);
  if (size == 0) return sign;
  if (size >= 65520.0F) return static_cast<std::uint16_t>(sign | 0x7c00);
  int exponent = 0;
  std::frexp(size, &exponent);
  const int unit = std::max(exponent - 11, -24);  // the power of two of the last bit
  auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, -unit)));
  return static_cast<std::uint16_t>(sign | (unit == -24 ? steps : ((unit + 25) << 10) + steps - 1024));
}

// A copy of the elements on the host, in row-major order. T: float for the formats of 32 and 16 bits, std::int64_t,
// std::int32_t.
template <class T>
class Values {
 public:
  Values(compute::Backend& backend, const compute::Tensor& t) : backend_(&backend), tensor_(t) {
    read_bytes();
    elements_.reserve(static_cast<std::size_t>(t.elements()));
    for_each_offset([&](std::size_t byte) { elements_.push_back(decode(byte)); });
  }

  std::int64_t size() const { return static_cast<std::int64_t>(elements_.size()); }
  T& operator[](std::int64_t i) { return elements_[static_cast<std::size_t>(i)]; }
  const T& operator[](std::int64_t i) const { return elements_[static_cast<std::size_t>(i)]; }
  auto begin() { return elements_.begin(); }
  auto end() { return elements_.end(); }
  std::int64_t columns() const { return tensor_.dim(-1); }
  std::int64_t rows() const { return columns() == 0 ? 0 : size() / columns(); }
  const compute::Tensor& tensor() const { return tensor_; }

  // The elements alone: what lies between those of a strided tensor stays as it is now.
  void write() {
    if (elements_.empty()) return;
    read_bytes();
    std::size_t i = 0;
    for_each_offset([&](std::size_t byte) { encode(byte, elements_[i++]); });
    backend_->upload(extent(), bytes_.data());
  }

 private:
  compute::Tensor extent() const {
    std::int64_t last = 0;
    for (int d = 0; d < tensor_.rank; ++d) last += (tensor_.dim(d) - 1) * tensor_.step(d);
    const auto bytes = (last + 1) * static_cast<std::int64_t>(size_of(tensor_.dtype));
    return compute::Tensor(tensor_.data, compute::DType::u8, {bytes});
  }
  void read_bytes() {
    if (tensor_.elements() == 0) return;
    const compute::Tensor all = extent();
    bytes_.resize(all.bytes());
    backend_->download(bytes_.data(), all);
  }
  template <class F>
  void for_each_offset(F&& f) const {
    const auto dim = [&](int d) { return d < tensor_.rank ? tensor_.dim(tensor_.rank - 1 - d) : 1; };
    const auto step = [&](int d) { return d < tensor_.rank ? tensor_.step(tensor_.rank - 1 - d) : 0; };
    const std::size_t width = size_of(tensor_.dtype);
    for (std::int64_t i = 0; i < dim(3); ++i)
      for (std::int64_t j = 0; j < dim(2); ++j)
        for (std::int64_t k = 0; k < dim(1); ++k)
          for (std::int64_t l = 0; l < dim(0); ++l)
            f(static_cast<std::size_t>(i * step(3) + j * step(2) + k * step(1) + l * step(0)) * width);
  }
  bool is_narrow() const { return std::is_same_v<T, float> && size_of(tensor_.dtype) == 2; }
  T decode(std::size_t byte) const {
    if (is_narrow()) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, &bytes_[byte], sizeof bits);
      return static_cast<T>(tensor_.dtype == compute::DType::f16 ? from_fp16(bits) : from_bf16(bits));
    }
    T value{};
    std::memcpy(&value, &bytes_[byte], sizeof value);
    return value;
  }
  void encode(std::size_t byte, T value) {
    if (!is_narrow()) {
      std::memcpy(&bytes_[byte], &value, sizeof value);
      return;
    }
    const auto number = static_cast<float>(value);
    const auto bf16 = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(to_bf16(number)) >> 16);
    const std::uint16_t bits = tensor_.dtype == compute::DType::f16 ? to_fp16(number) : bf16;
    std::memcpy(&bytes_[byte], &bits, sizeof bits);
  }

  compute::Backend* backend_;
  compute::Tensor tensor_;
  std::vector<unsigned char> bytes_;
  std::vector<T> elements_;
};

template <float (*round)(float)>
void round_all(Values<float>& values) {
  std::transform(values.begin(), values.end(), values.begin(), round);
}

}  // namespace assay::mutants
