// Weighted sums over the rows and the columns of a whole matrix, in float64 on the host. The matrix is read in blocks:
// the host holds some MiB of it at a time.
#pragma once
#include "reading.hpp"

namespace assay::compute::audit {

// What the elements and their squares are multiplied by; `values` empty: this side is not wanted.
struct Weights {
  Values values, squares;
};
inline Weights ones(std::size_t count) { return {Values(count, 1), Values(count, 1)}; }
// Random signs, the same in each call; `stream` sets those of rows and columns apart.
Weights random_signs(std::int64_t count, std::uint64_t stream);

struct Sums {
  Values values;   // sum over w x
  Values squares;  // sum over w' x x
};
struct MatrixSums {
  Sums of_rows, of_columns;
};

// `over_columns` makes the sum of each row, `over_rows` that of each column. `t` is of rank 2. Blocks.
MatrixSums sum_matrix(Backend& backend, const Tensor& t, const Weights& over_columns, const Weights& over_rows);

// What sum_matrix reads of it, gaps between rows among it.
double elements_read(const Tensor& t);

}  // namespace assay::compute::audit
