#include "reduction.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

// The vectoriser writes these loops well; each is built for two instruction sets and chosen when the library loads.
// They run at the speed of memory, which wider vectors do not change. (clang does not inline into what it clones.)
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define ASSAY_CLONES __attribute__((target_clones("avx2", "default"), flatten))
#else
#define ASSAY_CLONES
#endif

namespace assay::comm::gloo_backend {
namespace {

struct Bf16 {
  std::uint16_t bits;
};

inline float load(const float* p) { return *p; }
inline float load(const Bf16* p) { return std::bit_cast<float>(static_cast<std::uint32_t>(p->bits) << 16); }
inline void store(float* p, float x) { *p = x; }
// Round to nearest, ties to even; NaN stays NaN.
inline void store(Bf16* p, float x) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = u + 0x7fffu + ((u >> 16) & 1u);
  p->bits = static_cast<std::uint16_t>((x == x ? rounded : (u | 0x400000u)) >> 16);
}

struct Sum {
  static float combine(float a, float b) { return a + b; }
};
struct Max {
  static float combine(float a, float b) { return ((b > a) | (b != b)) ? b : a; }
};

// Sums of this many elements stay in the first-level cache between the sources.
constexpr std::size_t block_elements = 2048;

template <class T, class Op>
inline void reduce_two(T* target, const T* a, const T* b, std::size_t n, float divisor) {
  // The iterations are independent also when the target is a source.
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) store(target + i, Op::combine(load(a + i), load(b + i)) / divisor);
}

template <class T, class Op>
inline void reduce_block(T* target, const void* const* sources, std::size_t count, std::size_t from, std::size_t n,
                         float divisor) {
  float sum[block_elements];
  const T* a = static_cast<const T*>(sources[0]) + from;
  const T* b = static_cast<const T*>(sources[1]) + from;
  for (std::size_t i = 0; i < n; ++i) sum[i] = Op::combine(load(a + i), load(b + i));
  for (std::size_t k = 2; k + 1 < count; ++k) {
    const T* x = static_cast<const T*>(sources[k]) + from;
    for (std::size_t i = 0; i < n; ++i) sum[i] = Op::combine(sum[i], load(x + i));
  }
  const T* last = static_cast<const T*>(sources[count - 1]) + from;
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) store(target + from + i, Op::combine(sum[i], load(last + i)) / divisor);
}

template <class T, class Op>
inline void reduce_all(T* target, const void* const* sources, std::size_t count, std::size_t n, float divisor) {
  if (count == 2) {
    reduce_two<T, Op>(target, static_cast<const T*>(sources[0]), static_cast<const T*>(sources[1]), n, divisor);
    return;
  }
  for (std::size_t from = 0; from < n; from += block_elements)
    reduce_block<T, Op>(target, sources, count, from, n - from < block_elements ? n - from : block_elements, divisor);
}

ASSAY_CLONES void sum_f32(float* t, const void* const* s, std::size_t count, std::size_t n, float divisor) {
  reduce_all<float, Sum>(t, s, count, n, divisor);
}
ASSAY_CLONES void max_f32(float* t, const void* const* s, std::size_t count, std::size_t n) {
  reduce_all<float, Max>(t, s, count, n, 1.0F);
}
ASSAY_CLONES void sum_bf16(Bf16* t, const void* const* s, std::size_t count, std::size_t n, float divisor) {
  reduce_all<Bf16, Sum>(t, s, count, n, divisor);
}
ASSAY_CLONES void max_bf16(Bf16* t, const void* const* s, std::size_t count, std::size_t n) {
  reduce_all<Bf16, Max>(t, s, count, n, 1.0F);
}

}  // namespace

void require_reducible(compute::DType dtype, Reduction reduction) {
  if (dtype != compute::DType::f32 && dtype != compute::DType::bf16)
    throw Error(ASSAY_UNSUPPORTED,
                std::string("gloo: no reductions of ") + name_of(dtype) + " on the CPU; use fp32 or bf16");
  if (reduction != Reduction::sum && reduction != Reduction::average && reduction != Reduction::max)
    throw Error(ASSAY_INVALID_ARGUMENT,
                "gloo: there is no reduction number " + std::to_string(static_cast<std::int32_t>(reduction)));
}

void reduce(void* target, const void* const* sources, std::size_t count, std::size_t n, compute::DType dtype,
            Reduction reduction) {
  if (count == 1) {
    if (target != sources[0] && n > 0) std::memcpy(target, sources[0], n * size_of(dtype));
    return;
  }
  const float divisor = reduction == Reduction::average ? static_cast<float>(count) : 1.0F;
  if (dtype == compute::DType::f32) {
    auto* t = static_cast<float*>(target);
    reduction == Reduction::max ? max_f32(t, sources, count, n) : sum_f32(t, sources, count, n, divisor);
  } else {
    auto* t = static_cast<Bf16*>(target);
    reduction == Reduction::max ? max_bf16(t, sources, count, n) : sum_bf16(t, sources, count, n, divisor);
  }
}

}  // namespace assay::comm::gloo_backend
