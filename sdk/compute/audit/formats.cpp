// Changes of format.
#include "judge.hpp"
#include "lines.hpp"

namespace assay::compute {

using audit::Values;

void AuditedBackend::execute(const op::Quantize& op) {
  if (!judge_->begins(op.name, op.x, 3 * static_cast<double>(op.x.elements()))) return real().run(op);
  const Values x = judge_->read(op.x);
  const double max_abs = judge_->number(op.max_abs);
  real().run(op);
  const auto largest = static_cast<double>(op.y.dtype == DType::f8_e4m3 ? E4m3::largest() : E5m2::largest());
  const double m = std::isfinite(max_abs) ? std::fmax(max_abs, 0x1p-100) : NAN;
  const double inverse = audit::inverse_scale_of(m, largest);
  judge_->element(op.inverse_scale, "inverse_scale", 0, judge_->number(op.inverse_scale), inverse, inverse);
  const auto number = [&](std::size_t i) {
    const double scaled = std::clamp(x[i] / inverse, -largest, largest);
    return std::pair(scaled, std::abs(scaled));
  };
  judge_->each(op.y, "y", audit::whole(op.y), [&](std::size_t i, std::int64_t, std::size_t) { return number(i); });
  if (!op.transposed) return;
  const auto columns = static_cast<std::size_t>(op.x.dim(-1)), rows = x.size() / columns;
  judge_->each(op.transposed, "transposed", audit::whole(op.transposed),
               [&](std::size_t i, std::int64_t, std::size_t) { return number(i % rows * columns + i / rows); });
}

void AuditedBackend::execute(const op::QuantizeRows& op) {
  const audit::Places rows = audit::some_lines(op.y);
  const auto looked_at = static_cast<double>(rows.size()) * static_cast<double>(op.y.dim(1));
  if (!judge_->begins(op.name, op.x, 3 * looked_at)) return real().run(op);
  const Values x = judge_->read_rows(op.x, rows);
  real().run(op);
  audit::judge_lines(*judge_, rows, x, op.y, op.inverse_scale, 0);
}

void AuditedBackend::execute(const op::QuantizeColumns& op) {
  const audit::Places columns = audit::some_lines(op.y);
  const auto looked_at = static_cast<double>(columns.size()) * static_cast<double>(op.y.dim(1));
  if (!judge_->begins(op.name, op.x, 3 * looked_at)) return real().run(op);
  const Values x = judge_->read_rows(op.x.transposed(0, 1), columns);
  real().run(op);
  audit::judge_lines(*judge_, columns, x, op.y, op.inverse_scale, 0);
}

void AuditedBackend::execute(const op::TransposeEightBits& op) {
  const std::int64_t rows = op.x.dim(0), places = op.y.dim(1);
  const audit::Places columns = audit::some_lines(op.y);
  const double looked_at = static_cast<double>(columns.size()) * static_cast<double>(places);
  if (!judge_->begins(op.name, op.y, 3 * looked_at, op.scale ? " with scales" : "")) return real().run(op);
  const Values x = judge_->read_rows(op.x.transposed(0, 1), columns);
  Values scale(static_cast<std::size_t>(rows), 1.0);
  if (op.scale) scale = judge_->read(op.scale);
  const Values other = op.other_scale ? judge_->read(op.other_scale) : Values();
  real().run(op);
  double largest = 1;
  if (op.scale) {
    // Products too small for fp32 are 0 in it.
    for (std::size_t r = 0; r < scale.size(); ++r)
      scale[r] = static_cast<double>(static_cast<float>(scale[r] * other[r]));
    largest = 0;
    for (const double s : scale) largest = std::isnan(largest) || largest >= s ? largest : s;
  }
  if (op.inverse_scale)
    judge_->element(op.inverse_scale, "inverse_scale", 0, judge_->number(op.inverse_scale), largest, largest);
  const Values found = judge_->read_rows(op.y, columns);
  for (std::size_t c = 0; c < columns.size(); ++c)
    for (std::int64_t r = 0; r < places; ++r) {
      const auto row = static_cast<std::size_t>(r);
      double expected = 0;
      if (r < rows && largest != 0) expected = x[c * static_cast<std::size_t>(rows) + row] * (scale[row] / largest);
      judge_->element(op.y, "y", columns[c] * places + r, found[c * static_cast<std::size_t>(places) + row], expected,
                      std::abs(expected));
    }
}

}  // namespace assay::compute
