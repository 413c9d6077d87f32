// Reductions to one fp32 number: the same result for any number of threads. And sums for the study of rounding, not for
// speed.
#pragma once
#include <assay/compute/operation_fields.hpp>

#include <cstdint>

namespace assay::compute {

// SumOrder and SumOptions define a sum to study its rounding: every partial result is rounded to `accumulator`, to
// nearest even, by the device's arithmetic if it has that type, and only `order` reorders terms. If a term has another
// type than the accumulator, the two are added in fp32 and the result is rounded. A sum starts from 0.
enum class SumOrder : std::int32_t {
  sequential,   // s += x[i], i rising
  chunked,      // sequential sums of `chunk` terms each, then the sequential sum of these
  pairwise,     // halves, the first of n / 2 terms, rounded down; down to one term
  compensated,  // Kahan's sum, in the accumulator's type throughout
  // The order of PyTorch's sum of a contiguous vector on a CPU, on one thread; see Cascade.
  cascade,
};
// The terms are rows of `rows_of_lanes` vectors of `lanes` terms. Each of a row's columns has sums at four levels.
// Level 0 adds one row after the other. When it has 2^power of them, it is added to level 1 and restarts from 0. Level
// 1 does the same to level 2 after as many, and that to level 3. After the last whole row the levels of a column are
// added from 0 to 3. Then the remaining whole vectors are added to the row's first one, and the row's vectors, one
// after the other, become one vector. The terms that fill no vector are added from 0, one after the other, and then the
// numbers of that vector, in their order. Fewer terms than `lanes` are added with one lane.
struct Cascade {
  static constexpr std::int64_t rows_of_lanes = 4, levels = 4, most_lanes = 64;
  static constexpr std::int64_t least_power = 4;
  std::int64_t lanes, rows, power;
  constexpr Cascade(std::int64_t count, std::int64_t wanted_lanes)
      : lanes(count < wanted_lanes ? 1 : wanted_lanes), rows(count / (rows_of_lanes * lanes)), power(least_power) {
    std::int64_t bits = 0;  // the least for which 2^bits are not fewer than the rows
    while ((std::int64_t{1} << bits) < rows) ++bits;
    if (bits / levels > power) power = bits / levels;
  }
  constexpr std::int64_t columns() const { return rows_of_lanes * lanes; }
};
struct SumOptions {
  DType accumulator = DType::f32;  // f32, bf16, f16
  SumOrder order = SumOrder::sequential;
  std::int64_t chunk = 0;     // terms of a chunk (chunked only), at least 1
  bool upcast_terms = false;  // a term is first converted to the accumulator's type and stored as such, then added
  std::int64_t lanes = 8;     // terms of a vector (cascade only), 1 to Cascade::most_lanes
};

namespace op {

// out[0] = factor * sum of x.
struct Sum {
  In x;     // T, contiguous
  Out out;  // fp32 [1]
  float factor = 1.0F;
  ASSAY_OPERATION("sum", x, out)
};
struct SumOfSquares {
  In x;
  Out out;
  ASSAY_OPERATION("sum_of_squares", x, out)
};
// NaN when any element is NaN.
struct MaxAbs {
  In x;
  Out out;
  ASSAY_OPERATION("max_abs", x, out)
};
struct CountNonfinite {
  In x;
  Out out;
  ASSAY_OPERATION("count_nonfinite", x, out)
};

// out[0] = sum of x, as `options` defines it.
struct OrderedSum {
  In x;     // [n]: fp32, bf16 or fp16 on every device
  Out out;  // fp32 [1], which holds each accumulator exactly
  SumOptions options;
  ASSAY_OPERATION("ordered_sum", x, out)
};
// out[0] = sum of x[i] y[i]; each product is rounded to the accumulator's type before it is added.
struct OrderedDot {
  In x, y;
  Out out;
  SumOptions options;
  ASSAY_OPERATION("ordered_dot", x, y, out)
};

}  // namespace op
}  // namespace assay::compute

// clang-format off
#define ASSAY_OPERATIONS_OF_REDUCTIONS(X) \
  X(Sum) X(SumOfSquares) X(MaxAbs) X(CountNonfinite) X(OrderedSum) X(OrderedDot)
// clang-format on
