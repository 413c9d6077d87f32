// Rows as pairs of adjacent elements, first and second elements in separate vectors: what rotary position turns.
// Included by kernel files only.
#pragma once
#include "vec.hpp"

namespace assay::cpu::ASSAY_ISA {

struct Pairs {
  Vec even, odd;
};

// A bf16 in the upper half of each lane; the lower half is what rounding left.
ASSAY_INLINE BitVec bf16_bits(Vec x) {
  const BitVec u = reinterpret_cast<BitVec>(x);
  const BitVec rounded = u + 0x7fffu + ((u >> 16) & 1u);
  return (u & 0x7fffffffu) > 0x7f800000u ? (u | 0x400000u) : rounded;
}

typedef uint32_t Bf16Pairs __attribute__((vector_size(4 * lanes), aligned(2), may_alias));

// A bf16 pair is a 32-bit word, whose halves need no shuffling to become two floats.
ASSAY_INLINE Pairs load_pairs(const bf16* p, Whole) {
  const BitVec bits = *reinterpret_cast<const Bf16Pairs*>(p);
  return {reinterpret_cast<Vec>(bits << 16), reinterpret_cast<Vec>(bits & 0xffff0000u)};
}
ASSAY_INLINE void store_pairs(bf16* p, Pairs x, Whole) {
  *reinterpret_cast<Bf16Pairs*>(p) = bf16_bits(x.even) >> 16 | (bf16_bits(x.odd) & 0xffff0000u);
}

template <int... I>
ASSAY_INLINE Pairs apart(Vec low, Vec high, Lanes<I...>) {
  return {__builtin_shufflevector(low, high, (2 * I)...), __builtin_shufflevector(low, high, (2 * I + 1)...)};
}
template <int first, int... I>
ASSAY_INLINE Vec side_by_side(Pairs x, Lanes<I...>) {
  return __builtin_shufflevector(x.even, x.odd, (first + I / 2 + I % 2 * lanes)...);
}
ASSAY_INLINE Pairs load_pairs(const float* p, Whole) { return apart(load_vec(p), load_vec(p + lanes), AllLanes{}); }
ASSAY_INLINE void store_pairs(float* p, Pairs x, Whole) {
  store_vec(p, side_by_side<0>(x, AllLanes{}));
  store_vec(p + lanes, side_by_side<lanes / 2>(x, AllLanes{}));
}

// `span` counts pairs. The lanes past it hold 0.
template <class T>
ASSAY_INLINE Pairs load_pairs(const T* p, Part span) {
  alignas(sizeof(Vec)) float even[lanes] = {}, odd[lanes] = {};
  for (int i = 0; i < span.count; ++i) even[i] = load(p + 2 * i), odd[i] = load(p + 2 * i + 1);
  return {load_vec(even), load_vec(odd)};
}
template <class T>
ASSAY_INLINE void store_pairs(T* p, Pairs x, Part span) {
  alignas(sizeof(Vec)) float even[lanes], odd[lanes];
  store_vec(even, x.even), store_vec(odd, x.odd);
  for (int i = 0; i < span.count; ++i) store(p + 2 * i, even[i]), store(p + 2 * i + 1, odd[i]);
}

// Turned by the angles of these cosines and sines.
ASSAY_INLINE Pairs turned(Pairs x, Vec cosine, Vec sine) {
  return {x.even * cosine - x.odd * sine, x.even * sine + x.odd * cosine};
}

}  // namespace assay::cpu::ASSAY_ISA
