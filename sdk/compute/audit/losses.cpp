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

// What a soft cap makes of logits, in their place; returns its slopes, 1 each where there is none.
Values capped(Values& logits, double cap) {
  Values slopes(logits.size(), 1);
  for (std::size_t i = 0; cap > 0 && i < logits.size(); ++i) {
    const double t = std::tanh(logits[i] / cap);
    logits[i] = cap * t, slopes[i] = 1 - t * t;
  }
  return slopes;
}
template <class Op>
const char* cap_text(const Op& op) {
  return op.soft_cap > 0 ? " cap" : "";
}

Row summarised(const double* row, std::size_t width) {
  double most = -INFINITY, total = 0, largest = 0;
  for (std::size_t c = 0; c < width; ++c) {
    most = std::fmax(most, row[c]);
    largest = std::fmax(largest, std::abs(row[c]));
  }
  for (std::size_t c = 0; c < width; ++c) total += std::exp(row[c] - most);
  return {most + std::log(total), largest};
}

// Where a label has its column: none where it is left out, or another part of the row has it.
enum class Label { counts, ignored, elsewhere, out_of_range };
struct LabelColumn {
  Label kind = Label::counts;
  std::size_t column = 0;
};
LabelColumn column_of(std::int64_t label, const ClassColumns& classes, std::size_t width) {
  const auto columns = static_cast<std::int64_t>(width);
  if (label < 0) return {Label::ignored, 0};
  if (label >= (classes.all > 0 ? classes.all : columns * classes.each)) return {Label::out_of_range, 0};
  for (std::int64_t c = 0; c < columns; ++c)
    if (const std::int64_t begin = classes.first + c * classes.each; label >= begin && label < begin + classes.each)
      return {Label::counts, static_cast<std::size_t>(c)};
  return {Label::elsewhere, 0};
}

Tensor column(const Tensor& t) { return t.view({t.elements(), 1}); }

}  // namespace

void AuditedBackend::execute(const op::CrossEntropyForward& op) {
  real().run(op);
  if (!judge_->begins(op.name, op.logits, logits_cost(op.logits), cap_text(op))) return;
  const Places rows = logits_rows(op.logits);
  const auto width = static_cast<std::size_t>(audit::width_of(op.logits));
  Values x = judge_->read_rows(op.logits, rows);
  capped(x, static_cast<double>(op.soft_cap));
  const std::vector<std::int64_t> names = audit::read_integers(real(), op.labels);
  const Values found = judge_->read_rows(column(op.losses), rows), sums = judge_->read_rows(column(op.lse), rows);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const double* const row = x.data() + r * width;
    const Row s = summarised(row, width);
    const LabelColumn label = column_of(names[static_cast<std::size_t>(rows[r])], op.classes, width);
    if (label.kind == Label::out_of_range) continue;  // it makes NaN, and no workload has one
    judge_->element(op.lse, "lse", rows[r], sums[r], s.log_sum, 2 + s.largest);
    judge_->element(op.losses, "losses", rows[r], found[r],
                    label.kind == Label::counts ? s.log_sum - row[label.column] : 0, 2 + 2 * s.largest);
  }
}

void AuditedBackend::execute(const op::CrossEntropyBackward& op) {
  const auto call = [&] { real().run(op); };
  if (!judge_->begins(op.name, op.logits, logits_cost(op.logits), cap_text(op))) return call();
  const Places rows = logits_rows(op.logits);
  const auto width = static_cast<std::size_t>(audit::width_of(op.logits));
  Values x = judge_->read_rows(op.logits, rows);
  const Values slopes = capped(x, static_cast<double>(op.soft_cap)), sums = judge_->read_rows(column(op.lse), rows);
  const std::vector<std::int64_t> names = audit::read_integers(real(), op.labels);
  std::vector<LabelColumn> labels;
  for (const std::int64_t row : rows)
    labels.push_back(column_of(names[static_cast<std::size_t>(row)], op.classes, width));
  const double factor = static_cast<double>(op.scale) * (op.loss_scale ? judge_->number(op.loss_scale) : 1);
  call();
  judge_->each(
      op.dlogits, "dlogits", audit::whole_rows(op.dlogits, rows), [&](std::size_t i, std::int64_t, std::size_t c) {
        const std::size_t r = i / width;
        const LabelColumn& label = labels[r];
        if (label.kind == Label::ignored) return std::pair(0.0, 0.0);
        if (label.kind == Label::out_of_range) return std::pair(double(NAN), 0.0);
        const double p = std::exp(x[i] - sums[r]), target = label.kind == Label::counts && label.column == c ? 1 : 0;
        return std::pair(factor * (p - target) * slopes[i],
                         std::abs(factor) * (p * (2 + std::abs(x[i]) + std::abs(sums[r])) + target));
      });
}

void AuditedBackend::execute(const op::CrossEntropyInPlace& op) {
  const auto call = [&] { real().run(op); };
  if (!judge_->begins(op.name, op.logits, logits_cost(op.logits), cap_text(op))) return call();
  const Places rows = logits_rows(op.logits);
  const auto width = static_cast<std::size_t>(audit::width_of(op.logits));
  Values x = judge_->read_rows(op.logits, rows);
  const Values slopes = capped(x, static_cast<double>(op.soft_cap));
  const std::vector<std::int64_t> names = audit::read_integers(real(), op.labels);
  const double factor = static_cast<double>(op.scale) * (op.loss_scale ? judge_->number(op.loss_scale) : 1);
  call();
  std::vector<Row> all;
  const Values found = judge_->read_rows(column(op.losses), rows);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    all.push_back(summarised(x.data() + r * width, width));
    const std::int64_t label = names[static_cast<std::size_t>(rows[r])];
    if (label >= static_cast<std::int64_t>(width)) continue;
    judge_->element(op.losses, "losses", rows[r], found[r],
                    label < 0 ? 0 : all[r].log_sum - x[r * width + static_cast<std::size_t>(label)],
                    2 + 2 * all[r].largest);
  }
  judge_->each(
      op.logits, "logits", audit::whole_rows(op.logits, rows), [&](std::size_t i, std::int64_t, std::size_t c) {
        const std::size_t r = i / width;
        const std::int64_t label = names[static_cast<std::size_t>(rows[r])];
        if (label < 0) return std::pair(0.0, 0.0);
        if (label >= static_cast<std::int64_t>(width)) return std::pair(double(NAN), 0.0);
        const double p = std::exp(x[i] - all[r].log_sum), target = static_cast<std::size_t>(label) == c ? 1 : 0;
        return std::pair(factor * (p - target) * slopes[i], std::abs(factor) * (p * (2 + 2 * all[r].largest) + target));
      });
}

void AuditedBackend::execute(const op::Sum& op) {
  const auto call = [&] { real().run(op); };
  if (!judge_->begins(op.name, op.x, static_cast<double>(op.x.elements()))) return call();
  const Values in = judge_->read(op.x);
  call();
  double expected = 0, terms = 0;
  for (const double v : in) expected += v, terms += std::abs(v);
  const auto by = static_cast<double>(op.factor);
  judge_->element(op.out, "out", 0, judge_->number(op.out), expected * by, terms * std::abs(by));
}

void AuditedBackend::execute(const op::SumOfSquares& op) {
  const auto call = [&] { real().run(op); };
  if (!judge_->begins(op.name, op.x, static_cast<double>(op.x.elements()))) return call();
  const Values in = judge_->read(op.x);
  call();
  double expected = 0;
  for (const double v : in) expected += v * v;
  judge_->element(op.out, "out", 0, judge_->number(op.out), expected, expected);
}

void AuditedBackend::execute(const op::MaxAbs& op) {
  const auto call = [&] { real().run(op); };
  if (!judge_->begins(op.name, op.x, static_cast<double>(op.x.elements()))) return call();
  const Values in = judge_->read(op.x);
  call();
  double expected = 0;
  for (const double v : in) expected = std::isnan(v) || std::isnan(expected) ? NAN : std::fmax(expected, std::abs(v));
  judge_->element(op.out, "out", 0, judge_->number(op.out), expected, 0);
}

void AuditedBackend::execute(const op::CountNonfinite& op) {
  const auto call = [&] { real().run(op); };
  if (!judge_->begins(op.name, op.x, static_cast<double>(op.x.elements()))) return call();
  const Values in = judge_->read(op.x);
  call();
  double expected = 0;
  for (const double v : in) expected += std::isfinite(v) ? 0 : 1;
  judge_->element(op.out, "out", 0, judge_->number(op.out), expected, 0);
}

}  // namespace assay::compute
