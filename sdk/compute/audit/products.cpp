// Matrix products: of some rows, the sum over all columns with random signs.
#include <cmath>

#include "judge.hpp"
#include "masks.hpp"

namespace assay::compute {

using audit::Places;
using audit::Values;

namespace {

constexpr std::int64_t matrices_of_many = 4, rows_of_product = 16;
constexpr double product_at_once = 1 << 22;  // a smaller product is looked at in all rows

// Sums of roundings are normal. Of a million rows one is beyond five deviations; all together, they are known well.
constexpr double most_deviations = 6, most_deviations_together = 2;
constexpr std::size_t enough_rows = 8;

double sign(std::int64_t column) {
  return audit::philox(0x5eed, 1, static_cast<std::uint64_t>(column))[0] & 1U ? 1 : -1;
}

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

struct Sum {
  double value = 0, norm = 0;  // with the signs; the Euclidean norm of its terms
};

}  // namespace

void AuditedBackend::execute(const op::Matmul& op) {
  const auto call = [&] { real().run(op); };
  const std::int64_t m = op.c.dim(-2), n = op.c.dim(-1), k = op.transpose_a ? op.a.dim(-2) : op.a.dim(-1);
  const std::int64_t count = op.c.elements() / (m * n);
  const bool small = static_cast<double>(m) * static_cast<double>(k + n) < product_at_once;
  const Places matrices = audit::some_of(count, matrices_of_many),
               rows = audit::some_of(m, small ? m : rows_of_product);
  const auto of_one = [](std::int64_t x, std::int64_t y) { return static_cast<double>(x) * static_cast<double>(y); };
  const double cost =
      static_cast<double>(matrices.size()) *
      (2 * of_one(n, k) + of_one(static_cast<std::int64_t>(rows.size()), k + n) + (op.transpose_a ? of_one(m, k) : 0));
  std::string signature = " k ";
  signature += std::to_string(k);
  if (op.transpose_a) signature += " transposed a";
  if (op.transpose_b) signature += " transposed b";
  if (op.accumulate) signature += " accumulate";
  if (op.bias) signature += " bias";
  if (op.residual) signature += " residual";
  if (op.a_scale) signature += op.b_scale ? " scaled" : " scaled as one";
  if (op.fast_accumulation) signature += " fast";
  if (!judge_->begins(op.name, op.c, cost, signature)) return call();

  std::vector<Values> before;
  for (const std::int64_t i : matrices)
    before.push_back(op.accumulate || op.residual
                         ? judge_->read_rows(matrix(op.accumulate ? Tensor(op.c) : Tensor(op.residual), i), rows)
                         : Values());
  call();

  const auto columns = static_cast<std::size_t>(n), depth = static_cast<std::size_t>(k);
  Values signs(columns);
  for (std::size_t j = 0; j < columns; ++j) signs[j] = sign(static_cast<std::int64_t>(j));
  const auto signed_sum = [&](const double* values) {
    Sum sum;
    for (std::size_t j = 0; j < columns; ++j) {
      sum.value += signs[j] * values[j];
      sum.norm += values[j] * values[j];
    }
    sum.norm = std::sqrt(sum.norm);
    return sum;
  };
  const Values bias = op.bias ? judge_->read(op.bias) : Values(columns);
  const Sum of_bias = signed_sum(bias.data());
  const bool rounds_inputs = math_ == ProductMath::tf32 && op.a.dtype == DType::f32;
  const double alpha = static_cast<double>(op.alpha);

  for (std::size_t which = 0; which < matrices.size(); ++which) {
    const Tensor left = matrix(op.a, matrices[which]), right = matrix(op.b, matrices[which]);
    const Tensor result = matrix(op.c, matrices[which]);
    Values bs = judge_->read(op.transpose_b ? right.transposed(0, 1) : right);  // [k, n]
    std::vector<Sum> of_b(depth);
    if (op.b_scale) {
      const Values scale = judge_->read(op.b_scale);
      for (std::size_t l = 0; l < depth; ++l)
        for (std::size_t j = 0; j < columns; ++j) bs[l * columns + j] *= scale[j];
    }
    for (std::size_t l = 0; l < depth; ++l) of_b[l] = signed_sum(bs.data() + l * columns);
    const Values a_scale = op.a_scale ? judge_->read(op.a_scale) : Values();
    const Values as = judge_->read_rows(op.transpose_a ? left.transposed(0, 1) : left, rows);
    const Values cs = judge_->read_rows(result, rows);
    double together = 0;
    std::size_t judged = 0;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      Sum expected;
      const double scale = !op.a_scale ? 1 : a_scale[op.b_scale ? static_cast<std::size_t>(rows[r]) : 0];
      for (std::size_t l = 0; l < depth; ++l) {
        const double a = as[r * depth + l] * scale;
        expected.value += a * of_b[l].value;
        const double term = a * of_b[l].norm;
        expected.norm += term * term;
      }
      const Sum old = op.accumulate || op.residual ? signed_sum(before[which].data() + r * columns) : Sum();
      const Sum found = signed_sum(cs.data() + r * columns);
      const double value = alpha * expected.value + old.value + of_bias.value;
      const double terms = std::abs(alpha) * std::sqrt(expected.norm);
      if (!std::isfinite(value) || !std::isfinite(terms)) {
        if (std::isfinite(found.value))
          judge_->wrong("c", "hides what is not finite in row " + std::to_string(rows[r]));
        continue;
      }
      if (op.c.dtype == DType::f16 && !std::isfinite(found.value) && terms > 1e4) continue;  // may overflow
      // Deviations of: the result's rounding, the partial sums' in fp32, the inputs' (tf32).
      const double stored = Judge::rounding_of(op.c.dtype) / std::sqrt(3.0) * (found.norm + old.norm + of_bias.norm);
      // The matrix units of a GPU keep three bits less while they add products of 16-bit numbers, and of 8-bit ones
      // about 14 bits.
      const double unit = op.a.dtype == DType::f32 ? 0x1p-24 : op.a_scale ? 0x1p-14 : 0x1p-21;
      const double summed = unit * std::sqrt(static_cast<double>(k) + 16) * (terms + found.norm);
      const double inputs = rounds_inputs ? 0x1p-11 * terms : 0;
      const double least = op.c.dtype == DType::f16 ? 0x1p-25 * std::sqrt(static_cast<double>(n)) : 0x1p-126;
      const double deviation = std::sqrt(stored * stored + summed * summed + inputs * inputs) + least;
      judge_->within("the signed sum of c's row", rows[r], found.value, value, most_deviations * deviation);
      const double relative = (found.value - value) / deviation;
      together += relative * relative;
      ++judged;
    }
    if (judged >= enough_rows)
      judge_->within("the root mean square, in deviations, of sums of c's rows,", matrices[which],
                     std::sqrt(together / static_cast<double>(judged)), 0, most_deviations_together);
  }
}

}  // namespace assay::compute
