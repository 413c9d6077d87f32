// Compares some heads with float64, in two steps:
//   the timed step once more, into results filled with NaN: rows of out and dq. The rows of dv must add up to those of
//   dout, because probabilities add up to 1, which shows that no query was left out. With projections: every product by
//   a weight, by sketches;
//   the timed step again, with a dout that is 0 except for the chosen queries: every row of dk and dv, and dq.
#include <algorithm>
#include <assay/compute/difference.hpp>
#include <assay/verification/sampling.hpp>
#include <assay/workload/host_copies.hpp>
#include <assay/workload/text.hpp>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>

#include "workload.hpp"

namespace attention {

namespace op = assay::compute::op;

using assay::compute::DType;
using assay::compute::ProductMath;
using assay::compute::Tensor;
using assay::workload::number;

namespace {

// Multiply-adds of one product over the chosen queries: a fraction of a second of the host's time.
constexpr std::int64_t affordable = std::int64_t{1} << 26;
constexpr std::int64_t most_heads = 8;

// Relative to the norm of a row's terms. u is half a unit in the last place (2^-24, 2^-11, 2^-8). In fp32 100 u: scores
// have some ten for their sums of head_dim terms, the exponent passes these on by its size of up to 4, and the sum over
// the row has as many again; both sums grow with their lengths. In bf16 3 u if probabilities and their gradients are
// rounded once each; 8 u on a GPU, which also adds them up in tiles. In fp16 and tf32 10 u. Rounded scores add an error
// of the exponent, u times their size, and the largest of seq scores takes it along. 16-bit types round the scores, the
// probabilities and their gradients; tf32 as fp16. Found in fp32: up to 4e-6 in sequences up to 4096, 1.2e-5 in heads
// of 16,384 columns, and 8e-5 beyond 16,384 tokens. Found in bf16: tiled attention, which keeps scores in fp32, is off
// by up to 7e-3 on a CPU and 1.7e-2 in cuDNN; one that rounds the scores by 5e-3 with 24 tokens and up to 4e-2 with
// many. One operation at a time also rounds the scaled and the masked scores: errors of the exponent, which grow with
// the scores.
double attention_tolerance(const Settings& s, bool on_cpu) {
  const auto seq = static_cast<double>(s.problem.seq),
             columns = static_cast<double>(std::max(s.problem.head_dim, s.problem.value_columns()));
  if (s.precision.product_math == ProductMath::tf32 || s.precision.activation == DType::f16) return 5e-3;
  if (s.precision.activation == DType::f32)
    return 6e-6 * (1 + columns / 4096) + 2e-4 * std::min(1.0, std::pow(seq / 16'384, 3));
  if (s.implementation == Implementation::flash) return on_cpu ? 1.2e-2 : 3e-2;
  const double rounded_scores = std::sqrt(1 + seq / 64);
  return s.execution == Execution::eager ? std::min(8e-2, 2e-2 * rounded_scores)
                                         : std::min(6e-2, 1.5e-2 * rounded_scores);
}

// For products by a weight; each row is one sum. The largest of n normal errors is about sqrt(2 ln n) of one. One error
// is the result's rounding, at most u, and 1.5 u with those of the inputs' gradients (bf16, 2^-8; fp16 and tf32, 2^-11,
// round inputs as well: 4 u). In fp32 it is the partial sums' rounding: 34 u, which grow with their terms. On a CPU up
// to 3e-3 times that is found in bf16 and 6e-7 in fp32.
double projection_tolerance(const Settings& s) {
  const auto most = static_cast<double>(std::max(s.problem.tokens(), s.problem.width()));
  const double largest = std::sqrt(2 * std::log(most + 1));
  if (s.precision.product_math == ProductMath::tf32 || s.precision.activation == DType::f16) return 2e-3 * largest;
  return s.precision.activation == DType::f32 ? 2e-6 * (1 + most / 4096) * largest : 6e-3 * largest;
}

// fp16 has no numbers between 0 and this, which the probabilities of long sequences come near; a sum of `terms` of them
// is off by that much for each column.
double forgiven_of(DType dtype, std::int64_t columns, std::int64_t terms) {
  return dtype == DType::f16 ? 0x1p-24 * std::sqrt(static_cast<double>(columns * (terms + 1))) : 0;
}

// Over all rows the errors of the terms cancel: a sum that lacks a block of queries shows against a narrower bound.
constexpr double narrower_for_sums = 4;

// The largest errors found.
struct Errors {
  double out = 0, dq = 0, dk = 0, dv = 0, value_sums = 0, projections = 0;
  static void add(double& worst, double error) { worst = assay::compute::worse(worst, error); }
  bool within(double attention, double products) const {
    assay::compute::Worst worst;
    for (const double error : {out, dq, dk, dv, narrower_for_sums * value_sums}) worst.add(error);
    return worst.within(attention) && projections <= products;
  }
};

}  // namespace

std::vector<float> Workload::head_of(const Tensor& t, std::int64_t index) {
  const Problem& p = settings_.problem;
  if (!p.is_by_token())
    return assay::workload::download_f32(*backend_, t.view({p.head_count(), p.seq * t.dim(3)}).slice(0, index, 1));
  // Token by token: the head's columns of all rows of its sequence.
  const Tensor sequence = t.transposed(1, 2).slice(0, index / p.heads, 1);
  const std::vector<float> all = assay::workload::download_f32(*backend_, sequence);
  std::vector<float> head;
  head.reserve(static_cast<std::size_t>(p.seq * p.head_dim));
  for (std::int64_t row = 0; row < p.seq; ++row) {
    const auto begin = all.begin() + row * p.width() + index % p.heads * p.head_dim;
    head.insert(head.end(), begin, begin + p.head_dim);
  }
  return head;
}

std::vector<float> Workload::rows_of(const Tensor& t, std::int64_t index, const std::vector<std::int64_t>& rows) {
  const std::vector<float> all = head_of(t, index);
  const std::int64_t width = t.dim(3);
  std::vector<float> chosen;
  for (const std::int64_t row : rows)
    chosen.insert(chosen.end(), all.begin() + row * width, all.begin() + (row + 1) * width);
  return chosen;
}

Workload::SampledHead Workload::sampled(std::int64_t index, const std::vector<std::int64_t>& queries) {
  const Problem& p = settings_.problem;
  Head head{p.seq,    p.head_dim,  p.causal,   static_cast<double>(p.scale()), {}, {}, {}, {},
            p.window, p.documents, p.value_dim};
  head.q = head_of(operands_.q, index);
  head.k = head_of(operands_.k, index);
  head.v = head_of(operands_.v, index);
  if (has_backward()) head.dout = head_of(operands_.dout, index);
  Reference reference = reference_of(head, queries);
  return {index, std::move(head), std::move(reference)};
}

// The distance between the sum of dv's rows and that of dout's, by the norm of all that is summed.
double Workload::error_of_value_sums(const SampledHead& sampled) {
  const auto width = static_cast<std::size_t>(settings_.problem.value_columns());
  const std::vector<float> dv = head_of(operands_.dv, sampled.index);
  std::vector<double> difference(width);
  double squares = 0, terms = 0;
  for (std::size_t i = 0; i < dv.size(); ++i) {
    const auto a = static_cast<double>(dv[i]), b = static_cast<double>(sampled.head.dout[i]);
    difference[i % width] += a - b;
    terms += a * a + b * b;
  }
  for (const double x : difference) squares += x * x;
  const double error = std::sqrt(squares / terms);
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

// The gradient that the backward starts from stays as it is in the rows of the chosen queries of the sampled heads, and
// becomes 0 everywhere else. With projections a row is a token's, of all its heads.
void Workload::keep_gradient_of(const std::vector<SampledHead>& heads, const std::vector<std::int64_t>& queries) {
  const Problem& p = settings_.problem;
  const std::int64_t columns = p.projections ? p.width() : p.value_columns();
  const std::int64_t count = p.tokens() * p.value_width() / columns;
  const Tensor rows = layer_->result_gradient().in_memory_order().view({count, columns});
  std::set<std::int64_t> stay{count};
  for (const SampledHead& head : heads)
    for (const std::int64_t query : queries) stay.insert(layer_->row_of(head.index, query));
  std::int64_t cleared = 0;
  for (const std::int64_t row : stay) {
    if (row > cleared) backend_->run(op::Fill{.x = rows.slice(0, cleared, row - cleared), .value = 0.0});
    cleared = row + 1;
  }
}

void Workload::spoil(const Slots& slots) {
  for (const Slot* slot : slots) backend_->run(op::Fill{.x = slot->in_memory_order(), .value = NAN});
}

// The timed step once more, into results that were filled with NaN: what set-up or an earlier step has left cannot pass
// for its own. Without projections q, k, v and dout are what is given.
void Workload::repeat_into_spoiled_results(const Launch& launch) {
  const bool projects = settings_.problem.projections;
  if (has_forward()) spoil(joined(layer_->results(), {&operands_.out}));
  if (has_forward() && projects) spoil({&operands_.q, &operands_.k, &operands_.v});
  if (has_backward()) spoil(joined(layer_->gradients(), {&operands_.dq, &operands_.dk, &operands_.dv}));
  if (has_backward() && projects) spoil({&operands_.dout});
  repeat_step(launch);
  backend_->synchronize();
  compare_with_timed();
}

std::vector<Layer::ProductError> Workload::errors_of_projections() {
  if (!settings_.problem.projections) return {};
  std::vector<Layer::ProductError> errors = layer_->forward_errors(*backend_);
  if (!has_backward()) return errors;
  for (const Layer::ProductError& e : layer_->backward_errors(*backend_)) errors.push_back(e);
  return errors;
}

std::string Workload::verify(const Launch& launch) {
  const Problem& p = settings_.problem;
  const std::vector<std::int64_t> indices = spread_rows(p.head_count(), most_heads);
  const auto head_count = static_cast<std::int64_t>(indices.size());
  const std::int64_t most_columns = std::max(p.head_dim, p.value_columns());
  const std::vector<std::int64_t> queries = spread_rows(p.seq, affordable / (head_count * p.seq * most_columns));
  const double few = forgiven_of(p.dtype, most_columns, p.seq);
  const double many = forgiven_of(p.dtype, most_columns, static_cast<std::int64_t>(queries.size()));

  assay::begin_part(host_, "timed_step");
  repeat_into_spoiled_results(launch);
  assay::begin_part(host_, "float64_model");
  std::vector<SampledHead> heads;
  Errors errors;
  for (const std::int64_t index : indices) {
    heads.push_back(sampled(index, queries));
    const Reference& expected = heads.back().reference;
    errors.add(errors.out, worst_error(rows_of(operands_.out, index, queries), expected.out, few));
    if (!has_backward()) continue;
    errors.add(errors.dq, worst_error(rows_of(operands_.dq, index, queries), expected.dq, few));
    errors.add(errors.value_sums, error_of_value_sums(heads.back()));
  }
  assay::begin_part(host_, "projections");
  const std::vector<Layer::ProductError> projections = errors_of_projections();
  for (const Layer::ProductError& e : projections) errors.add(errors.projections, e.error);
  if (has_backward()) {
    assay::begin_part(host_, "sums");
    keep_gradient_of(heads, queries);
    spoil({&operands_.dq, &operands_.dk, &operands_.dv});
    repeat_step(launch);
    backend_->synchronize();
    for (const SampledHead& head : heads) {
      errors.add(errors.dq, worst_error(rows_of(operands_.dq, head.index, queries), head.reference.dq, few));
      errors.add(errors.dk, worst_error(head_of(operands_.dk, head.index), head.reference.dk, many));
      errors.add(errors.dv, worst_error(head_of(operands_.dv, head.index), head.reference.dv, many));
    }
  }

  const double tolerance = attention_tolerance(settings_, std::string_view(backend_->kind()) == "cpu"),
               of_products = projection_tolerance(settings_);
  std::string text = "against float64, " + std::to_string(queries.size()) + " of " + std::to_string(p.seq) +
                     " queries of " + std::to_string(head_count) + " of " + std::to_string(p.head_count()) +
                     " heads: out differs by " + number(errors.out);
  if (has_backward())
    text += ", dq by " + number(errors.dq) + ", dk by " + number(errors.dk) + ", dv by " + number(errors.dv) +
            ", the sum of dv's rows from dout's by " + number(errors.value_sums);
  text += " at most, relative to the terms of a row (tolerance " + number(tolerance);
  if (has_backward()) text += ", of the sums " + number(tolerance / narrower_for_sums);
  text += ")";
  if (!projections.empty()) text += "; by sums of their rows with random signs";
  for (const Layer::ProductError& e : projections) text += ", " + std::string(e.name) + " by " + number(e.error);
  if (!projections.empty()) text += " at most (tolerance " + number(of_products) + ")";
  if (!errors.within(tolerance, of_products)) throw assay::Error(ASSAY_WRONG_RESULT, text);
  return text;
}

}  // namespace attention
