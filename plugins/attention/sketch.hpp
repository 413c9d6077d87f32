// Checks every element of a product of matrices at the cost of a few of its rows: if C = A B, then C u = A (B u) for
// any vector u. Here the elements of u are 1 and -1 in an order without pattern, so that no errors cancel but by
// chance. Sums are float64, and each has the sum of the squares of its terms: what rounding errors are in proportion
// to.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace attention {

struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::function<std::vector<float>(std::int64_t first, std::int64_t count)> read;  // so many rows
};

struct Sums {
  explicit Sums(std::int64_t count = 0)
      : value(static_cast<std::size_t>(count)), squares(static_cast<std::size_t>(count)) {}
  std::vector<double> value, squares;

  void add(const Sums& other);  // of as many
  // The largest distance of a value from that of `expected`, by the root of that one's squares; a sum without terms
  // must be exact. Infinite where anything is NaN, or the numbers of sums differ.
  double worst_error(const Sums& expected) const;
};

Sums row_sums(const Matrix& m);     // M u
Sums column_sums(const Matrix& m);  // M' u

// From B u and its squares to those of A (B u), and of A' (B u).
Sums product_of(const Matrix& a, const Sums& bu);
Sums transposed_product_of(const Matrix& a, const Sums& bu);

}  // namespace attention
