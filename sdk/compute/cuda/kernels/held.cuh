// Packs that stay in registers, kept as the words that memory gave, two 16-bit numbers in each: the compiler gives
// every 16-bit element of a struct a separate register. Included by .cu files only.
#pragma once
#include <cstring>

#include "kernels/types.cuh"

namespace assay::cuda {

template <class T, int N>
struct Held {
  static constexpr bool in_words = sizeof(T) * N % 4 == 0;
  static constexpr int count = in_words ? static_cast<int>(sizeof(T)) * N / 4 : N;
  std::conditional_t<in_words, std::uint32_t, T> word[count];
};

template <class To, class From>
__device__ __forceinline__ To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

// `from` must be aligned to the pack, or to 16 bytes if that is wider.
template <int N, Cache cache = Cache::plain, class T>
__device__ __forceinline__ Held<T, N> hold(const T* from) {
  Held<T, N> held;
  if constexpr (Held<T, N>::in_words) {
    const auto pack = load_pack<Held<T, N>::count, cache>(reinterpret_cast<const std::uint32_t*>(from));
#pragma unroll
    for (int i = 0; i < Held<T, N>::count; ++i) held.word[i] = pack.v[i];
  } else {
    const auto pack = load_pack<N, cache>(from);
#pragma unroll
    for (int i = 0; i < N; ++i) held.word[i] = pack.v[i];
  }
  return held;
}

template <Cache cache = Cache::plain, class T, int N>
__device__ __forceinline__ void store(T* to, const Held<T, N>& held) {
  using Word = std::remove_const_t<std::remove_reference_t<decltype(held.word[0])>>;
  Pack<Word, Held<T, N>::count> pack;
#pragma unroll
  for (int i = 0; i < Held<T, N>::count; ++i) pack.v[i] = held.word[i];
  store_pack<cache>(reinterpret_cast<Word*>(to), pack);
}

template <class T, int N>
__device__ __forceinline__ void unpack(const Held<T, N>& held, float (&x)[N]) {
  if constexpr (!Held<T, N>::in_words) {
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] = to_float(held.word[i]);
  } else if constexpr (std::is_same_v<T, float>) {
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] = __uint_as_float(held.word[i]);
  } else if constexpr (std::is_same_v<T, bf16>) {
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      x[i] = __uint_as_float(held.word[i / 2] << 16);
      x[i + 1] = __uint_as_float(held.word[i / 2] & 0xffff0000U);
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      const float2 two = __half22float2(bits_as<__half2>(held.word[i / 2]));
      x[i] = two.x;
      x[i + 1] = two.y;
    }
  }
}

template <class T, int N>
__device__ __forceinline__ Held<T, N> held_from(const float (&x)[N]) {
  Held<T, N> held;
  if constexpr (!Held<T, N>::in_words) {
#pragma unroll
    for (int i = 0; i < N; ++i) held.word[i] = from_float<T>(x[i]);
  } else if constexpr (std::is_same_v<T, float>) {
#pragma unroll
    for (int i = 0; i < N; ++i) held.word[i] = __float_as_uint(x[i]);
  } else if constexpr (std::is_same_v<T, bf16>) {
#pragma unroll
    for (int i = 0; i < N; i += 2) held.word[i / 2] = bits_as<std::uint32_t>(__floats2bfloat162_rn(x[i], x[i + 1]));
  } else {
#pragma unroll
    for (int i = 0; i < N; i += 2) held.word[i / 2] = bits_as<std::uint32_t>(__floats2half2_rn(x[i], x[i + 1]));
  }
  return held;
}

}  // namespace assay::cuda
