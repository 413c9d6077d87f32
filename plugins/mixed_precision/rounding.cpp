#include "rounding.hpp"

#include <assay/plugin.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace mixed_precision {

using assay::compute::DType;
using assay::compute::SumOptions;
using assay::compute::SumOrder;

namespace {

struct Format {
  int significand_bits;  // with the hidden one
  int least_exponent;    // that a normal number has
  double largest;
};
Format format_of(DType dtype) {
  switch (dtype) {
    case DType::bf16: return {8, -126, 0x1.fep127};
    case DType::f16: return {11, -14, 65504};
    default: return {24, -126, std::numeric_limits<float>::max()};
  }
}

}  // namespace

double exact_sum(std::span<const double> terms) {
  std::vector<double> partials;  // non-overlapping, rising in size
  for (double x : terms) {
    std::size_t kept = 0;
    for (double y : partials) {
      if (std::abs(x) < std::abs(y)) std::swap(x, y);
      const double high = x + y;
      const double low = y - (high - x);
      if (low != 0) partials[kept++] = low;
      x = high;
    }
    partials.resize(kept);
    partials.push_back(x);
  }
  // From the largest on: the first sum that is not exact is the rounded one, but for a tie that what follows decides.
  double sum = 0;
  std::size_t left = partials.size();
  double low = 0;
  while (left > 0) {
    const double x = sum;
    const double y = partials[--left];
    sum = x + y;
    low = y - (sum - x);
    if (low != 0) break;
  }
  if (left > 0 && ((low < 0 && partials[left - 1] < 0) || (low > 0 && partials[left - 1] > 0))) {
    const double twice = 2 * low;
    const double other = sum + twice;
    if (other - sum == twice) sum = other;
  }
  return sum;
}

float round_to(float value, DType dtype) {
  if (dtype == DType::f32 || !std::isfinite(value) || value == 0) return value;
  const Format format = format_of(dtype);
  const double step = ulp_at(static_cast<double>(value), dtype);
  const double rounded = std::nearbyint(static_cast<double>(value) / step) * step;  // both are powers of two apart
  if (std::abs(rounded) > format.largest) return std::copysign(std::numeric_limits<float>::infinity(), value);
  return static_cast<float>(rounded);
}

void check_stored(std::span<const float> given, std::span<const float> stored, DType dtype, const char* what) {
  std::string text = what;
  if (given.size() != stored.size()) {
    text += "s: " + std::to_string(stored.size()) + " are stored of " + std::to_string(given.size());
    throw assay::Error(ASSAY_WRONG_RESULT, text);
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    const float expected = round_to(given[i], dtype);
    if (stored[i] == expected || (std::isnan(stored[i]) && std::isnan(expected))) continue;
    text += ' ' + std::to_string(i) + " is stored as " + std::to_string(stored[i]) + " in " + name_of(dtype);
    text += ", and rounded on the host it is " + std::to_string(expected);
    throw assay::Error(ASSAY_WRONG_RESULT, text);
  }
}

double ulp_at(double value, DType dtype) {
  const Format format = format_of(dtype);
  const int exponent = value == 0 ? format.least_exponent : std::max(std::ilogb(value), format.least_exponent);
  return std::ldexp(1.0, exponent - format.significand_bits + 1);
}

namespace {

class Adder {
 public:
  explicit Adder(const SumOptions& options) : options_(options) {}

  float term(float x) const { return options_.upcast_terms ? round(x) : x; }
  // One addition in fp32, rounded once more to a narrower format, is the correctly rounded one: 24 bits are more than
  // twice its significand and two.
  float add(float a, float b) const { return round(a + b); }

  float sequential(std::span<const float> terms) const {
    float sum = 0;
    for (const float x : terms) sum = add(sum, term(x));
    return sum;
  }
  float chunked(std::span<const float> terms) const {
    const auto chunk = static_cast<std::size_t>(options_.chunk);
    float sum = 0;
    for (std::size_t begin = 0; begin < terms.size(); begin += chunk)
      sum = add(sum, sequential(terms.subspan(begin, std::min(chunk, terms.size() - begin))));
    return sum;
  }
  float pairwise(std::span<const float> terms) const {
    if (terms.size() == 1) return round(term(terms[0]));
    const std::size_t half = terms.size() / 2;
    return add(pairwise(terms.first(half)), pairwise(terms.subspan(half)));
  }
  // A column's sum is that of its levels: each has what the levels above it have not taken, in blocks of 2^power of the
  // level below. Adding to 0 is exact, so that it does not show where a sum starts from it.
  float cascade(std::span<const float> terms) const {
    const assay::compute::Cascade c(static_cast<std::int64_t>(terms.size()), options_.lanes);
    std::vector<float> lanes(static_cast<std::size_t>(c.columns()));
    for (std::size_t column = 0; column < lanes.size(); ++column) {
      const auto block = [&](const auto& self, std::int64_t level, std::int64_t first, std::int64_t end) -> float {
        float sum = 0;
        const std::int64_t step = std::int64_t{1} << (level * c.power);
        for (; first + step <= end; first += step)
          sum = add(sum, level == 0 ? term(terms[static_cast<std::size_t>(first * c.columns()) + column])
                                    : self(self, level - 1, first, first + step));
        return sum;
      };
      float sum = 0;
      for (std::int64_t level = 0; level < c.levels; ++level) {
        const bool last = level + 1 == c.levels;
        const std::int64_t taken = last ? 0 : c.rows >> ((level + 1) * c.power) << ((level + 1) * c.power);
        sum = add(sum, block(block, level, taken, c.rows >> (level * c.power) << (level * c.power)));
      }
      lanes[column] = sum;
    }
    const auto width = static_cast<std::size_t>(c.lanes);
    std::span<const float> rest = terms.subspan(static_cast<std::size_t>(c.rows) * lanes.size());
    for (; rest.size() >= width; rest = rest.subspan(width))
      for (std::size_t i = 0; i < width; ++i) lanes[i] = add(lanes[i], term(rest[i]));
    for (std::size_t column = width; column < lanes.size(); ++column)
      lanes[column % width] = add(lanes[column % width], lanes[column]);
    float sum = sequential(rest);
    for (std::size_t i = 0; i < width; ++i) sum = add(sum, lanes[i]);
    return sum;
  }
  float compensated(std::span<const float> terms) const {
    float sum = 0;
    float lost = 0;
    for (const float x : terms) {
      const float corrected = round(term(x) - lost);
      const float next = add(sum, corrected);
      lost = round(round(next - sum) - corrected);
      sum = next;
    }
    return sum;
  }

 private:
  float round(float x) const { return round_to(x, options_.accumulator); }
  SumOptions options_;
};

}  // namespace

float ordered_sum(std::span<const float> terms, const SumOptions& options) {
  const Adder adder(options);
  if (terms.empty()) return 0;
  switch (options.order) {
    case SumOrder::sequential: return adder.sequential(terms);
    case SumOrder::chunked: return adder.chunked(terms);
    case SumOrder::pairwise: return adder.pairwise(terms);
    case SumOrder::compensated: return adder.compensated(terms);
    case SumOrder::cascade: return adder.cascade(terms);
  }
  return 0;
}

}  // namespace mixed_precision
