// What every kernel file needs: conversions between the floating-point types, packs of adjacent elements that move in
// 16-byte accesses, sums over a warp and a block, and the way from a DType to a type. Included by .cu files only.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <assay/compute/tensor.hpp>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "cuda_error.hpp"

namespace assay::cuda {

using bf16 = __nv_bfloat16;
using f16 = __half;

// ---- conversions: to fp32 exactly, from fp32 to nearest, ties to even ----------------------------------------------

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(bf16 x) { return __bfloat162float(x); }
__device__ __forceinline__ float to_float(f16 x) { return __half2float(x); }

template <class T>
__device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ bf16 from_float<bf16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ __forceinline__ f16 from_float<f16>(float x) {
  return __float2half_rn(x);
}

// ---- packs ---------------------------------------------------------------------------------------------------------

constexpr int pack_bytes = 16;  // the widest access of a thread

// Elements of T in a 16-byte pack.
template <class T>
constexpr int pack_width = pack_bytes / static_cast<int>(sizeof(T));

// N adjacent elements. A pack wider than 16 bytes moves in several accesses.
template <class T, int N>
struct alignas(sizeof(T) * N < pack_bytes ? sizeof(T) * N : pack_bytes) Pack {
  T v[N];
};

// The integers of `bytes` bytes that hardware moves in one access.
template <int bytes>
struct Word;
template <>
struct Word<1> {
  using type = unsigned char;
};
template <>
struct Word<2> {
  using type = unsigned short;
};
template <>
struct Word<4> {
  using type = unsigned int;
};
template <>
struct Word<8> {
  using type = uint2;
};
template <>
struct Word<16> {
  using type = uint4;
};

template <class T, int N>
struct PackWords {
  static constexpr int bytes = sizeof(T) * N;
  static constexpr int word_bytes = bytes < pack_bytes ? bytes : pack_bytes;
  static constexpr int words = bytes / word_bytes;
  static_assert(words * word_bytes == bytes, "a pack is a whole number of accesses");
  using word = typename Word<word_bytes>::type;
};

// How an access treats the caches: `plain` is for data that something reads again soon, and the only choice where the
// kernel itself writes what it reads; `constant` for what no thread of the kernel writes; `streaming` for data that
// nothing reads again before it would have left the cache anyway.
enum class Cache { plain, constant, streaming };

// `from` must be aligned to the pack, or to 16 bytes if that is wider.
template <int N, Cache cache = Cache::plain, class T>
__device__ __forceinline__ Pack<T, N> load_pack(const T* from) {
  using Words = PackWords<T, N>;
  const auto* const address = reinterpret_cast<const typename Words::word*>(from);
  union {
    typename Words::word words[Words::words];
    Pack<T, N> pack;
  } both = {};
#pragma unroll
  for (int i = 0; i < Words::words; ++i) {
    if constexpr (cache == Cache::constant)
      both.words[i] = __ldg(address + i);
    else if constexpr (cache == Cache::streaming)
      both.words[i] = __ldcs(address + i);
    else
      both.words[i] = address[i];
  }
  return both.pack;
}

template <Cache cache = Cache::plain, class T, int N>
__device__ __forceinline__ void store_pack(T* to, const Pack<T, N>& pack) {
  using Words = PackWords<T, N>;
  auto* const address = reinterpret_cast<typename Words::word*>(to);
  union Both {
    Pack<T, N> pack;
    typename Words::word words[Words::words];
    __device__ __forceinline__ explicit Both(const Pack<T, N>& p) : pack(p) {}
  } both(pack);
#pragma unroll
  for (int i = 0; i < Words::words; ++i) {
    if constexpr (cache == Cache::streaming)
      __stcs(address + i, both.words[i]);
    else
      address[i] = both.words[i];
  }
}

template <class T, int N>
__device__ __forceinline__ void unpack(const Pack<T, N>& pack, float (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) x[i] = to_float(pack.v[i]);
}

template <class T, int N>
__device__ __forceinline__ Pack<T, N> pack_from(const float (&x)[N]) {
  Pack<T, N> pack;
  if constexpr (N % 2 == 0 && sizeof(T) == 2) {  // one instruction rounds two numbers to 16 bits
    Pack<T, 2> pair;
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      if constexpr (std::is_same_v<T, bf16>) {
        const __nv_bfloat162 two = __floats2bfloat162_rn(x[i], x[i + 1]);
        pair = {two.x, two.y};
      } else {
        const __half2 two = __floats2half2_rn(x[i], x[i + 1]);
        pair = {two.x, two.y};
      }
      pack.v[i] = pair.v[0];
      pack.v[i + 1] = pair.v[1];
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) pack.v[i] = from_float<T>(x[i]);
  }
  return pack;
}

// ---- sums ----------------------------------------------------------------------------------------------------------

constexpr int warp_size = 32;

// The sum over the 32 lanes, in every lane and in the same order each time. All lanes must call it.
__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int offset = warp_size / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffffu, x, offset);
  return x;
}

__device__ __forceinline__ float warp_max(float x) {  // NaN is left out, as by fmaxf
#pragma unroll
  for (int offset = warp_size / 2; offset > 0; offset /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, offset));
  return x;
}

// The sum over a block of `threads` threads, a multiple of 32, in every thread. `shared`: threads / 32 floats. All
// threads must call it; it may be called again with the same `shared` at once.
template <int threads>
__device__ __forceinline__ float block_sum(float x, float* shared) {
  static_assert(threads % warp_size == 0 && threads <= 1024);
  constexpr int warps = threads / warp_size;
  x = warp_sum(x);
  if constexpr (warps == 1) return x;
  if (threadIdx.x % warp_size == 0) shared[threadIdx.x / warp_size] = x;
  __syncthreads();
  float total = 0.0F;
#pragma unroll
  for (int i = 0; i < warps; ++i) total += shared[i];
  __syncthreads();  // all have read before the next call writes
  return total;
}

// ---- host side -----------------------------------------------------------------------------------------------------

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Blocks that cover `items` at `per_block` each, at most `most`: at least 1, so that a launch is always valid (launch
// nothing at all for 0 items).
inline unsigned grid_size(std::int64_t items, std::int64_t per_block, std::int64_t most = INT32_MAX) {
  return static_cast<unsigned>(std::clamp<std::int64_t>(ceil_div(items, per_block), 1, most));
}

// All of them multiples of `bytes`; NULL is.
inline bool aligned(std::initializer_list<const void*> addresses, std::size_t bytes = pack_bytes) {
  return std::all_of(addresses.begin(), addresses.end(),
                     [=](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % bytes == 0; });
}

template <class T>
struct TypeTag {
  using type = T;
};

// f(TypeTag<T>()) with T the type of a floating-point DType; callers have checked that it is one:
//   dispatch_float(x.dtype, [&](auto tag) { using T = typename decltype(tag)::type; ... });
template <class F>
void dispatch_float(compute::DType type, F&& f) {
  switch (type) {
    case compute::DType::f32: return std::forward<F>(f)(TypeTag<float>());
    case compute::DType::bf16: return std::forward<F>(f)(TypeTag<bf16>());
    case compute::DType::f16: return std::forward<F>(f)(TypeTag<f16>());
    default: misused("a kernel for floating-point types was asked for another type");
  }
}

}  // namespace assay::cuda
