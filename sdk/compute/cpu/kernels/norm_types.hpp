// From the types of a normalisation to kernels of them. Included by kernel files only.
#pragma once
#include "math.hpp"
#include "norm.hpp"

namespace assay::cpu::ASSAY_ISA {

// call(x, w) with values of the types that `types` says.
template <class Call>
ASSAY_INLINE void with_types(NormTypes types, Call call) {
  switch (types) {
    case NormTypes::f32: return call(float{}, float{});
    case NormTypes::bf16: return call(bf16{}, bf16{});
    case NormTypes::bf16_with_f32_weight: return call(bf16{}, float{});
  }
}

}  // namespace assay::cpu::ASSAY_ISA
