#include "layer_reference.hpp"

#include <assay/compute/rotary_reference.hpp>

#include <cmath>

namespace assay::verification {

std::vector<double> NormsReference::factors_of(train::ParameterSet::Id weight) const {
  std::vector<double> factors = parameters_.vector(weight);
  if (from_one_)
    for (double& factor : factors) factor += 1;
  return factors;
}

ReferenceNorm NormsReference::forward(const Matrix& x, train::ParameterSet::Id id) const {
  const std::vector<double> weight = factors_of(id);
  ReferenceNorm n{Matrix(x.rows, x.columns), std::vector<double>(x.rows)};
  for (std::size_t r = 0; r < x.rows; ++r) {
    double squares = 0;
    for (std::size_t j = 0; j < x.columns; ++j) squares += x.row(r)[j] * x.row(r)[j];
    n.rstd[r] = 1 / std::sqrt(squares / static_cast<double>(x.columns) + eps_);
    for (std::size_t j = 0; j < x.columns; ++j) n.y.row(r)[j] = x.row(r)[j] * n.rstd[r] * weight[j];
  }
  return n;
}

Matrix NormsReference::backward(const Matrix& dy, const Matrix& x, const ReferenceNorm& n,
                                train::ParameterSet::Id id) const {
  const std::vector<double> weight = factors_of(id);
  Matrix dx(x.rows, x.columns);
  std::vector<double> dweight(x.columns);
  for (std::size_t r = 0; r < x.rows; ++r) {
    double along = 0;
    for (std::size_t j = 0; j < x.columns; ++j) {
      dweight[j] += dy.row(r)[j] * x.row(r)[j] * n.rstd[r];
      along += dy.row(r)[j] * weight[j] * x.row(r)[j];
    }
    along *= n.rstd[r] * n.rstd[r] / static_cast<double>(x.columns);
    for (std::size_t j = 0; j < x.columns; ++j)
      dx.row(r)[j] = n.rstd[r] * (dy.row(r)[j] * weight[j] - x.row(r)[j] * along);
  }
  parameters_.keep(id, dweight);
  return dx;
}

void RotationReference::turn(Matrix& x, std::size_t width, std::size_t first, double direction) const {
  const double magnitude = compute::reference_rotary_magnitude(scaling);
  const auto pairs = static_cast<std::int64_t>((width - first) / 2);
  for (std::size_t r = 0; r < x.rows; ++r)
    for (std::size_t head = 0; head < x.columns; head += width)
      for (std::size_t j = head + first; j < head + width; j += 2) {
        const auto pair = static_cast<std::int64_t>((j - head - first) / 2);
        const double angle = static_cast<double>(r % context) *
                             compute::reference_rotary_frequency(theta, scaling, pair, pairs) * direction;
        const double a = magnitude * x.row(r)[j];
        const double b = magnitude * x.row(r)[j + 1];
        x.row(r)[j] = a * std::cos(angle) - b * std::sin(angle);
        x.row(r)[j + 1] = a * std::sin(angle) + b * std::cos(angle);
      }
}

}  // namespace assay::verification
