// Lines of numbers of 8 bits, each with its own scale.
#pragma once
#include <assay/compute/eight_bit.hpp>

#include <algorithm>
#include <cmath>

#include "judge.hpp"

namespace assay::compute::audit {

inline Places some_lines(const Tensor& y) {
  return some_of(y.dim(0), std::max<std::int64_t>(4, room / std::max<std::int64_t>(1, y.dim(1))));
}

// The power of two that a number of a line whose largest magnitude is m stands for more.
inline double inverse_scale_of(double m, double largest) {
  return std::isnan(m) ? m : std::exp2(std::ceil(std::log2(m / largest)));
}

// Numbers that may differ from `numbers`, those of the lines one after the other, by `rounded` of their size.
template <class Judge>
void judge_lines(Judge& judge, const Places& lines, const Values& numbers, const Tensor& y, const Tensor& inverse_scale,
                 double rounded) {
  const auto largest = static_cast<double>(y.dtype == DType::f8_e4m3 ? E4m3::largest() : E5m2::largest());
  const auto width = static_cast<std::size_t>(y.dim(1));
  const Values inverse = judge.read(inverse_scale), found = judge.read_rows(y, lines);
  for (std::size_t l = 0; l < lines.size(); ++l) {
    const double* const line = numbers.data() + l * width;
    double m = 0x1p-100;
    for (std::size_t i = 0; i < width && !std::isnan(m); ++i)
      m = std::isfinite(line[i]) ? std::fmax(m, std::abs(line[i])) : NAN;
    // Where rounding may take the largest magnitude past a power of two, both scales are right.
    const double found_inverse = inverse[static_cast<std::size_t>(lines[l])];
    const double high = inverse_scale_of(m * (1 + rounded), largest),
                 low = inverse_scale_of(m * (1 - rounded), largest);
    const double expected = found_inverse == high ? high : low;
    judge.element(inverse_scale, "inverse_scale", lines[l], found_inverse, expected, expected);
    for (std::size_t i = 0; i < width; ++i) {
      const double scaled = std::clamp(line[i] / expected, -largest, largest);
      judge.element(y, "eight bits", lines[l] * y.dim(1) + static_cast<std::int64_t>(i), found[l * width + i], scaled,
                    std::abs(scaled), 2 * rounded * std::abs(scaled));
    }
  }
}

// Beside a result of so many numbers, which has been judged.
template <class Judge>
void judge_beside(Judge& judge, const Tensor& result, const op::EightBitRows& eight_bits) {
  const Places rows = some_lines(eight_bits.numbers);
  judge_lines(judge, rows, judge.read_rows(result, rows), eight_bits.numbers, eight_bits.inverse_scale, 0);
}

}  // namespace assay::compute::audit
