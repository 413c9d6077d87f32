// Random numbers that are the same with each standard library: its engines are specified, its distributions are not.
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

namespace assay::host::compare::study {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  // Above 0, and at most 1.
  double uniform() { return static_cast<double>((engine_() >> 11) + 1) * 0x1p-53; }
  bool happens(double chance) { return uniform() <= chance; }
  // Box and Muller's transform.
  double normal() {
    if (has_next_) {
      has_next_ = false;
      return next_;
    }
    const double radius = std::sqrt(-2 * std::log(uniform())), angle = 2 * std::numbers::pi * uniform();
    next_ = radius * std::sin(angle), has_next_ = true;
    return radius * std::cos(angle);
  }

 private:
  std::mt19937_64 engine_;
  double next_ = 0;
  bool has_next_ = false;
};

}  // namespace assay::host::compare::study
