#include "sketch.hpp"

#include <algorithm>
#include <assay/compute/difference.hpp>
#include <cmath>
#include <limits>

namespace attention {
namespace {

constexpr std::int64_t elements_at_a_time = std::int64_t{1} << 24;  // 64 MiB of fp32

// Bit 0 of a well-mixed hash of the index.
double sign(std::int64_t i) {
  auto bits = static_cast<std::uint64_t>(i) + 0x9E3779B97F4A7C15u;
  bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
  return (bits ^ bits >> 31) & 1 ? 1.0 : -1.0;
}

std::vector<double> signs(std::int64_t count) {
  std::vector<double> u(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < u.size(); ++i) u[i] = sign(static_cast<std::int64_t>(i));
  return u;
}

template <class Visit>
void each_row(const Matrix& m, Visit visit) {
  const std::int64_t step = std::max<std::int64_t>(1, elements_at_a_time / std::max<std::int64_t>(1, m.columns));
  for (std::int64_t first = 0; first < m.rows; first += step) {
    const std::int64_t count = std::min(step, m.rows - first);
    const std::vector<float> rows = m.read(first, count);
    for (std::int64_t r = 0; r < count; ++r) visit(static_cast<std::size_t>(first + r), rows.data() + r * m.columns);
  }
}

// The sums over a row's elements times `factor`, and over their squares times `square_factor` (none: 1). Eight of each,
// so that the compiler may use vectors.
void add_row(const float* row, std::size_t n, const double* factor, const double* square_factor, double& value,
             double& squares) {
  constexpr std::size_t lanes = 8;
  double sums[lanes] = {}, square_sums[lanes] = {};
  for (std::size_t i = 0; i < n; i += lanes) {
    const std::size_t count = std::min(lanes, n - i);
    for (std::size_t l = 0; l < count; ++l) {
      const auto x = static_cast<double>(row[i + l]);
      sums[l] += x * factor[i + l];
      square_sums[l] += x * x * (square_factor ? square_factor[i + l] : 1.0);
    }
  }
  for (std::size_t l = 0; l < lanes; ++l) value += sums[l], squares += square_sums[l];
}

// A row times a number, added to sums of columns.
void add_to_columns(const float* row, double factor, double square_factor, Sums& columns) {
  for (std::size_t c = 0; c < columns.value.size(); ++c) {
    const auto x = static_cast<double>(row[c]);
    columns.value[c] += x * factor;
    columns.squares[c] += x * x * square_factor;
  }
}

}  // namespace

void Sums::add(const Sums& other) {
  for (std::size_t i = 0; i < value.size(); ++i) value[i] += other.value[i], squares[i] += other.squares[i];
}

double Sums::worst_error(const Sums& expected) const {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (value.size() != expected.value.size()) return infinity;
  assay::compute::Worst worst;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const double distance = std::abs(value[i] - expected.value[i]);
    if (!std::isfinite(distance) || !std::isfinite(expected.squares[i])) return infinity;
    if (distance > 0) worst.add(distance / std::sqrt(expected.squares[i]));
  }
  return worst.value();
}

Sums row_sums(const Matrix& m) {
  Sums sums(m.rows);
  const std::vector<double> u = signs(m.columns);
  each_row(m, [&](std::size_t r, const float* row) {
    add_row(row, u.size(), u.data(), nullptr, sums.value[r], sums.squares[r]);
  });
  return sums;
}

Sums column_sums(const Matrix& m) {
  Sums sums(m.columns);
  const std::vector<double> u = signs(m.rows);
  each_row(m, [&](std::size_t r, const float* row) { add_to_columns(row, u[r], 1.0, sums); });
  return sums;
}

Sums product_of(const Matrix& a, const Sums& bu) {
  Sums sums(a.rows);
  each_row(a, [&](std::size_t r, const float* row) {
    add_row(row, bu.value.size(), bu.value.data(), bu.squares.data(), sums.value[r], sums.squares[r]);
  });
  return sums;
}

Sums transposed_product_of(const Matrix& a, const Sums& bu) {
  Sums sums(a.columns);
  each_row(a, [&](std::size_t r, const float* row) { add_to_columns(row, bu.value[r], bu.squares[r], sums); });
  return sums;
}

}  // namespace attention
