// Sums run in double: a sum of a hundred million gradients in fp32 would lose the small ones. That costs nothing, since
// memory is slower. Maximum and non-finite tests look at the bits, which orders NaN above all numbers.
#include "reduction.hpp"

#include "parallel.hpp"
#include "vec.hpp"

namespace assay::cpu::ASSAY_ISA {

constexpr int wide_lanes = lanes / 2;
typedef double WideVec __attribute__((vector_size(8 * wide_lanes)));
typedef float NarrowVec __attribute__((vector_size(4 * wide_lanes)));
typedef uint32_t NarrowBits __attribute__((vector_size(4 * wide_lanes)));
typedef uint16_t NarrowHalf __attribute__((vector_size(2 * wide_lanes)));
typedef uint16_t NarrowHalfAnywhere __attribute__((vector_size(2 * wide_lanes), aligned(2), may_alias));
typedef float NarrowAnywhere __attribute__((vector_size(4 * wide_lanes), aligned(4), may_alias));

ASSAY_INLINE WideVec load_wide(const float* p) {
  const NarrowVec narrow = *reinterpret_cast<const NarrowAnywhere*>(p);
  return __builtin_convertvector(narrow, WideVec);
}
ASSAY_INLINE WideVec load_wide(const bf16* p) {
  const NarrowHalf half = *reinterpret_cast<const NarrowHalfAnywhere*>(p);
  return __builtin_convertvector(reinterpret_cast<NarrowVec>(__builtin_convertvector(half, NarrowBits) << 16), WideVec);
}

// partial(x, count) -> double of one block. Blocks begin at multiples of 64 elements.
template <class T, class Partial>
ASSAY_INLINE void each_block(const ReductionArgs& a, Partial partial) {
  const int64_t size = (a.count / reduction_blocks / 64 + 1) * 64;
  parallel_rows(reduction_blocks, size * int64_t(sizeof(T)), [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      const int64_t begin = block * size;
      const int64_t left = a.count - begin;
      a.partials[block] = left <= 0 ? 0.0 : partial(static_cast<const T*>(a.x) + begin, left < size ? left : size);
    }
  });
}

template <class T, bool squared>
static double sum_block(const T* x, int64_t count) {
  WideVec s0{}, s1{}, s2{}, s3{};
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const WideVec a = load_wide(x + i), b = load_wide(x + i + wide_lanes);
    const WideVec c = load_wide(x + i + 2 * wide_lanes), d = load_wide(x + i + 3 * wide_lanes);
    s0 += squared ? a * a : a;
    s1 += squared ? b * b : b;
    s2 += squared ? c * c : c;
    s3 += squared ? d * d : d;
  }
  const WideVec all = (s0 + s1) + (s2 + s3);
  double sum = 0.0;
  for (int l = 0; l < wide_lanes; ++l) sum += all[l];
  for (; i < count; ++i) {
    const double value = double(load(x + i));
    sum += squared ? value * value : value;
  }
  return sum;
}

template <class T, bool squared>
static void sum_typed(const ReductionArgs& a) {
  each_block<T>(a, sum_block<T, squared>);
  double sum = 0.0;
  for (int64_t block = 0; block < reduction_blocks; ++block) sum += a.partials[block];
  *a.out = float(squared ? sum : sum * double(a.factor));
}

template <class T>
static void max_abs_typed(const ReductionArgs& a) {
  each_block<T>(a, [](const T* x, int64_t count) {
    BitVec high{};
    each(count, [&](int64_t i, auto span) {
      const BitVec magnitude = reinterpret_cast<BitVec>(load_span(x + i, span)) & 0x7fffffffu;
      high = magnitude > high ? magnitude : high;
    });
    uint32_t top = 0;
    for (int l = 0; l < lanes; ++l) top = high[l] > top ? high[l] : top;
    return double(top);
  });
  double top = 0.0;
  for (int64_t block = 0; block < reduction_blocks; ++block) top = a.partials[block] > top ? a.partials[block] : top;
  *a.out = bits_to_float(uint32_t(top));
}

template <class T>
static void count_nonfinite_typed(const ReductionArgs& a) {
  each_block<T>(a, [](const T* x, int64_t count) {
    // 32-bit lanes count at most 2^31 vectors of a block; a block of that size would need 8 TiB of memory in all.
    IntVec found{};
    each(count, [&](int64_t i, auto span) {
      const BitVec exponent = reinterpret_cast<BitVec>(load_span(x + i, span)) & 0x7f800000u;
      found -= exponent == 0x7f800000u;
    });
    double total = 0.0;
    for (int l = 0; l < lanes; ++l) total += double(found[l]);
    return total;
  });
  double total = 0.0;
  for (int64_t block = 0; block < reduction_blocks; ++block) total += a.partials[block];
  *a.out = float(total);
}

static void sum(const ReductionArgs& a) { a.bf16 ? sum_typed<bf16, false>(a) : sum_typed<float, false>(a); }
static void sum_of_squares(const ReductionArgs& a) { a.bf16 ? sum_typed<bf16, true>(a) : sum_typed<float, true>(a); }
static void max_abs(const ReductionArgs& a) { a.bf16 ? max_abs_typed<bf16>(a) : max_abs_typed<float>(a); }
static void count_nonfinite(const ReductionArgs& a) {
  a.bf16 ? count_nonfinite_typed<bf16>(a) : count_nonfinite_typed<float>(a);
}

const ReductionKernels reduction_kernels = {sum, sum_of_squares, max_abs, count_nonfinite};

}  // namespace assay::cpu::ASSAY_ISA
