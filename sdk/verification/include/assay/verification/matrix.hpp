// Matrices of doubles on the host: what a float64 reference computes with.
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

namespace assay::verification {

struct Matrix {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;  // row-major

  Matrix() = default;
  Matrix(std::size_t r, std::size_t c) : rows(r), columns(c), values(r * c) {}
  Matrix(std::size_t r, std::size_t c, std::vector<double> from) : rows(r), columns(c), values(std::move(from)) {}
  double* row(std::size_t r) { return values.data() + r * columns; }
  const double* row(std::size_t r) const { return values.data() + r * columns; }
};

}  // namespace assay::verification
