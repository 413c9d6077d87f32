// Matrix products.
#pragma once
#include <assay/compute/operation_fields.hpp>

#include <cstdint>

namespace assay::compute {

// Whether matrix products of fp32 tensors (also those of attention) use their inputs unchanged, or round them to tf32's
// ten bits of mantissa, as the matrix units do.
enum class ProductMath : std::int32_t { exact, tf32 };

namespace op {

// c[..., m, n] = alpha * op(a)[..., m, k] op(b)[..., k, n] (+ c) (+ bias[n]) (+ residual_scale residual). Rank 2, 3 or
// 4, equal leading dimensions; honours strides (last two dimensions: one of them contiguous).
//
// With 8-bit numbers: c[m, n] = (a[m, k] b[n, k]^T) a_scale[m] b_scale[n], with a and b contiguous and of rank 2, only
// transpose_b, alpha 1, no sum and no bias; or, without b_scale, c = (a b^T) a_scale[0] (+ c). Sums are fp32; with
// `fast_accumulation` those of a GPU's matrix units keep fewer bits between additions (on Hopper about 14).
struct Matmul {
  In a, b;                   // of one type T, or both fp8_e4m3
  OutOrSum c;                // T or fp32; of 8 bits bf16 or fp32
  bool transpose_a = false;  // use a as its transpose over the last two dimensions
  bool transpose_b = false;
  float alpha = 1.0F;
  bool accumulate = false;
  // [n], the type of c: c[..., j] += bias[j] on the way. Not with `accumulate`; alpha 1.
  Optional<In> bias = {};
  // The shape, steps and type of c: residual_scale times it joins the sum before rounding. Not with the two above.
  Optional<In> residual = {};
  float residual_scale = 1.0F;
  // fp32 [m], [n], or [1] and empty: only with 8-bit numbers
  Optional<In> a_scale = {}, b_scale = {};
  bool fast_accumulation = false;
  ASSAY_OPERATION("matmul", a, b, c, bias, residual, a_scale, b_scale)
};

}  // namespace op
}  // namespace assay::compute

// clang-format off
#define ASSAY_OPERATIONS_OF_PRODUCTS(X) \
  X(Matmul)
// clang-format on
