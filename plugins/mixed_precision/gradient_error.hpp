// Measures how far gradients are from exact ones, over all parameters together: |g - exact| / |exact| in the Euclidean
// norm.
#pragma once
#include <assay/compute/difference.hpp>
#include <assay/workload/precision.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace mixed_precision {

// For all gradients of a model of so many layers against float64, where only one side rounds. A layer stores about 26
// results. A rounding of half a unit u is 0.43 u on average, and roundings add up as a random walk does: 0.43 u
// sqrt(26) = 2.2 u by the root of the layers (sdk/verification/path_check.cpp has the same for two paths). Twice that
// is allowed: 4.4 u of bf16 (2^-8), 4 u of fp16 (2^-11). tf32 rounds 42 inputs of products, 2.8 u; e4m3 (2^-4) as many,
// 0.17. In fp32 partial sums add about seven times a rounding: 15 u. Found on a CPU and an H200, by the root of the
// layers: 1.8e-7 in fp32, 3.3e-4 in tf32, 5e-4 in fp16, 4.7e-3 in bf16; on a CPU up to 0.06 in fp8.
inline double gradient_tolerance(const assay::workload::PrecisionPolicy& p, std::int64_t layers) {
  using assay::compute::DType;
  const double depth = std::sqrt(static_cast<double>(layers < 1 ? 1 : layers));
  if (p.eight_bit_products) return 0.2 * depth;
  if (p.product_math == assay::compute::ProductMath::tf32) return 1.3e-3 * depth;
  return depth * (p.activation == DType::f16 ? 2e-3 : p.activation == DType::f32 ? 9e-7 : 1.7e-2);
}

class GradientError {
 public:
  // `scale`: what the gradients were multiplied by. As many elements each.
  template <class Exact>
  void add(const std::vector<float>& gradients, const std::vector<Exact>& exact, double scale) {
    if (gradients.size() != exact.size()) return difference_.add(std::numeric_limits<double>::infinity(), 0);
    for (std::size_t i = 0; i < gradients.size(); ++i)
      difference_.add(static_cast<double>(gradients[i]) / scale, static_cast<double>(exact[i]));
  }
  double relative() const { return difference_.relative(); }

 private:
  assay::compute::Difference difference_;
};

}  // namespace mixed_precision
