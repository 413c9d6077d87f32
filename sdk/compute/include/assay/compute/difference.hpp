// How far results are from the expected ones: every verification compares with this. A number that is not finite, on
// either side, differs from everything, and NaN stays the worst.
#pragma once
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace assay::compute {

// The distance |found - expected| of two sequences in the Euclidean norm, relative to |expected|.
class Difference {
 public:
  // `scale` is for a truth that is nearly zero because its terms cancel, where two right results share no digit: the
  // norm of what rounding errors are in proportion to. The distance is relative to it where |expected| is less.
  explicit Difference(double scale = 0) : scale_(scale) {}

  void add(double found, double expected) {
    const double d = found - expected;
    distance_ += d * d;
    expected_ += expected * expected;
  }
  // Sequences of different lengths differ by infinity.
  template <class Found, class Expected>
  void add_all(const Found& found, const Expected& expected) {
    const std::span f(found);
    const std::span e(expected);
    if (f.size() != e.size()) {
      distance_ = std::numeric_limits<double>::infinity();
      return;
    }
    for (std::size_t i = 0; i < f.size(); ++i) add(static_cast<double>(f[i]), static_cast<double>(e[i]));
  }

  // Infinite where a number was not finite. A sum of squares has become so itself then, and stays so.
  double distance() const { return is_finite() ? std::sqrt(distance_) : std::numeric_limits<double>::infinity(); }
  double relative() const {
    if (!is_finite()) return std::numeric_limits<double>::infinity();
    return distance_ == 0 ? 0 : std::sqrt(distance_) / std::fmax(std::sqrt(expected_), scale_);
  }

 private:
  bool is_finite() const { return std::isfinite(distance_) && std::isfinite(expected_); }

  double scale_;
  double distance_ = 0, expected_ = 0;  // sums of squares
};

// The worse of two differences: the larger one, or NaN where one of them is NaN. std::max would forget it.
inline double worse(double a, double b) { return std::isnan(a) || b <= a ? a : b; }

// The worst of many differences, and which one it was.
class Worst {
 public:
  void add(double difference, std::size_t index = 0) {
    if (std::isnan(value_) || difference <= value_) return;
    value_ = difference;
    index_ = index;
  }
  double value() const { return value_; }       // 0 before the first
  std::size_t index() const { return index_; }  // of the first among equals
  bool within(double tolerance) const { return value_ <= tolerance; }

 private:
  double value_ = 0;
  std::size_t index_ = 0;
};

}  // namespace assay::compute
