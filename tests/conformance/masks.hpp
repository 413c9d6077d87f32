// What dropout() keeps, for the tests of operations that drop on their way.
#pragma once
#include <cmath>
#include <vector>

#include "harness.hpp"

namespace assay::conformance {

// What each element is multiplied by: 0, or 1 / (1 - probability). Empty where nothing is dropped.
inline Values mask_of(const Shape& shape, const compute::Dropout& d) {
  if (d.probability == 0.0F) return {};
  const Values ones(static_cast<std::size_t>(elements(shape)), 1.0);
  const DeviceTensor x(DType::f32, shape, ones);
  run([&] { backend().run(op::ApplyDropout{.x = x, .y = x, .dropout = {d.probability, d.seed, d.stream, d.step}}); });
  return x.read();
}

inline Values masked(const Values& mask, Values x) {
  for (std::size_t i = 0; i < mask.size(); ++i) x[i] *= mask[i];
  return x;
}

// Expects a share of `probability` of all elements to be dropped, within five standard deviations of a binomial.
inline void expect_share(std::int64_t dropped, std::int64_t of, double probability) {
  const double n = static_cast<double>(of);
  EXPECT_NEAR(static_cast<double>(dropped) / n, probability, 5.0 * std::sqrt(probability * (1.0 - probability) / n));
}

}  // namespace assay::conformance
