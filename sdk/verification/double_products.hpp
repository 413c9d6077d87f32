// Matrices of doubles on the host and their products, over all processors: what a float64 reference is made of.
#pragma once
#include <cstddef>
#include <vector>

namespace assay::verification {

struct Matrix {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;  // row-major

  Matrix() = default;
  Matrix(std::size_t r, std::size_t c) : rows(r), columns(c), values(r * c) {}
  Matrix(std::size_t r, std::size_t c, const std::vector<float>& from)
      : rows(r), columns(c), values(from.begin(), from.end()) {}
  double* row(std::size_t r) { return values.data() + r * columns; }
  const double* row(std::size_t r) const { return values.data() + r * columns; }
};

Matrix transposed(const Matrix& a);
Matrix product(const Matrix& a, const Matrix& b);  // a b
void add_to(Matrix& sum, const Matrix& a);

}  // namespace assay::verification
