// What a number may be off by that was rounded to its format.
#pragma once
#include <algorithm>
#include <assay/compute/tensor.hpp>
#include <cmath>

namespace assay::verification {

inline constexpr double fp32_rounding = 0x1p-24;

// Half a unit in the last place of a stored number: what rounding to its format may be off by.
inline double half_unit(compute::DType dtype, double x) {
  if (dtype == compute::DType::f32) return 0;  // part of the roundings of fp32
  const int mantissa = dtype == compute::DType::bf16 ? 7 : 10;
  const int least_exponent = dtype == compute::DType::bf16 ? -126 : -14;
  const int exponent = x == 0 ? least_exponent : std::max(std::ilogb(x), least_exponent);
  return std::ldexp(0.5, exponent - mantissa);
}

}  // namespace assay::verification
