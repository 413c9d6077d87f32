// One source, four instruction sets. Every file in this folder is compiled for baseline x86-64 (or whatever the
// machine's baseline is), AVX2 and AVX-512. Files that write much bf16 are also compiled for AVX-512 with its own
// conversion to it. ASSAY_ISA names the namespace that all code of a file lives in; dispatch happens once, when the
// backend is made.
//
// Trap: an inline function of another namespace (anything of the standard library that is not a builtin) compiled here
// with AVX-512 may be the copy that the linker keeps for the whole library, and then fails on an older machine. So:
// kernels use plain loops over raw pointers, __builtin_ functions and the helpers in math.hpp, nothing of std::.
#pragma once

namespace assay::cpu {

// The sanitized build has no kernels for AVX2: they come from the same lines as baseline's, which it runs in their
// place.
#ifdef ASSAY_WITHOUT_AVX2_KERNELS
namespace baseline {}
namespace avx2 = baseline;
#define ASSAY_DECLARE_KERNELS_OF_AVX2(Type, name)
#else
#define ASSAY_DECLARE_KERNELS_OF_AVX2(Type, name) ASSAY_DECLARE_KERNELS_OF(avx2, Type, name)
#endif

enum class Isa { baseline, avx2, avx512, avx512_bf16 };

// The best that this machine runs; the environment variable ASSAY_CPU_ISA (a name of name_of) lowers it.
Isa machine_isa();
const char* name_of(Isa);

// `select(isa, baseline::x, avx2::x, avx512::x)`: avx512's for avx512_bf16, too.
template <class T>
const T& select(Isa isa, const T& baseline, const T& avx2, const T& avx512) {
  return isa >= Isa::avx512 ? avx512 : isa == Isa::avx2 ? avx2 : baseline;
}

}  // namespace assay::cpu

// Declares `extern const Type name` in each instruction set's namespace and `const Type& name(Isa)` to choose.
#define ASSAY_DECLARE_KERNELS_OF(isa, Type, name) \
  namespace assay::cpu::isa {                     \
  extern const Type name;                         \
  }
#define ASSAY_DECLARE_KERNELS(Type, name)                                                            \
  ASSAY_DECLARE_KERNELS_OF(baseline, Type, name)                                                     \
  ASSAY_DECLARE_KERNELS_OF_AVX2(Type, name)                                                          \
  ASSAY_DECLARE_KERNELS_OF(avx512, Type, name)                                                       \
  namespace assay::cpu {                                                                             \
  inline const Type& name(Isa isa) { return select(isa, baseline::name, avx2::name, avx512::name); } \
  }
// The same for those with separate code for avx512_bf16: kernel_sources_with_bf16 of CMakeLists.txt.
#define ASSAY_DECLARE_KERNELS_WITH_BF16(Type, name)               \
  ASSAY_DECLARE_KERNELS_OF(baseline, Type, name)                  \
  ASSAY_DECLARE_KERNELS_OF_AVX2(Type, name)                       \
  ASSAY_DECLARE_KERNELS_OF(avx512, Type, name)                    \
  ASSAY_DECLARE_KERNELS_OF(avx512_bf16, Type, name)               \
  namespace assay::cpu {                                          \
  inline const Type& name(Isa isa) {                              \
    if (isa == Isa::avx512_bf16) return avx512_bf16::name;        \
    return select(isa, baseline::name, avx2::name, avx512::name); \
  }                                                               \
  }
