// Softmax, with what attention makes of scores before it.
#include <algorithm>
#include <cmath>

#include "dots.hpp"
#include "judge.hpp"

namespace assay::compute {

using audit::dot;
using audit::Places;
using audit::size_of_dot;
using audit::Values;

void AuditedBackend::execute(const op::SoftmaxForward& op) {
  const auto call = [&] { real().run(op); };
  const std::string kind = std::string(op.causal ? " causal" : "") + (op.window > 0 ? " window" : "") +
                           (op.soft_cap > 0 ? " cap" : "") + (op.sinks ? " sinks" : "") +
                           (op.first_keys ? " documents" : "");
  if (!judge_->begins(op.name, op.y, audit::elements_looked_at(op.y, 4), kind)) return call();
  const std::int64_t rows = audit::rows_of(op.y), width = audit::width_of(op.y),
                     queries = op.y.rank > 1 ? op.y.dim(-2) : 1;
  const Places looked_at = audit::some_of(rows, op.y.elements() <= audit::room ? rows : 16);
  Values in = judge_->read_rows(op.x, looked_at);
  const Values sinks = op.sinks ? judge_->read(op.sinks) : Values();
  std::vector<std::int32_t> first_keys;  // by sequence and row
  for (std::int64_t b = 0; op.first_keys && b < op.first_keys.dim(0); ++b) {
    first_keys.resize(static_cast<std::size_t>((b + 1) * queries));
    real().download(&first_keys[static_cast<std::size_t>(b * queries)], op.first_keys.slice(0, b, 1));
  }
  const auto scale = static_cast<double>(op.scale), cap = static_cast<double>(op.soft_cap);
  call();
  const Values found = judge_->read_rows(op.y, looked_at);
  const Values sums = op.lse ? judge_->read(op.lse.flat()) : Values();
  for (std::size_t r = 0; r < looked_at.size(); ++r) {
    const std::int64_t place = looked_at[r] % queries + (width - queries);
    const std::int64_t visible = op.causal ? std::min(width, place + 1) : width;
    std::int64_t first = op.window > 0 ? std::max<std::int64_t>(0, place + 1 - op.window) : 0;
    if (op.first_keys)
      first =
          std::max<std::int64_t>(first, first_keys[static_cast<std::size_t>(
                                            looked_at[r] / queries / op.y.dim(1) * queries + looked_at[r] % queries)]);
    auto* const row = in.data() + static_cast<std::ptrdiff_t>(r) * width;
    const double sink =
        op.sinks ? sinks[static_cast<std::size_t>(looked_at[r] / queries % op.sinks.elements())] : -INFINITY;
    double most = sink, largest = 0;
    for (std::int64_t c = first; c < visible; ++c) {
      largest = std::fmax(largest, std::abs(row[c] * scale));
      row[c] = cap > 0 ? cap * std::tanh(row[c] * scale / cap) : row[c] * scale;
      most = std::fmax(most, row[c]);
    }
    double total = std::isinf(sink) ? 0 : std::exp(sink - most);
    for (std::int64_t c = first; c < visible; ++c) total += std::exp(row[c] - most);
    for (std::int64_t c = 0; c < width; ++c) {
      const double p = c >= first && c < visible ? std::exp(row[c] - most) / total : 0;
      judge_->element(op.y, "y", looked_at[r] * width + c,
                      found[r * static_cast<std::size_t>(width) + static_cast<std::size_t>(c)], p, p * (1 + largest));
    }
    if (op.lse && total > 0)
      judge_->within("lse", looked_at[r], sums[static_cast<std::size_t>(looked_at[r])], most + std::log(total),
                     64 * 0x1p-24 * (1 + largest + std::abs(most)));
  }
}

void AuditedBackend::execute(const op::SoftmaxBackward& op) {
  const auto call = [&] { real().run(op); };
  const std::string kind = std::string(op.soft_cap > 0 ? " cap" : "") + (op.sinks ? " sinks" : "");
  if (!judge_->begins(op.name, op.y, audit::elements_looked_at(op.y, 4), kind)) return call();
  const std::int64_t rows = audit::rows_of(op.y);
  const auto width = static_cast<std::size_t>(audit::width_of(op.y));
  const bool whole = op.y.elements() <= audit::room;
  const Places looked_at = audit::some_of(rows, whole ? rows : 16);
  const Values p = judge_->read_rows(op.y, looked_at), d = judge_->read_rows(op.dy, looked_at);
  const Values sums = op.lse ? judge_->read(op.lse.flat()) : Values();
  const Values before = op.sinks && op.accumulate ? judge_->read(op.dsinks) : Values();
  call();
  const auto factor = static_cast<double>(op.scale), cap = static_cast<double>(op.soft_cap);
  std::size_t row = p.size();  // whose sums these are; an element's would take its row's width once more
  double row_sum = 0, row_terms = 0;
  judge_->each(op.dx, "dx", audit::whole_rows(op.dx, looked_at), [&](std::size_t i, std::int64_t place, std::size_t) {
    if (const std::size_t own = i / width * width; own != row) {
      row = own;
      row_sum = dot(p.data() + row, d.data() + row, width);
      row_terms = size_of_dot(p.data() + row, d.data() + row, width);
    }
    const double lse = cap > 0 ? sums[static_cast<std::size_t>(place) / width] : 0;
    const bool has_slope = cap > 0 && p[i] > 0;  // a probability of 1 has a logarithm of 0, and a slope
    const double log_p = has_slope ? std::log(p[i]) : 0, t = has_slope ? (log_p + lse) / cap : 0;
    // The score is a difference of logarithms, which are as far off as they are large, whatever the cap.
    const double slope_terms = cap > 0 ? 2 * std::abs(t) * (1 + std::abs(log_p) + std::abs(lse)) / cap : 0;
    return std::pair(factor * p[i] * (d[i] - row_sum) * (1 - t * t),
                     std::abs(factor * p[i]) * (std::abs(d[i]) + row_terms) * (1 + std::abs(lse) + slope_terms));
  });
  if (!op.sinks) return;
  if (!whole) return judge_->leave_out_of_this("the gradients of sinks by");
  const Values sinks = judge_->read(op.sinks), found = judge_->read(op.dsinks);
  const auto queries = static_cast<std::size_t>(op.y.dim(-2));
  Values expected(sinks.size()), terms(sinks.size());
  if (!before.empty()) expected = before;
  for (std::size_t h = 0; h < sinks.size(); ++h) terms[h] = std::abs(expected[h]);
  for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
    const std::size_t h = r / queries % sinks.size();
    const double of_sink = std::exp(sinks[h] - sums[r]);
    expected[h] -= of_sink * dot(&p[r * width], &d[r * width], width);
    terms[h] += of_sink * size_of_dot(&p[r * width], &d[r * width], width) * (1 + std::abs(sums[r]));
  }
  for (std::size_t h = 0; h < sinks.size(); ++h)
    judge_->element(op.dsinks, "dsinks", static_cast<std::int64_t>(h), found[h], expected[h], terms[h]);
}

}  // namespace assay::compute
