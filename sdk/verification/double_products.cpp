#include "double_products.hpp"

#include <algorithm>
#include <assay/compute/host_threads.hpp>

namespace assay::verification {
namespace {

constexpr std::size_t block_rows = 4;        // rows of the result that read the same row of b
constexpr std::size_t block_columns = 1024;  // columns of the result: four rows stay in the first cache

// Rows [first, end) of the result.
void multiply_rows(const Matrix& a, const Matrix& b, Matrix& c, std::size_t first, std::size_t end) {
  for (std::size_t column = 0; column < b.columns; column += block_columns) {
    const std::size_t width = std::min(block_columns, b.columns - column);
    std::size_t r = first;
    for (; r + block_rows <= end; r += block_rows) {
      double* c0 = c.row(r) + column;
      double* c1 = c.row(r + 1) + column;
      double* c2 = c.row(r + 2) + column;
      double* c3 = c.row(r + 3) + column;
      for (std::size_t k = 0; k < a.columns; ++k) {
        const double* from = b.row(k) + column;
        const double a0 = a.row(r)[k], a1 = a.row(r + 1)[k], a2 = a.row(r + 2)[k], a3 = a.row(r + 3)[k];
        for (std::size_t j = 0; j < width; ++j) {
          c0[j] += a0 * from[j];
          c1[j] += a1 * from[j];
          c2[j] += a2 * from[j];
          c3[j] += a3 * from[j];
        }
      }
    }
    for (; r < end; ++r)
      for (std::size_t k = 0; k < a.columns; ++k)
        for (std::size_t j = 0; j < width; ++j) c.row(r)[column + j] += a.row(r)[k] * b.row(k)[column + j];
  }
}

}  // namespace

Matrix transposed(const Matrix& a) {
  constexpr std::size_t tile = 32;
  Matrix t(a.columns, a.rows);
  for (std::size_t r = 0; r < a.rows; r += tile)
    for (std::size_t c = 0; c < a.columns; c += tile)
      for (std::size_t i = r; i < std::min(r + tile, a.rows); ++i)
        for (std::size_t j = c; j < std::min(c + tile, a.columns); ++j) t.row(j)[i] = a.row(i)[j];
  return t;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  compute::in_parts(
      static_cast<std::int64_t>(a.rows), static_cast<std::int64_t>(block_rows),
      [&](std::int64_t first, std::int64_t end) {
        multiply_rows(a, b, c, static_cast<std::size_t>(first), static_cast<std::size_t>(end));
      },
      static_cast<std::int64_t>(block_rows));
  return c;
}

Matrix stacked(const Matrix& a, const Matrix& b) {
  Matrix both(a.rows + b.rows, a.columns);
  std::copy(a.values.begin(), a.values.end(), both.values.begin());
  std::copy(b.values.begin(), b.values.end(), both.row(a.rows));
  return both;
}

Matrix one_hot(const std::vector<std::int64_t>& places, std::size_t columns) {
  Matrix m(places.size(), columns);
  for (std::size_t r = 0; r < places.size(); ++r) m.row(r)[static_cast<std::size_t>(places[r])] = 1;
  return m;
}

void add_to(Matrix& sum, const Matrix& a) {
  for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += a.values[i];
}

}  // namespace assay::verification
