// AdamW of one element, with the constants of a step. Included by .cu files only.
#pragma once
#include <assay/compute/operations/optimizers.hpp>

#include "kernels/loss_scale.cuh"
#include "kernels/optimizer.hpp"

namespace assay::cuda {

// base^n for n >= 0, by squaring: a few roundings of double, and far cheaper than pow.
__device__ inline double power(double base, std::int64_t n) {
  double result = 1.0;
  for (; n > 0; n >>= 1, base *= base) {
    if (n & 1) result *= base;
  }
  return result;
}

__device__ inline float rate_or_nan(const OptimizerArgs& a) { return *a.step < 1 ? __builtin_nanf("") : *a.lr; }

struct AdamW {
  static constexpr int states = 2;
  using Options = compute::AdamWOptions;
  float keep;                                // 1 - lr * weight_decay
  float first_new, second_keep, second_new;  // 1 - beta1, beta2, 1 - beta2
  float root_scale;                          // 1 / sqrt(1 - beta2^t)
  float eps;
  float rate;  // lr / (1 - beta1^t)
  float unscale;

  __device__ static AdamW make(const OptimizerArgs& a, const Options& o) {
    const double lr = static_cast<double>(rate_or_nan(a));
    const double beta1 = static_cast<double>(o.beta1), beta2 = static_cast<double>(o.beta2);
    return {static_cast<float>(1.0 - lr * static_cast<double>(o.weight_decay)),
            static_cast<float>(1.0 - beta1),
            o.beta2,
            static_cast<float>(1.0 - beta2),
            static_cast<float>(1.0 / sqrt(1.0 - power(beta2, *a.step))),
            o.eps,
            static_cast<float>(lr / (1.0 - power(beta1, *a.step))),
            unscale_factor(a.loss_scale)};
  }

  __device__ __forceinline__ void apply(float g, float& p, float& m, float& v) const {
    g *= unscale;
    m = m + (g - m) * first_new;
    v = v * second_keep + g * g * second_new;
    p = p * keep - rate * m / (sqrtf(v) * root_scale + eps);
  }
  // Of a step without a loss scale, whose results are rounded to bf16: root and quotient are off by up to two roundings
  // of fp32.
  __device__ __forceinline__ void apply_to_bf16(float g, float& p, float& m, float& v) const {
    m = m + (g - m) * first_new;
    v = v * second_keep + g * g * second_new;
    float root, inverse;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(v));
    asm("rcp.approx.f32 %0, %1;" : "=f"(inverse) : "f"(root * root_scale + eps));
    p = p * keep - rate * m * inverse;
  }
};

}  // namespace assay::cuda
