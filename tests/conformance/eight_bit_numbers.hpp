// Numbers of 8 bits, as tests know them.
#pragma once
#include <assay/compute/eight_bit.hpp>

#include <algorithm>
#include <cmath>

#include "harness.hpp"

namespace assay::conformance {

// By search through all 256 numbers, in float64: of the two nearest the one whose last bit is 0.
class NumbersOfEightBits {
 public:
  explicit NumbersOfEightBits(DType format) {
    for (int bits = 0; bits < 0x80; ++bits) {
      const auto code = static_cast<std::uint8_t>(bits);
      const double x = format == DType::f8_e4m3 ? compute::E4m3::to_float(code) : compute::E5m2::to_float(code);
      if (std::isfinite(x)) magnitudes_.push_back(x);
    }
  }
  double largest() const { return magnitudes_.back(); }
  // The largest power of two that leaves numbers up to `high` within the format's, by search.
  double scale_for(double high) const {
    double scale = 0x1p-150;
    while (2 * scale * std::max(high, 0x1p-100) <= largest()) scale *= 2;
    return scale;
  }
  double nearest(double x) const {
    if (std::isnan(x)) return x;
    const double a = std::fabs(x);
    const auto above = std::lower_bound(magnitudes_.begin(), magnitudes_.end(), a);
    if (above == magnitudes_.end()) return std::copysign(largest(), x);
    if (*above == a) return x;
    const auto below = above - 1;
    const double down = a - *below, up = *above - a;
    const bool below_is_even = (below - magnitudes_.begin()) % 2 == 0;
    return std::copysign(down < up || (down == up && below_is_even) ? *below : *above, x);
  }

 private:
  Values magnitudes_;  // in the order of their bits
};

}  // namespace assay::conformance
