// Measures how far gradients are from exact ones, over all parameters together: |g - exact| / |exact| in the Euclidean
// norm.
#pragma once
#include <cmath>
#include <cstddef>
#include <vector>

namespace mixed_precision {

class GradientError {
 public:
  // `scale`: what the gradients were multiplied by. As many elements each.
  template <class Exact>
  void add(const std::vector<float>& gradients, const std::vector<Exact>& exact, double scale) {
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const auto reference = static_cast<double>(exact[i]);
      const double difference = static_cast<double>(gradients[i]) / scale - reference;
      difference_ += difference * difference;
      reference_ += reference * reference;
    }
  }
  double relative() const { return std::sqrt(difference_ / reference_); }

 private:
  double difference_ = 0, reference_ = 0;  // sums of squares
};

}  // namespace mixed_precision
