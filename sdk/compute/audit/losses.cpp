// The loss, and reductions to one number.
#include <cmath>

#include "judge.hpp"

namespace assay::compute {

using audit::Places;
using audit::Values;

namespace {

Places logits_rows(const Tensor& logits) {
  const std::int64_t rows = audit::rows_of(logits);
  return audit::some_of(rows, logits.elements() <= 4 * audit::room ? rows : 16);
}

double logits_cost(const Tensor& logits) {
  return 4 * static_cast<double>(audit::width_of(logits)) * static_cast<double>(logits_rows(logits).size());
}

struct Row {
  double log_sum = 0, largest = 0;
};

Row summarised(const double* row, std::size_t width) {
  double most = -INFINITY, total = 0, largest = 0;
  for (std::size_t c = 0; c < width; ++c) {
    most = std::fmax(most, row[c]);
    largest = std::fmax(largest, std::abs(row[c]));
  }
  for (std::size_t c = 0; c < width; ++c) total += std::exp(row[c] - most);
  return {most + std::log(total), largest};
}

Tensor column(const Tensor& t) { return t.view({t.elements(), 1}); }

}  // namespace

void AuditedBackend::cross_entropy_forward(const Tensor& logits, const Tensor& labels, const Tensor& losses,
                                           const Tensor& lse) {
  real().cross_entropy_forward(logits, labels, losses, lse);
  if (!judge_->begins("cross_entropy_forward", logits, logits_cost(logits))) return;
  const Places rows = logits_rows(logits);
  const auto width = static_cast<std::size_t>(audit::width_of(logits));
  const Values x = judge_->read_rows(logits, rows);
  const std::vector<std::int64_t> names = audit::read_integers(real(), labels);
  const Values found = judge_->read_rows(column(losses), rows), sums = judge_->read_rows(column(lse), rows);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const double* const row = x.data() + r * width;
    const Row s = summarised(row, width);
    const std::int64_t label = names[static_cast<std::size_t>(rows[r])];
    if (label >= static_cast<std::int64_t>(width)) continue;  // it makes NaN, and no workload has one
    judge_->element(lse, "lse", rows[r], sums[r], s.log_sum, 2 + s.largest);
    judge_->element(losses, "losses", rows[r], found[r],
                    label < 0 ? 0 : s.log_sum - row[static_cast<std::size_t>(label)], 2 + 2 * s.largest);
  }
}

void AuditedBackend::cross_entropy_backward(const Tensor& logits, const Tensor& labels, const Tensor& lse, float scale,
                                            const Tensor& loss_scale, const Tensor& dlogits) {
  const auto call = [&] { real().cross_entropy_backward(logits, labels, lse, scale, loss_scale, dlogits); };
  if (!judge_->begins("cross_entropy_backward", logits, logits_cost(logits))) return call();
  const Places rows = logits_rows(logits);
  const auto width = static_cast<std::size_t>(audit::width_of(logits));
  const Values x = judge_->read_rows(logits, rows), sums = judge_->read_rows(column(lse), rows);
  const std::vector<std::int64_t> names = audit::read_integers(real(), labels);
  const double factor = static_cast<double>(scale) * (loss_scale ? judge_->number(loss_scale) : 1);
  call();
  judge_->each(dlogits, "dlogits", audit::whole_rows(dlogits, rows), [&](std::size_t i, std::int64_t, std::size_t c) {
    const std::size_t r = i / width;
    const std::int64_t label = names[static_cast<std::size_t>(rows[r])];
    if (label < 0) return std::pair(0.0, 0.0);
    if (label >= static_cast<std::int64_t>(width)) return std::pair(double(NAN), 0.0);
    const double p = std::exp(x[i] - sums[r]), target = static_cast<std::size_t>(label) == c ? 1 : 0;
    return std::pair(factor * (p - target), std::abs(factor) * (p * (2 + std::abs(x[i]) + std::abs(sums[r])) + target));
  });
}

void AuditedBackend::cross_entropy_in_place(const Tensor& logits, const Tensor& labels, const Tensor& losses,
                                            float scale, const Tensor& loss_scale) {
  const auto call = [&] { real().cross_entropy_in_place(logits, labels, losses, scale, loss_scale); };
  if (!judge_->begins("cross_entropy_in_place", logits, logits_cost(logits))) return call();
  const Places rows = logits_rows(logits);
  const auto width = static_cast<std::size_t>(audit::width_of(logits));
  const Values x = judge_->read_rows(logits, rows);
  const std::vector<std::int64_t> names = audit::read_integers(real(), labels);
  const double factor = static_cast<double>(scale) * (loss_scale ? judge_->number(loss_scale) : 1);
  call();
  std::vector<Row> all;
  const Values found = judge_->read_rows(column(losses), rows);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    all.push_back(summarised(x.data() + r * width, width));
    const std::int64_t label = names[static_cast<std::size_t>(rows[r])];
    if (label >= static_cast<std::int64_t>(width)) continue;
    judge_->element(losses, "losses", rows[r], found[r],
                    label < 0 ? 0 : all[r].log_sum - x[r * width + static_cast<std::size_t>(label)],
                    2 + 2 * all[r].largest);
  }
  judge_->each(logits, "logits", audit::whole_rows(logits, rows), [&](std::size_t i, std::int64_t, std::size_t c) {
    const std::size_t r = i / width;
    const std::int64_t label = names[static_cast<std::size_t>(rows[r])];
    if (label < 0) return std::pair(0.0, 0.0);
    if (label >= static_cast<std::int64_t>(width)) return std::pair(double(NAN), 0.0);
    const double p = std::exp(x[i] - all[r].log_sum), target = static_cast<std::size_t>(label) == c ? 1 : 0;
    return std::pair(factor * (p - target), std::abs(factor) * (p * (2 + 2 * all[r].largest) + target));
  });
}

void AuditedBackend::sum(const Tensor& x, const Tensor& out, float factor) {
  const auto call = [&] { real().sum(x, out, factor); };
  if (!judge_->begins("sum", x, static_cast<double>(x.elements()))) return call();
  const Values in = judge_->read(x);
  call();
  double expected = 0, terms = 0;
  for (const double v : in) expected += v, terms += std::abs(v);
  const auto by = static_cast<double>(factor);
  judge_->element(out, "out", 0, judge_->number(out), expected * by, terms * std::abs(by));
}

void AuditedBackend::sum_of_squares(const Tensor& x, const Tensor& out) {
  const auto call = [&] { real().sum_of_squares(x, out); };
  if (!judge_->begins("sum_of_squares", x, static_cast<double>(x.elements()))) return call();
  const Values in = judge_->read(x);
  call();
  double expected = 0;
  for (const double v : in) expected += v * v;
  judge_->element(out, "out", 0, judge_->number(out), expected, expected);
}

void AuditedBackend::max_abs(const Tensor& x, const Tensor& out) {
  const auto call = [&] { real().max_abs(x, out); };
  if (!judge_->begins("max_abs", x, static_cast<double>(x.elements()))) return call();
  const Values in = judge_->read(x);
  call();
  double expected = 0;
  for (const double v : in) expected = std::isnan(v) || std::isnan(expected) ? NAN : std::fmax(expected, std::abs(v));
  judge_->element(out, "out", 0, judge_->number(out), expected, 0);
}

void AuditedBackend::count_nonfinite(const Tensor& x, const Tensor& out) {
  const auto call = [&] { real().count_nonfinite(x, out); };
  if (!judge_->begins("count_nonfinite", x, static_cast<double>(x.elements()))) return call();
  const Values in = judge_->read(x);
  call();
  double expected = 0;
  for (const double v : in) expected += std::isfinite(v) ? 0 : 1;
  judge_->element(out, "out", 0, judge_->number(out), expected, 0);
}

}  // namespace assay::compute
