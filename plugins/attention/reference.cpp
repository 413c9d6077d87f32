#include "reference.hpp"

#include <algorithm>
#include <assay/compute/difference.hpp>
#include <cmath>
#include <limits>
#include <numeric>

namespace attention {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double dot(const float* a, const float* b, std::int64_t n) {
  constexpr int lanes = 8;  // separate sums, so that the compiler may use vectors
  double sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int l = 0; l < lanes; ++l) sums[l] += double(a[i + l]) * double(b[i + l]);
  double sum = 0;
  for (; i < n; ++i) sum += double(a[i]) * double(b[i]);
  for (const double s : sums) sum += s;
  return sum;
}

// The product, and the norm of its terms or its own size, whichever is more.
struct Product {
  double value = 0, magnitude = 0;
};
Product product_of(const float* a, const float* b, std::int64_t n) {
  constexpr int lanes = 8;
  double squares[lanes] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    const double term = double(a[i]) * double(b[i]);
    squares[i % lanes] += term * term;
  }
  const double value = dot(a, b, n);
  return {value, std::max(std::abs(value), std::sqrt(std::accumulate(squares, squares + lanes, 0.0)))};
}

void add(double factor, const float* x, double* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += factor * double(x[i]);
}

double square(double x) { return x * x; }

const float* row_of(const std::vector<float>& matrix, std::int64_t row, std::int64_t columns) {
  return matrix.data() + row * columns;
}

// Squared lengths of the rows.
std::vector<double> squares_of(const std::vector<float>& matrix, std::int64_t columns) {
  std::vector<double> squares(matrix.size() / static_cast<std::size_t>(columns));
  for (std::size_t i = 0; i < squares.size(); ++i) {
    const float* row = row_of(matrix, static_cast<std::int64_t>(i), columns);
    squares[i] = dot(row, row, columns);
  }
  return squares;
}

void finish(Rows& rows) {
  for (double& m : rows.magnitude) m = std::sqrt(m);
}

// The softmax of one query's scores.
void probabilities_of(const Head& h, std::int64_t query, std::vector<double>& p) {
  p.resize(static_cast<std::size_t>(h.causal ? query + 1 : h.seq));
  const float* q = row_of(h.q, query, h.head_dim);
  double high = -infinity, sum = 0;
  std::int64_t begin = 0;  // of the query's document
  for (std::size_t d = 0; d < h.documents.size() && begin + h.documents[d] <= query; ++d) begin += h.documents[d];
  for (std::size_t j = 0; j < p.size(); ++j) {
    const auto key = static_cast<std::int64_t>(j);
    const bool is_hidden = key < begin || (h.window > 0 && query - key >= h.window);
    p[j] = is_hidden ? -infinity : h.scale * dot(q, row_of(h.k, static_cast<std::int64_t>(j), h.head_dim), h.head_dim);
    high = std::max(high, p[j]);
  }
  for (double& x : p) sum += x = std::exp(x - high);
  for (double& x : p) x /= sum;
}

}  // namespace

Reference reference_of(const Head& h, const std::vector<std::int64_t>& queries) {
  const std::int64_t d = h.head_dim, of_values = h.value_dim > 0 ? h.value_dim : d;
  const auto width = static_cast<std::size_t>(d), value_width = static_cast<std::size_t>(of_values);
  const bool backward = !h.dout.empty();
  const std::size_t keys = backward ? static_cast<std::size_t>(h.seq) : 0;
  Reference r{Rows(queries.size(), of_values), Rows(backward ? queries.size() : 0, d), Rows(keys, d),
              Rows(keys, of_values)};
  const std::vector<double> k2 = squares_of(h.k, d), v2 = squares_of(h.v, of_values);
  std::vector<double> p;
  std::vector<Product> dp;
  for (std::size_t row = 0; row < queries.size(); ++row) {
    const std::int64_t query = queries[row];
    probabilities_of(h, query, p);
    for (std::size_t j = 0; j < p.size(); ++j) {
      add(p[j], row_of(h.v, static_cast<std::int64_t>(j), of_values), &r.out.value[row * value_width], of_values);
      r.out.magnitude[row] += square(p[j]) * v2[j];
    }
    if (!backward) continue;
    const float* q = row_of(h.q, query, d);
    const float* dout = row_of(h.dout, query, of_values);
    const double q2 = dot(q, q, d), dout2 = dot(dout, dout, of_values);
    dp.resize(p.size());
    Product delta;
    for (std::size_t j = 0; j < p.size(); ++j) {
      dp[j] = product_of(dout, row_of(h.v, static_cast<std::int64_t>(j), of_values), of_values);
      delta.value += p[j] * dp[j].value;
      delta.magnitude += square(p[j] * dp[j].magnitude);
    }
    delta.magnitude = std::max(std::abs(delta.value), std::sqrt(delta.magnitude));
    for (std::size_t j = 0; j < p.size(); ++j) {
      const double ds = h.scale * p[j] * (dp[j].value - delta.value);
      const double uncancelled = square(h.scale * p[j] * (dp[j].magnitude + delta.magnitude));
      add(ds, row_of(h.k, static_cast<std::int64_t>(j), d), &r.dq.value[row * width], d);
      add(ds, q, &r.dk.value[j * width], d);
      add(p[j], dout, &r.dv.value[j * value_width], of_values);
      r.dq.magnitude[row] += uncancelled * k2[j];
      r.dk.magnitude[j] += uncancelled * q2;
      r.dv.magnitude[j] += square(p[j]) * dout2;
    }
  }
  for (Rows* rows : {&r.out, &r.dq, &r.dk, &r.dv}) finish(*rows);
  return r;
}

std::vector<std::int64_t> spread_rows(std::int64_t seq, std::int64_t count) {
  count = std::clamp<std::int64_t>(count, 1, seq);
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < count; ++i) rows.push_back(count == 1 ? seq - 1 : i * (seq - 1) / (count - 1));
  return rows;
}

double worst_error(const std::vector<float>& got, const Rows& expected, double forgiven) {
  if (got.size() != expected.value.size()) return infinity;
  const auto width = static_cast<std::size_t>(expected.columns);
  assay::compute::Worst worst;
  for (std::size_t row = 0; row < expected.magnitude.size(); ++row) {
    assay::compute::Difference difference;
    for (std::size_t c = row * width; c < (row + 1) * width; ++c) difference.add(double(got[c]), expected.value[c]);
    // A sum of terms that is not finite forgives nothing: divided by it, every error would be 0.
    if (!std::isfinite(difference.distance()) || !std::isfinite(expected.magnitude[row])) return infinity;
    const double beyond = difference.distance() - forgiven;
    if (beyond > 0) worst.add(beyond / expected.magnitude[row]);
  }
  return worst.value();
}

}  // namespace attention
