// Tensors as views: where the numbers lie and how to walk them. A Tensor owns nothing.
#pragma once
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace assay::compute {

enum class DType : std::int32_t { f32 = 0, bf16 = 1, f16 = 2, i64 = 3, i32 = 4, u8 = 5, f8_e4m3 = 6, f8_e5m2 = 7 };

constexpr std::size_t size_of(DType t) {
  switch (t) {
    case DType::f32: return 4;
    case DType::bf16: return 2;
    case DType::f16: return 2;
    case DType::i64: return 8;
    case DType::i32: return 4;
    case DType::u8:
    case DType::f8_e4m3:
    case DType::f8_e5m2: return 1;
  }
  return 0;
}
constexpr const char* name_of(DType t) {
  switch (t) {
    case DType::f32: return "fp32";
    case DType::bf16: return "bf16";
    case DType::f16: return "fp16";
    case DType::i64: return "int64";
    case DType::i32: return "int32";
    case DType::u8: return "uint8";
    case DType::f8_e4m3: return "fp8_e4m3";
    case DType::f8_e5m2: return "fp8_e5m2";
  }
  return "?";
}

// A product of dimensions that is more than 64 bits hold wraps here; what takes memory for one asks checked_size.hpp.
constexpr std::int64_t wrapping_product(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

// Up to four dimensions, row-major by default; strides count elements. `data` is an address on the device: only a
// backend may read through it.
struct Tensor {
  static constexpr int max_rank = 4;
  using Dims = std::array<std::int64_t, max_rank>;

  void* data = nullptr;
  DType dtype = DType::f32;
  std::int32_t rank = 0;
  Dims shape{};
  Dims stride{};

  constexpr Tensor() = default;
  constexpr Tensor(void* address, DType type, std::initializer_list<std::int64_t> dims) : data(address), dtype(type) {
    assert(dims.size() <= max_rank);
    for (const std::int64_t d : dims) shape[static_cast<std::size_t>(rank++)] = d;
    std::int64_t step = 1;
    for (int i = rank - 1; i >= 0; --i) {
      stride[static_cast<std::size_t>(i)] = step;
      step = wrapping_product(step, shape[static_cast<std::size_t>(i)]);
    }
  }

  constexpr explicit operator bool() const { return data != nullptr; }
  constexpr std::int64_t dim(int i) const { return shape[static_cast<std::size_t>(i < 0 ? i + rank : i)]; }
  constexpr std::int64_t step(int i) const { return stride[static_cast<std::size_t>(i < 0 ? i + rank : i)]; }
  constexpr std::int64_t elements() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n = wrapping_product(n, shape[static_cast<std::size_t>(i)]);
    return n;
  }
  constexpr std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype); }
  // From its first byte to behind its last one, gaps included.
  constexpr std::size_t extent_bytes() const {
    if (elements() == 0) return 0;
    std::int64_t last = 0;
    for (int i = 0; i < rank; ++i) last += (dim(i) - 1) * step(i);
    return (static_cast<std::size_t>(last) + 1) * size_of(dtype);
  }
  constexpr bool contiguous() const {
    std::int64_t expected = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (dim(i) != 1 && step(i) != expected) return false;
      expected *= dim(i);
    }
    return true;
  }

  // The same elements under another shape. Contiguous tensors only.
  constexpr Tensor view(std::initializer_list<std::int64_t> dims) const {
    assert(contiguous());
    Tensor t(data, dtype, dims);
    assert(t.elements() == elements());
    return t;
  }
  constexpr Tensor flat() const { return view({elements()}); }
  // `count` entries of dimension `d` from `first` on.
  constexpr Tensor slice(int d, std::int64_t first, std::int64_t count) const {
    assert(first >= 0 && first + count <= dim(d));
    Tensor t = *this;
    t.data = static_cast<char*>(data) + static_cast<std::size_t>(first * step(d)) * size_of(dtype);
    t.shape[static_cast<std::size_t>(d)] = count;
    return t;
  }
  constexpr Tensor transposed(int a, int b) const {
    Tensor t = *this;
    t.shape[static_cast<std::size_t>(a)] = dim(b);
    t.shape[static_cast<std::size_t>(b)] = dim(a);
    t.stride[static_cast<std::size_t>(a)] = step(b);
    t.stride[static_cast<std::size_t>(b)] = step(a);
    return t;
  }
};

// Places of no memory, by which the plan of a step knows tensors that have none yet: no address of a process is so
// large (those of user space have 47 bits, or 56 with five levels of page tables).
inline constexpr int unbound_bit = 60;
inline bool is_unbound(const Tensor& t) { return reinterpret_cast<std::uintptr_t>(t.data) >> unbound_bit != 0; }

}  // namespace assay::compute
