// Products by their lines: with random signs each row, or column, of a result has one sum, which is held against the
// same sum of the factors.
#pragma once
#include <cmath>
#include <string>

#include "judge.hpp"

namespace assay::compute::audit {

// A signed sum of independent roundings is normal, or narrower where they are bounded. The deviation computed below is
// at least 1.3 times the true one: a number's rounding, relative, is on average over a binade 0.74 of its bound's. So
// six of it are eight of the true one, and one sum of 10^15 is beyond it.
inline constexpr double most_deviations = 6;
// The root mean square over many rows is known well where they differ. Where all are alike it is that of one draw, and
// three of these deviations are four of the true one.
inline constexpr double most_deviations_together = 3;
inline constexpr std::size_t enough_lines = 8;

struct Sum {
  double value = 0, norm = 0;  // with the signs; the Euclidean norm of its terms
};
inline Sum sum_at(const LineSums& sums, std::size_t i) {
  return sums.values.empty() ? Sum() : Sum{sums.values[i], std::sqrt(sums.squares[i])};
}

// A row or a column of c.
struct Line {
  std::int64_t place;
  Sum found, product, old, bias;  // product: of a and b; old: what was added
};

// How far rounding takes the sum of a line, by the product's types.
struct Rounding {
  double stored;   // deviation of one number's rounding to c's type
  double summed;   // of the partial sums of one number of c
  double inputs;   // of what the inputs lose on the way (tf32)
  double least;    // a fixed step below the least normal number
  bool overflows;  // fp16

  double deviation(const Line& line) const {
    const double of_stored = stored * (line.found.norm + line.old.norm + line.bias.norm);
    const double of_sums = summed * (line.product.norm + line.found.norm);
    const double of_inputs = inputs * line.product.norm;
    return std::sqrt(of_stored * of_stored + of_sums * of_sums + of_inputs * of_inputs) + least;
  }
};

// The lines of one direction of one matrix.
struct Lines {
  const char* name;  // "row"
  std::size_t judged = 0, wrong = 0, hidden = 0;
  double together = 0, worst = -1;  // worst: in deviations, of the line below
  Line at{};
  double expected = 0, deviation = 1;

  void judge(const Line& line, const Rounding& rounding) {
    const double value = line.product.value + line.old.value + line.bias.value;
    if (!std::isfinite(value) || !std::isfinite(line.product.norm)) {
      if (!std::isfinite(line.found.value)) return;
      if (hidden++ == 0) at = line;
      return;
    }
    if (rounding.overflows && !std::isfinite(line.found.value) && line.product.norm > 1e4) return;
    ++judged;
    const double of_this = rounding.deviation(line);
    double away = std::abs(line.found.value - value) / of_this;
    if (std::isnan(away)) away = INFINITY;
    together += away * away;
    if (away > most_deviations) ++wrong;
    if (away <= worst || hidden > 0) return;
    worst = away, at = line, expected = value, deviation = of_this;
  }
  std::string count_text() const {
    return std::to_string(wrong) + " of " + std::to_string(judged) + " " + name + "s (most in " + name + ' ' +
           std::to_string(at.place) + ')';
  }
};

// Of matrix `index` of the tensor that is so called.
template <class Judge>
void decide(Judge& judge, const std::string& tensor, std::int64_t index, const Lines& rows, const Lines& columns) {
  for (const Lines* lines : {&rows, &columns})
    if (lines->hidden > 0)
      judge.wrong(tensor.c_str(), std::string("hides what is not finite in ") + lines->name + ' ' +
                                      std::to_string(lines->at.place) + " of matrix " + std::to_string(index));
  std::string what;
  if (rows.wrong + columns.wrong > 0) {
    what = tensor + ", matrix " + std::to_string(index) + ", is off in " + rows.count_text();
    if (columns.judged > 0) what += " and " + columns.count_text();
    what += "; ";
  }
  for (const Lines* lines : {&rows, &columns}) {
    if (lines->judged == 0 || (what.empty() && lines->worst < 0)) continue;
    judge.within((what + "the signed sum of " + tensor + "'s " + lines->name).c_str(), lines->at.place,
                 lines->at.found.value, lines->expected, most_deviations * lines->deviation);
    if (lines->judged >= enough_lines)
      judge.within(("the root mean square, in deviations, of sums of " + tensor + "'s " + lines->name + "s,").c_str(),
                   index, std::sqrt(lines->together / static_cast<double>(lines->judged)), 0, most_deviations_together);
  }
}

inline LineWeights weights_of(const LineSums& sums) { return {sums.values, sums.squares}; }

// Of products of `k` terms; `of_c`: half a unit in the last place of `output`, relative.
inline Rounding rounding_of_products(DType input, bool eight_bits, DType output, double of_c, ProductMath math,
                                     std::int64_t k) {
  Rounding r{};
  // Uniform within half a unit in the last place.
  r.stored = of_c / std::sqrt(3.0);
  // k additions round at random, so that their errors grow with the root of k. The matrix units of a GPU keep three
  // bits less while they add products of 16-bit numbers, and of 8-bit ones about 14 bits.
  const double unit = input == DType::f32 ? 0x1p-24 : eight_bits ? 0x1p-14 : 0x1p-21;
  r.summed = unit * std::sqrt(static_cast<double>(k) + 16);
  // Two inputs of 11 bits.
  r.inputs = math == ProductMath::tf32 && input == DType::f32 ? 0x1p-11 : 0;
  r.overflows = output == DType::f16;
  return r;
}

}  // namespace assay::compute::audit
