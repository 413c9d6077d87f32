// What the tests of mixtures of experts share.
#pragma once
#include <cmath>

#include "harness.hpp"

namespace assay::conformance {

inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

inline Values counts_of(const Values& experts, std::int64_t groups) {
  Values counts(at(groups));
  for (const double e : experts)
    if (e >= 0 && e < static_cast<double>(groups)) ++counts[static_cast<std::size_t>(e)];
  return counts;
}

}  // namespace assay::conformance
