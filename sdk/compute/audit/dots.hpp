// Sums of products, and of their sizes.
#pragma once
#include <cmath>
#include <cstddef>

namespace assay::compute::audit {

inline double dot(const double* a, const double* b, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}
inline double size_of_dot(const double* a, const double* b, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += std::abs(a[i] * b[i]);
  return sum;
}

}  // namespace assay::compute::audit
