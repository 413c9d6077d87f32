// Matrix products, by Freivalds' check: with random signs s and t, C s is held against A (B s), each row for itself,
// and t' C against (t' A) B, each column for itself. A row, a column or an element that is wrong shows with its place.
// The first product of each kind is looked at whole, all matrices of a batch; of further large ones some rows.
#include <cmath>

#include "judge.hpp"
#include "signed_sums.hpp"

namespace assay::compute {

using audit::Lines;
using audit::Places;
using audit::Rounding;
using audit::Sum;
using audit::sum_at;
using audit::Values;
using audit::weights_of;
using Weights = LineWeights;
using Sums = LineSums;

namespace {

constexpr std::int64_t matrices_of_many = 4, rows_of_product = 16;
constexpr double product_at_once = 1 << 22;  // a smaller product is looked at in all rows

// One matrix of a tensor of rank 2 to 4.
Tensor matrix(const Tensor& t, std::int64_t index) {
  Tensor m = t;
  for (int d = t.rank - 3; d >= 0; --d) {
    m = m.slice(d, index % t.dim(d), 1);
    index /= t.dim(d);
  }
  Tensor flat(m.data, m.dtype, {t.dim(-2), t.dim(-1)});
  flat.stride[0] = t.step(-2);
  flat.stride[1] = t.step(-1);
  return flat;
}

// What a product is looked at by: the part of Matmul that is alike for all matrices of a batch.
struct Factors {
  Weights row_signs, column_signs;       // of c
  Weights over_rows_of_a, over_columns;  // with scales; `over_columns` of b
  Values bias, row_scale, column_scale;  // of c; scales empty: 1
};

std::string signature_of(const op::Matmul& op, std::int64_t k) {
  std::string signature = " k ";
  signature += std::to_string(k);
  if (op.transpose_a) signature += " transposed a";
  if (op.transpose_b) signature += " transposed b";
  if (op.accumulate) signature += " accumulate";
  if (op.bias) signature += " bias";
  if (op.residual) signature += " residual";
  if (op.a_scale) signature += op.b_scale ? " scaled" : " scaled as one";
  if (op.fast_accumulation) signature += " fast";
  return signature;
}

// Whether the tensors' shapes fit; the device refuses a product if they do not.
bool fits(const op::Matmul& op) {
  const Tensor &a = op.a, &b = op.b, &c = op.c;
  if (c.rank < 2 || a.rank != c.rank || b.rank != c.rank) return false;
  for (int d = 0; d < c.rank - 2; ++d)
    if (a.dim(d) != c.dim(d) || b.dim(d) != c.dim(d)) return false;
  const std::int64_t m = a.dim(op.transpose_a ? -1 : -2), k = a.dim(op.transpose_a ? -2 : -1);
  const std::int64_t n = b.dim(op.transpose_b ? -2 : -1);
  if (m != c.dim(-2) || n != c.dim(-1) || k != b.dim(op.transpose_b ? -1 : -2) || k == 0) return false;
  if (op.bias && op.bias.elements() != n) return false;
  if (op.residual && (op.residual.rank != c.rank || op.residual.shape != c.shape)) return false;
  if (op.b_scale) return op.b_scale.elements() == n && op.a_scale && op.a_scale.elements() == m;
  return !op.a_scale || op.a_scale.elements() == 1;
}

// `weights` times `scale`, of one number each.
Weights scaled(Weights weights, const Values& scale) {
  for (std::size_t i = 0; i < scale.size(); ++i) {
    weights.values[i] *= scale[i];
    weights.squares[i] *= scale[i] * scale[i];
  }
  return weights;
}

}  // namespace

void AuditedBackend::execute(const op::Matmul& op) {
  const auto call = [&] { real().run(op); };
  if (op.c.elements() == 0 || !fits(op)) return call();
  const std::int64_t m = op.c.dim(-2), n = op.c.dim(-1), k = op.transpose_a ? op.a.dim(-2) : op.a.dim(-1);
  const std::int64_t count = op.c.elements() / (m * n);
  const auto left_of = [&](std::int64_t i) {
    const Tensor t = matrix(op.a, i);
    return op.transpose_a ? t.transposed(0, 1) : t;
  };
  const auto right_of = [&](std::int64_t i) {
    const Tensor t = matrix(op.b, i);
    return op.transpose_b ? t.transposed(0, 1) : t;
  };
  const auto old_of = [&](std::int64_t i) { return matrix(op.accumulate ? Tensor(op.c) : Tensor(op.residual), i); };
  const bool adds = op.accumulate || op.residual;
  const auto f = [](std::int64_t x) { return static_cast<double>(x); };

  const bool small = f(m) * f(k + n) < product_at_once;
  const double of_b = audit::elements_read(right_of(0));
  const double of_whole =
      audit::elements_read(left_of(0)) + 2 * of_b + (adds ? 2 : 1) * audit::elements_read(matrix(op.c, 0));
  const std::string signature = signature_of(op, k);
  const bool first = judge_->may_look_at_whole(op.name, op.c, f(count) * of_whole, signature);
  const bool whole = first || small;
  const Places matrices = audit::some_of(count, first ? count : matrices_of_many);
  const Places rows = audit::some_of(m, whole ? m : rows_of_product);
  const double of_rows = of_b + f(static_cast<std::int64_t>(rows.size())) * f(k + n) +
                         (op.transpose_a ? audit::elements_read(left_of(0)) : 0);
  // The first of a kind is beside the limits, which are for all others.
  const double cost = first ? 0 : f(static_cast<std::int64_t>(matrices.size())) * (small ? of_whole : of_rows);
  const bool is_new = judge_->is_new(op.name, op.c, signature);
  if (!judge_->begins(op.name, op.c, cost, signature)) return call();
  if (is_new && !first && !small) judge_->leave_out_of_this("most rows of");

  Factors factors{audit::random_signs(m, 2), audit::random_signs(n, 1), {}, {}, {}, {}, {}};
  if (op.a_scale) {
    factors.row_scale = judge_->read(op.a_scale);
    if (!op.b_scale) factors.row_scale.resize(static_cast<std::size_t>(m), factors.row_scale.front());
  }
  if (op.b_scale) factors.column_scale = judge_->read(op.b_scale);
  if (op.bias) factors.bias = judge_->read(op.bias);
  factors.over_rows_of_a = scaled(factors.row_signs, factors.row_scale);
  factors.over_columns = scaled(factors.column_signs, factors.column_scale);

  const std::shared_ptr<Inspector> inspector = inspector_of(real());
  // Sums over a part of a matrix: of all rows and columns, or of the rows that are looked at.
  const auto sums_of = [&](const Tensor& t, const Weights& over_columns, const Weights& over_rows) {
    if (whole) return inspector->sum_matrix(t, over_columns, over_rows);
    MatrixSums sums;
    const Values lines = inspector->read(t, audit::whole_rows(t, rows));
    const std::size_t width = over_columns.values.size();
    for (std::size_t first = 0; first < lines.size(); first += width) {
      double value = 0, square = 0;
      for (std::size_t i = 0; i < width; ++i) {
        value += over_columns.values[i] * lines[first + i];
        square += over_columns.squares[i] * lines[first + i] * lines[first + i];
      }
      sums.of_rows.values.push_back(value);
      sums.of_rows.squares.push_back(square);
    }
    return sums;
  };
  std::vector<MatrixSums> before;
  for (const std::int64_t i : matrices)
    before.push_back(adds ? sums_of(old_of(i), factors.column_signs, factors.row_signs) : MatrixSums());
  call();

  Rounding rounding = audit::rounding_of_products(op.a.dtype, static_cast<bool>(op.a_scale), op.c.dtype,
                                                  Judge::rounding_of(op.c.dtype), math_, k);
  const double alpha = static_cast<double>(op.alpha);
  double of_bias = 0, of_bias_squares = 0, of_row_signs = 0;
  for (std::size_t j = 0; j < factors.bias.size(); ++j) {
    of_bias += factors.column_signs.values[j] * factors.bias[j];
    of_bias_squares += factors.bias[j] * factors.bias[j];
  }
  for (const double sign : factors.row_signs.values) of_row_signs += sign;
  const auto product = [&](const Sums& sums, std::size_t i, const Values& scale, std::int64_t place) {
    const double factor = alpha * (scale.empty() ? 1 : scale[static_cast<std::size_t>(place)]);
    return Sum{factor * sums.values[i], std::abs(factor) * std::sqrt(sums.squares[i])};
  };

  const double kept = op.residual ? static_cast<double>(op.residual_scale) : 1;
  const auto old_sum = [&](const Sums& sums, std::size_t i) {
    const Sum old = sum_at(sums, i);
    return Sum{kept * old.value, std::abs(kept) * old.norm};
  };

  for (std::size_t which = 0; which < matrices.size(); ++which) {
    const std::int64_t index = matrices[which];
    const Tensor right = right_of(index);
    const MatrixSums b_signs = inspector->sum_matrix(right, factors.over_columns, {});
    const MatrixSums a = sums_of(left_of(index), weights_of(b_signs.of_rows), factors.over_rows_of_a);
    const MatrixSums c = sums_of(matrix(op.c, index), factors.column_signs, factors.row_signs);
    const auto fixed_step = [&](std::int64_t terms) {
      // Below the least normal number a device may take 0 for an input or a result.
      return (op.c.dtype == DType::f16 ? 0x1p-25 : 0x1p-124) * std::sqrt(f(terms));
    };
    Lines of_rows{.name = "row"}, of_columns{.name = "column"};
    rounding.least = fixed_step(n);
    for (std::size_t r = 0; r < rows.size(); ++r)
      of_rows.judge({rows[r], sum_at(c.of_rows, r), product(a.of_rows, r, factors.row_scale, rows[r]),
                     old_sum(before[which].of_rows, r), Sum{of_bias, std::sqrt(of_bias_squares)}},
                    rounding);
    rounding.least = fixed_step(m);
    if (whole) {
      const MatrixSums b = inspector->sum_matrix(right, {}, weights_of(a.of_columns));
      for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j) {
        const double bias = factors.bias.empty() ? 0 : factors.bias[j];
        of_columns.judge(
            {static_cast<std::int64_t>(j), sum_at(c.of_columns, j),
             product(b.of_columns, j, factors.column_scale, static_cast<std::int64_t>(j)),
             old_sum(before[which].of_columns, j), Sum{of_row_signs * bias, std::abs(bias) * std::sqrt(f(m))}},
            rounding);
      }
    }
    audit::decide(*judge_, "c", index, of_rows, of_columns);
  }
}

}  // namespace assay::compute
