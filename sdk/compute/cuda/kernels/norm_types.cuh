// The pairs of types that a normalisation may have. Included by .cu files only.
#pragma once
#include "kernels/norm.hpp"
#include "kernels/types.cuh"

namespace assay::cuda {

// f(TypeTag<X>(), TypeTag<W>()): W is X or float.
template <class F>
void with_norm_types(const NormArgs& a, F&& f) {
  dispatch_float(a.type, [&](auto x_tag) {
    if (a.weight_type == a.type)
      f(x_tag, x_tag);
    else
      f(x_tag, TypeTag<float>());
  });
}

}  // namespace assay::cuda
