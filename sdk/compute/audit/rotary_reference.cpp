#include <assay/compute/rotary_reference.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace assay::compute {

namespace {

constexpr double turn = 2 * std::numbers::pi;

// In the words of the publication: wavelengths, beside those that the two factors make of the first context.
double llama3_frequency(double frequency, const RotaryScaling& s) {
  const double wavelength = turn / frequency;
  if (wavelength < s.original_positions / s.high) return frequency;
  if (wavelength > s.original_positions / s.low) return frequency / s.factor;
  const double smooth = (s.original_positions / wavelength - s.low) / (s.high - s.low);
  return (1 - smooth) * frequency / s.factor + smooth * frequency;
}

double yarn_frequency(double theta, double frequency, const RotaryScaling& s, std::int64_t pair, std::int64_t pairs) {
  const double columns = 2 * static_cast<double>(pairs);
  const auto pair_of = [&](double turns) {
    return columns * std::log(s.original_positions / (turns * turn)) / (2 * std::log(theta));
  };
  double first = pair_of(s.beta_fast), last = pair_of(s.beta_slow);
  if (s.whole_pairs) first = std::floor(first), last = std::ceil(last);
  first = std::max(first, 0.0), last = std::min(last, columns - 1);
  if (first == last) last += 0.001;
  const double interpolated = std::clamp((static_cast<double>(pair) - first) / (last - first), 0.0, 1.0);
  return frequency / s.factor * interpolated + frequency * (1 - interpolated);
}

}  // namespace

double reference_rotary_frequency(double theta, const RotaryScaling& s, std::int64_t pair, std::int64_t pairs) {
  const double frequency = std::pow(theta, -static_cast<double>(pair) / static_cast<double>(pairs));
  if (s.kind == RotaryScalingKind::linear) return frequency / s.factor;
  if (s.kind == RotaryScalingKind::llama3) return llama3_frequency(frequency, s);
  if (s.kind == RotaryScalingKind::yarn) return yarn_frequency(theta, frequency, s, pair, pairs);
  return frequency;
}

double reference_rotary_magnitude(const RotaryScaling& s) {
  if (s.kind != RotaryScalingKind::yarn) return 1;
  return s.magnitude > 0 ? s.magnitude : 0.1 * std::log(s.factor) + 1;
}

}  // namespace assay::compute
