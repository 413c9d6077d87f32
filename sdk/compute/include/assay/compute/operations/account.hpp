// The account of steps: what shows afterwards that each step did its work, at the cost of two small kernels a step.
#pragma once
#include <assay/compute/operation_fields.hpp>

#include <cstdint>

namespace assay::compute {

// A step's row in `marks`: its loss, then of two tensors the sum over some elements and the sum of their absolute
// values.
struct MarkColumns {
  static constexpr std::int64_t loss = 0, results = 1, results_magnitude = 2, state = 3, state_magnitude = 4, count = 5;
};
// Of `rows` rows the first half keeps the first steps, and the second half the last ones.
constexpr std::int64_t row_of_mark(std::int64_t step, std::int64_t rows) {
  const std::int64_t first = rows / 2;
  return step < first ? step : first + (step - first) % (rows - first);
}

namespace op {

// loss[0] and x[places[i]] become NaN: reading them before a step has written them again shows.
struct SpoilPlaces {
  Optional<InOut> x;     // [N], fp32, bf16 or fp16 on every device
  Optional<In> places;   // i64 [n], each at least 0 and less than N; must be there with x
  Optional<InOut> loss;  // fp32 [1]
  ASSAY_OPERATION("spoil_places", x, places, loss)
};
// *count += 1, and row_of_mark(count before, rows) of `marks` receives the marks of a step: *loss, the sums over
// results[places[i]], and those over state[places[i]]. A tensor that is left out counts as 0. Sums are fp64 in a fixed
// order, rounded to fp32.
struct MarkStep {
  InOut count;                       // i64 [1]
  InOut marks;                       // fp32 [rows, MarkColumns::count], at least 2 rows
  Optional<In> loss = {};            // fp32 [1]
  Optional<In> results, state = {};  // [N], fp32, bf16 or fp16 on every device
  Optional<In> places = {};          // i64 [n], each at least 0 and less than N; must be there with results
  ASSAY_OPERATION("mark_step", count, marks, loss, results, state, places)
};

}  // namespace op
}  // namespace assay::compute

// clang-format off
#define ASSAY_OPERATIONS_OF_ACCOUNT(X) \
  X(SpoilPlaces) X(MarkStep)
// clang-format on
