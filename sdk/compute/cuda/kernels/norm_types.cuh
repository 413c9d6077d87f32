// The pairs of types that a normalisation may have. Included by .cu files only.
#pragma once
#include "kernels/types.cuh"

namespace assay::cuda {

// f(TypeTag<X>(), TypeTag<W>()): W is X or float.
template <class Args, class F>
void with_norm_types(const Args& a, F&& f) {
  dispatch_float(a.type, [&](auto x_tag) {
    if (a.weight_type == a.type)
      f(x_tag, x_tag);
    else
      f(x_tag, TypeTag<float>());
  });
}

}  // namespace assay::cuda
