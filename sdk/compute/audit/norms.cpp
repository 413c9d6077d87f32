// Normalisation over rows, alone and with what is fused to it. RMS normalisation is layer normalisation with a mean and
// a bias of 0.
#include <assay/compute/host_threads.hpp>

#include <array>
#include <cmath>
#include <mutex>
#include <optional>
#include <vector>

#include "judge.hpp"
#include "lines.hpp"
#include "masks.hpp"

namespace assay::compute {

using audit::Places;
using audit::Segments;
using audit::Values;

namespace {

constexpr std::int64_t rows_of_norm = 16;

Places rows_looked_at(const Tensor& t) {
  const std::int64_t rows = audit::rows_of(t);
  return audit::some_of(rows, t.elements() <= audit::room ? rows : rows_of_norm);
}

double all_of(const Tensor& t, double cost) { return cost * static_cast<double>(t.elements()); }

struct Statistics {
  double mean = 0, rstd = 0;
  double off = 0;  // by how much the mean of the fp32 inputs may be off: relative to the deviation
};

Statistics statistics_of(const double* row, std::size_t columns, bool layer, double eps) {
  Statistics s;
  double squares = 0, sizes = 0;
  for (std::size_t c = 0; layer && c < columns; ++c) s.mean += row[c] / static_cast<double>(columns);
  for (std::size_t c = 0; c < columns; ++c) {
    squares += (row[c] - s.mean) * (row[c] - s.mean);
    sizes += std::abs(row[c]);
  }
  s.rstd = 1 / std::sqrt(squares / static_cast<double>(columns) + eps);
  s.off = sizes / static_cast<double>(columns) * s.rstd;
  return s;
}

}  // namespace

// The forward of rows `x`, as they were stored; `rounded` more than that may have been rounded on the way to y.
template <class Judge>
static void judge_forward(Judge& judge, const Places& rows, const Values& x, const Values& weight, const Values& bias,
                          bool layer, float eps, const Tensor& y, const Tensor* mean, const Tensor& rstd,
                          double rounded, DType x_type = DType::f32, const op::EightBitRows& eight_bits = {}) {
  const std::size_t columns = weight.size();
  Values normed;  // what the 8 bits are made of, where there is no y
  const auto one_row = [](const Tensor& statistic) { return statistic.view({statistic.elements(), 1}); };
  const Values found = y ? judge.read_rows(y, rows) : Values(), found_rstd = judge.read_rows(one_row(rstd), rows);
  const Values found_mean = mean ? judge.read_rows(one_row(*mean), rows) : Values();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const double* const row = x.data() + r * columns;
    const Statistics s = statistics_of(row, columns, layer, static_cast<double>(eps));
    const double stored = rounded * s.off;  // of a sum that was rounded before it was stored
    judge.element(rstd, "rstd", rows[r], found_rstd[r], s.rstd, s.rstd * (2 + s.off), s.rstd * rounded);
    if (mean) judge.element(*mean, "mean", rows[r], found_mean[r], s.mean, s.off / s.rstd, rounded * s.off / s.rstd);
    for (std::size_t c = 0; c < columns; ++c) {
      const double normal = (row[c] - s.mean) * s.rstd, b = bias.empty() ? 0 : bias[c];
      if (!y) {
        normed.push_back(normal * weight[c]);
        continue;
      }
      const double terms =
          std::abs(weight[c]) * (2 * std::abs(normal) + (std::abs(row[c]) + 0) * s.rstd + s.off) + std::abs(b);
      judge.element(y, "y", rows[r] * static_cast<std::int64_t>(columns) + static_cast<std::int64_t>(c),
                    found[r * columns + c], normal * weight[c] + b, terms,
                    std::abs(weight[c]) * (rounded * std::abs(row[c]) * s.rstd + stored));
    }
  }
  if (!eight_bits) return;
  if (y) return audit::judge_beside(judge, y, eight_bits);
  audit::judge_lines(judge, rows, normed, eight_bits.numbers, eight_bits.inverse_scale,
                     2 * (judge.rounding_of(x_type) + rounded));
}

template <class Judge, class Op>
static Values factors_of(Judge& judge, const Op& op) {
  Values factors = judge.read(op.weight);
  for (double& factor : factors) factor += static_cast<double>(op.weight_offset);
  return factors;
}

void AuditedBackend::execute(const op::RmsNormForward& op) {
  const auto call = [&] { real().run(op); };
  const char* const signature = op.eight_bits ? " in 8 bits" : "";
  if (!judge_->begins(op.name, op.x, audit::elements_looked_at(op.x, 3), signature)) return call();
  const Places rows = rows_looked_at(op.x);
  const Values in = judge_->read_rows(op.x, rows);
  call();
  judge_forward(*judge_, rows, in, factors_of(*judge_, op), {}, false, op.eps, op.y, nullptr, op.rstd, 0, op.x.dtype,
                op.eight_bits);
}

void AuditedBackend::execute(const op::AddRmsNormForward& op) {
  const auto call = [&] { real().run(op); };
  const char* const signature = op.eight_bits ? " in 8 bits" : "";
  if (!judge_->begins(op.name, op.sum, audit::elements_looked_at(op.sum, 5), signature)) return call();
  const Places rows = rows_looked_at(op.sum);
  const Values a = judge_->read_rows(op.x, rows), b = judge_->read_rows(op.residual, rows);
  call();
  judge_->each(op.sum, "sum", audit::whole_rows(op.sum, rows), [&](std::size_t i, std::int64_t, std::size_t) {
    return std::pair(a[i] + b[i], std::abs(a[i]) + std::abs(b[i]));
  });
  judge_forward(*judge_, rows, judge_->read_rows(op.sum, rows), factors_of(*judge_, op), {}, false, op.eps, op.y,
                nullptr, op.rstd, Judge::rounding_of(op.sum.dtype), op.sum.dtype, op.eight_bits);
}

void AuditedBackend::execute(const op::LayerNormForward& op) {
  const auto call = [&] { real().run(op); };
  if (!judge_->begins(op.name, op.y, audit::elements_looked_at(op.y, 3))) return call();
  const Places rows = rows_looked_at(op.x);
  const Values in = judge_->read_rows(op.x, rows);
  call();
  judge_forward(*judge_, rows, in, judge_->read(op.weight), judge_->read(op.bias), true, op.eps, op.y, &op.mean,
                op.rstd, 0);
}

void AuditedBackend::execute(const op::DropoutAddLayerNormForward& op) {
  const auto call = [&] { real().run(op); };
  if (!judge_->begins(op.name, op.y, audit::elements_looked_at(op.y, 12))) return call();
  const Places rows = rows_looked_at(op.sum);
  const Values in = judge_->read_rows(op.x, rows), old = judge_->read_rows(op.residual, rows);
  const Values b = op.bias ? judge_->read(op.bias) : Values();
  call();
  const audit::Mask mask(real(), op.dropout);
  judge_->each(op.sum, "sum", audit::whole_rows(op.sum, rows), [&](std::size_t i, std::int64_t place, std::size_t c) {
    const double branch = in[i] + (b.empty() ? 0 : b[c]), factor = mask(place);
    return std::pair(
        (factor == 0 ? 0 : branch * factor) + old[i],
        (factor == 0 ? 0 : (std::abs(in[i]) + (b.empty() ? 0 : std::abs(b[c]))) * factor) + std::abs(old[i]));
  });
  judge_forward(*judge_, rows, judge_->read_rows(op.sum, rows), judge_->read(op.weight), judge_->read(op.norm_bias),
                true, op.eps, op.y, &op.mean, op.rstd, Judge::rounding_of(op.sum.dtype));
}

// What the backward of a normalisation leaves. All of it is read where vectors are summed over rows.
struct NormBackward {
  const Tensor &dy, &x, &weight;
  const Tensor* mean;
  const Tensor &rstd, &residual, &dx, &dweight;
  const Tensor* dbias;
  bool accumulate;
  Values dys, xs, ws, means, rstds, residuals, weights_before, biases_before;
  Values dy_terms = {};  // where dy was made in fp32 on the way: the terms of each

  template <class Judge>
  void read(Judge& judge) {
    dys = judge.read(dy), xs = judge.read(x), ws = judge.read(weight), rstds = judge.read(rstd);
    if (mean) means = judge.read(*mean);
    if (residual) residuals = judge.read(residual);
    if (accumulate) weights_before = judge.read(dweight);
    if (accumulate && dbias) biases_before = judge.read(*dbias);
  }

  double dy_term(std::size_t i) const { return std::abs(dy_terms.empty() ? dys[i] : dy_terms[i]); }
  double normal(std::size_t row, std::size_t i) const { return (xs[i] - (mean ? means[row] : 0)) * rstds[row]; }
  // fp32: the difference by the mean, and products.
  double normal_terms(std::size_t row, std::size_t i) const {
    return (2 * std::abs(xs[i]) + (mean ? std::abs(means[row]) : 0)) * rstds[row];
  }

  // `on_the_way`: rounding of 16 bits between dy and the sum with the residual.
  template <class Judge>
  void judge_vectors(Judge& judge) const {
    const std::size_t columns = ws.size(), rows = rstds.size();
    Values weights = accumulate ? weights_before : Values(columns), biases = Values(columns);
    if (accumulate && dbias) biases = biases_before;
    Values weight_terms(columns), bias_terms(columns);
    for (std::size_t c = 0; c < columns; ++c)
      weight_terms[c] = std::abs(weights[c]), bias_terms[c] = std::abs(biases[c]);
    std::mutex adding;
    over_rows(rows, columns, [&](std::size_t first, std::size_t last) {
      Values of_weights(columns), of_weight_terms(columns), of_biases(columns), of_bias_terms(columns);
      for (std::size_t r = first; r < last; ++r)
        for (std::size_t c = 0; c < columns; ++c) {
          const std::size_t i = r * columns + c;
          of_weights[c] += dys[i] * normal(r, i);
          of_weight_terms[c] += dy_term(i) * normal_terms(r, i);
          of_biases[c] += dys[i];
          of_bias_terms[c] += std::abs(dys[i]);
        }
      const std::scoped_lock lock(adding);
      for (std::size_t c = 0; c < columns; ++c) {
        weights[c] += of_weights[c], weight_terms[c] += of_weight_terms[c];
        biases[c] += of_biases[c], bias_terms[c] += of_bias_terms[c];
      }
    });
    const auto of = [](const Values& values, const Values& terms) {
      return [&](std::size_t i, std::int64_t, std::size_t) { return std::pair(values[i], terms[i]); };
    };
    judge.each(dweight, "dweight", audit::whole(dweight), of(weights, weight_terms));
    if (dbias) judge.each(*dbias, "dbias", audit::whole(*dbias), of(biases, bias_terms));
  }

  template <class Work>
  static void over_rows(std::size_t rows, std::size_t columns, const Work& work) {
    constexpr std::size_t elements_of_a_thread = std::size_t{1} << 16;
    in_parts(static_cast<std::int64_t>(rows),
             static_cast<std::int64_t>(elements_of_a_thread / std::max<std::size_t>(1, columns) + 1),
             [&](std::int64_t first, std::int64_t last) {
               work(static_cast<std::size_t>(first), static_cast<std::size_t>(last));
             });
  }

  // The gradient by x of each element, and its terms; with the residual.
  void gradient(Values& values, Values& terms) const {
    const std::size_t columns = ws.size(), rows = rstds.size();
    values.resize(xs.size()), terms.resize(xs.size());
    over_rows(rows, columns, [&](std::size_t first, std::size_t last) {
      for (std::size_t r = first; r < last; ++r) gradient_of_row(r, values, terms);
    });
  }
  void gradient_of_row(std::size_t r, Values& values, Values& terms) const {
    const std::size_t columns = ws.size();
    const auto n = static_cast<double>(columns);
    {
      double ones = 0, normals = 0, ones_terms = 0, normals_terms = 0;
      for (std::size_t c = 0; c < columns; ++c) {
        const std::size_t i = r * columns + c;
        const double g = dys[i] * ws[c], term = dy_term(i) * std::abs(ws[c]);
        if (mean) ones += g / n, ones_terms += term / n;
        normals += g * normal(r, i) / n;
        normals_terms += term * normal_terms(r, i) / n;
      }
      for (std::size_t c = 0; c < columns; ++c) {
        const std::size_t i = r * columns + c;
        const double g = dys[i] * ws[c], term = dy_term(i) * std::abs(ws[c]);
        const double old = residuals.empty() ? 0 : residuals[i];
        values[i] = rstds[r] * (g - ones - normal(r, i) * normals) + old;
        terms[i] = rstds[r] * (2 * term + ones_terms + normal_terms(r, i) * normals_terms) + std::abs(old);
      }
    }
  }

  // The gradient by x, which it leaves in `values` and `terms`, and those by the vectors.
  template <class Judge>
  void judge(Judge& judge, const char* name, Values& values, Values& terms) const {
    gradient(values, terms);
    const Values found = judge.read(dx);
    for (std::size_t i = 0; i < found.size(); ++i)
      judge.element(dx, name, static_cast<std::int64_t>(i), found[i], values[i], terms[i]);
    judge_vectors(judge);
  }
};

void AuditedBackend::execute(const op::RmsNormBackward& op) {
  const auto call = [&] { real().run(op); };
  std::string kind = op.accumulate ? " accumulate" : "";
  if (op.eight_bits) kind += " in 8 bits";
  if (!judge_->begins(op.name, op.x, all_of(op.x, 4), kind)) return call();
  NormBackward b{op.dy,         op.x, op.weight, nullptr, op.rstd, op.residual, op.dx, op.dweight, nullptr,
                 op.accumulate, {},   {},        {},      {},      {},          {},    {},         {}};
  b.read(*judge_);
  b.ws = factors_of(*judge_, op);
  call();
  Values values, terms;
  b.judge(*judge_, "dx", values, terms);
  if (op.y)
    judge_->each(op.y, "y", audit::whole(op.y), [&](std::size_t i, std::int64_t, std::size_t c) {
      const std::size_t row = i / b.ws.size();
      return std::pair(b.normal(row, i) * b.ws[c], b.normal_terms(row, i) * std::abs(b.ws[c]));
    });
  if (op.eight_bits) audit::judge_beside(*judge_, op.dx, op.eight_bits);
}

void AuditedBackend::execute(const op::LayerNormBackward& op) {
  const auto call = [&] { real().run(op); };
  if (!judge_->begins(op.name, op.x, all_of(op.x, 4))) return call();
  NormBackward b{op.dy,         op.x, op.weight, &op.mean, op.rstd, op.residual, op.dx, op.dweight, &op.dbias,
                 op.accumulate, {},   {},        {},       {},      {},          {},    {},         {}};
  b.read(*judge_);
  call();
  Values values, terms;
  b.judge(*judge_, "dx", values, terms);
}

void AuditedBackend::execute(const op::DropoutAddLayerNormBackward& op) {
  const auto call = [&] { real().run(op); };
  if (!judge_->begins(op.name, op.sum, all_of(op.sum, 12))) return call();
  const Tensor none;
  NormBackward b{op.dy,         op.sum, op.weight, &op.mean, op.rstd, none, op.dsum, op.dweight, &op.dnorm_bias,
                 op.accumulate, {},     {},        {},       {},      {},   {},      {},         {}};
  b.read(*judge_);
  const Values bias_before = op.accumulate && op.dbias ? judge_->read(op.dbias) : Values();
  call();
  Values values, terms;
  b.judge(*judge_, "dsum", values, terms);
  if (!op.dx && !op.dbias) return;
  const audit::Mask mask(real(), op.dropout);
  const double stored = Judge::rounding_of(op.dsum.dtype);  // whether dx is made of dsum before or after its rounding
  const std::size_t columns = b.ws.size();
  Values through(values.size()), by_bias = bias_before.empty() ? Values(columns) : bias_before, bias_terms(columns);
  Values bias_stored(columns);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    through[i] = mask.through(place, values[i]);
    by_bias[i % columns] += through[i];
    bias_terms[i % columns] += mask.through(place, terms[i]);
    bias_stored[i % columns] += std::abs(through[i]) * stored * (stored > 1e-6 ? 1 : 0);
  }
  if (op.dx) {
    const Values there = judge_->read(op.dx);
    for (std::size_t i = 0; i < there.size(); ++i) {
      const auto place = static_cast<std::int64_t>(i);
      judge_->element(op.dx, "dx", place, there[i], through[i], mask.through(place, terms[i]),
                      std::abs(through[i]) * stored);
    }
  }
  if (op.dbias) {
    const Values there = judge_->read(op.dbias);
    for (std::size_t c = 0; c < columns; ++c)
      judge_->element(op.dbias, "dbias", static_cast<std::int64_t>(c), there[c], by_bias[c],
                      bias_terms[c] + (bias_before.empty() ? 0 : std::abs(bias_before[c])), bias_stored[c]);
  }
}

// ---- heads, normalised and turned ----------------------------------------------------------------------------------

namespace {

// Rotary position of pairs, of rows [B, T, H] of D elements.
struct Rotation {
  Values cos, sin;
  std::int64_t positions, heads;
  double sign;  // -1: back

  // Replaces `values`, all elements of `rows`, and `terms`, what rounding of each is relative to.
  void turn(const Places& rows, Values& values, Values& terms) const {
    const std::size_t columns = rows.empty() ? 0 : values.size() / rows.size();
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (std::size_t c = 0; c < columns; c += 2) {
        const auto at = static_cast<std::size_t>(rows[r] / heads % positions) * (columns / 2) + c / 2;
        const std::size_t i = r * columns + c;
        const double turn = sign * sin[at], even = values[i], odd = values[i + 1];
        const double even_terms = terms[i], odd_terms = terms[i + 1];
        values[i] = even * cos[at] - odd * turn, values[i + 1] = even * turn + odd * cos[at];
        terms[i] = even_terms * std::abs(cos[at]) + odd_terms * std::abs(turn);
        terms[i + 1] = even_terms * std::abs(turn) + odd_terms * std::abs(cos[at]);
      }
  }
};

Values rstds_of(const Values& xs, std::size_t columns, double eps) {
  Values rstds(columns == 0 ? 0 : xs.size() / columns);
  for (std::size_t r = 0; r < rstds.size(); ++r)
    rstds[r] = statistics_of(xs.data() + r * columns, columns, false, eps).rstd;
  return rstds;
}

}  // namespace

void AuditedBackend::execute(const op::HeadNormRotaryForward& op) {
  const auto call = [&] { real().run(op); };
  if (!judge_->begins(op.name, op.x, audit::elements_looked_at(op.x, 4))) return call();
  const Places rows = rows_looked_at(op.x);
  const auto columns = static_cast<std::size_t>(op.x.dim(3));
  const std::int64_t heads = op.x.dim(2);
  const Values in = judge_->read_rows(op.x, rows), weight = factors_of(*judge_, op);
  const Values rstds = rstds_of(in, columns, static_cast<double>(op.eps));
  Values expected(in.size()), terms(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::size_t row = i / columns, first = rows[row] % heads < op.queries ? 0 : columns;
    expected[i] = in[i] * rstds[row] * weight[first + i % columns];
    terms[i] = 3 * std::abs(expected[i]);
  }
  Rotation{judge_->read(op.cos), judge_->read(op.sin), op.x.dim(1), heads, 1}.turn(rows, expected, terms);
  call();
  judge_->each(op.rotated, "rotated", audit::whole_rows(op.rotated, rows),
               [&](std::size_t i, std::int64_t, std::size_t) { return std::pair(expected[i], terms[i]); });
}

void AuditedBackend::execute(const op::HeadNormRotaryBackward& op) {
  const auto call = [&] { real().run(op); };
  if (!judge_->begins(op.name, op.x, all_of(op.x, 6), op.accumulate ? " accumulate" : "")) return call();
  const std::int64_t heads = op.x.dim(2), width = op.x.dim(3);
  // Queries, then keys: each as the backward of a norm whose gradient was turned back.
  const auto part_of = [&](std::int64_t row, std::int64_t first, std::int64_t count) {
    const auto of = [&](const Tensor& t) { return t.slice(2, first, count); };
    const auto row_of = [&](const Tensor& t) { return t.slice(0, row, 1).view({width}); };
    return std::array<Tensor, 5>{of(op.drotated), of(op.x), row_of(op.weight), of(op.dx), row_of(op.dweight)};
  };
  const std::array<std::array<Tensor, 5>, 2> tensors{part_of(0, 0, op.queries),
                                                     part_of(1, op.queries, heads - op.queries)};
  const Tensor none;
  const Values cos = judge_->read(op.cos), sin = judge_->read(op.sin);
  std::vector<NormBackward> parts;
  for (const auto& [drotated, x, weight, dx, dweight] : tensors) {
    NormBackward& b = parts.emplace_back(NormBackward{
        drotated, x, weight, nullptr, none, none, dx, dweight, nullptr, op.accumulate, {}, {}, {}, {}, {}, {}, {}, {}});
    b.dys = judge_->read(drotated), b.xs = judge_->read(x), b.ws = judge_->read(weight);
    for (double& factor : b.ws) factor += static_cast<double>(op.weight_offset);
    b.rstds = rstds_of(b.xs, b.ws.size(), static_cast<double>(op.eps));
    for (const double dy : b.dys) b.dy_terms.push_back(std::abs(dy));
    Rotation{cos, sin, x.dim(1), x.dim(2), -1}.turn(audit::some_of(audit::rows_of(x), audit::rows_of(x)), b.dys,
                                                    b.dy_terms);
    if (op.accumulate) b.weights_before = judge_->read(dweight);
  }
  call();
  for (const NormBackward& b : parts) {
    Values values, terms;
    b.judge(*judge_, "dx", values, terms);
  }
}

}  // namespace assay::compute
