#include "matrix_sums.hpp"

#include <algorithm>
#include <array>
#include <thread>

#include "masks.hpp"

namespace assay::compute::audit {
namespace {

constexpr std::int64_t elements_at_once = std::int64_t{1} << 22;
constexpr std::int64_t elements_of_a_thread = std::int64_t{1} << 17;  // fewer are not worth its start
constexpr std::int64_t most_threads = 16;

// So many partial sums at a time, so that a compiler makes vectors of them.
constexpr std::size_t lanes = 8;

struct Work {
  const Weights &over_columns, &over_rows;
  std::size_t columns;

  // Rows [first, last) of a block, which begins at the matrix' row `begin`.
  template <class ReadRow>
  void rows(std::int64_t begin, std::int64_t first, std::int64_t last, const ReadRow& read_row, MatrixSums& sums,
            Sums& of_columns) const {
    Values line(columns);
    for (std::int64_t r = first; r < last; ++r) {
      read_row(r, line.data());
      const auto at = static_cast<std::size_t>(begin + r);
      if (!over_columns.values.empty()) {
        sums.of_rows.values[at] = dot(line.data(), over_columns.values.data());
        sums.of_rows.squares[at] = dot_of_squares(line.data(), over_columns.squares.data());
      }
      if (over_rows.values.empty()) continue;
      const double w = over_rows.values[at], w_of_square = over_rows.squares[at];
      double* const value = of_columns.values.data();
      double* const square = of_columns.squares.data();
      for (std::size_t c = 0; c < columns; ++c) value[c] += w * line[c];
      for (std::size_t c = 0; c < columns; ++c) square[c] += w_of_square * line[c] * line[c];
    }
  }

 private:
  template <class Term>
  double sum(const Term& term) const {
    std::array<double, lanes> partial{};
    std::size_t c = 0;
    for (; c + lanes <= columns; c += lanes)
      for (std::size_t lane = 0; lane < lanes; ++lane) partial[lane] += term(c + lane);
    double total = 0;
    for (; c < columns; ++c) total += term(c);
    for (const double p : partial) total += p;
    return total;
  }
  double dot(const double* x, const double* w) const {
    return sum([=](std::size_t c) { return x[c] * w[c]; });
  }
  double dot_of_squares(const double* x, const double* w) const {
    return sum([=](std::size_t c) { return x[c] * x[c] * w[c]; });
  }
};

void add(Sums& to, const Sums& from) {
  for (std::size_t i = 0; i < from.values.size(); ++i) to.values[i] += from.values[i];
  for (std::size_t i = 0; i < from.squares.size(); ++i) to.squares[i] += from.squares[i];
}

// Of a matrix whose rows' elements lie one beside the other, or of any at all.
MatrixSums sum_by_rows(Backend& backend, const Tensor& t, const Weights& over_columns, const Weights& over_rows) {
  const std::int64_t rows = t.dim(0), columns = t.dim(1);
  const auto count = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  MatrixSums sums;
  if (!over_columns.values.empty()) sums.of_rows = {Values(count(rows)), Values(count(rows))};
  if (!over_rows.values.empty()) sums.of_columns = {Values(count(columns)), Values(count(columns))};
  const std::int64_t step = std::max<std::int64_t>(1, std::max(t.step(0), columns));
  const std::int64_t at_once = std::clamp<std::int64_t>(elements_at_once / step, 1, rows);
  const std::int64_t processors = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, most_threads);
  const Work work{over_columns, over_rows, count(columns)};
  for (std::int64_t begin = 0; begin < rows; begin += at_once) {
    const std::int64_t n = std::min(at_once, rows - begin);
    const Raw raw = read_raw(backend, t.slice(0, begin, n));
    const auto read_row = [&](std::int64_t r, double* out) { raw.row(r, out); };
    const std::int64_t threads =
        std::max<std::int64_t>(1, std::min({processors, n, n * columns / elements_of_a_thread}));
    std::vector<Sums> parts(count(threads), sums.of_columns);
    for (Sums& part : parts) {
      std::fill(part.values.begin(), part.values.end(), 0.0);
      std::fill(part.squares.begin(), part.squares.end(), 0.0);
    }
    std::vector<std::jthread> others;
    for (std::int64_t i = 1; i < threads; ++i)
      others.emplace_back(
          [&, i] { work.rows(begin, i * n / threads, (i + 1) * n / threads, read_row, sums, parts[count(i)]); });
    work.rows(begin, 0, n / threads, read_row, sums, parts[0]);
    others.clear();
    for (const Sums& part : parts) add(sums.of_columns, part);
  }
  return sums;
}

}  // namespace

Weights random_signs(std::int64_t count, std::uint64_t stream) {
  Weights weights = ones(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < weights.values.size(); ++i)
    weights.values[i] = philox(0x5eed, stream, i)[0] & 1U ? 1 : -1;
  return weights;
}

MatrixSums sum_matrix(Backend& backend, const Tensor& t, const Weights& over_columns, const Weights& over_rows) {
  if (t.step(1) == 1 || t.step(0) != 1) return sum_by_rows(backend, t, over_columns, over_rows);
  MatrixSums turned = sum_by_rows(backend, t.transposed(0, 1), over_rows, over_columns);
  std::swap(turned.of_rows, turned.of_columns);
  return turned;
}

double elements_read(const Tensor& t) {
  return static_cast<double>((t.dim(0) - 1) * t.step(0) + (t.dim(1) - 1) * t.step(1) + 1);
}

}  // namespace assay::compute::audit
