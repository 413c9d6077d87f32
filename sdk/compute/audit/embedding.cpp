// Embeddings and rotary positions.
#include <assay/compute/rotary_reference.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include "judge.hpp"

namespace assay::compute {

using audit::Places;
using audit::Segments;
using audit::Values;

void AuditedBackend::execute(const op::EmbeddingForward& op) {
  real().run(op);
  if (!judge_->begins(op.name, op.out, audit::elements_looked_at(op.out, 2))) return;
  const std::vector<std::int64_t> names = audit::read_integers(real(), op.ids);
  const Segments places = audit::some_segments(op.out, audit::room);
  Segments rows;
  for (const audit::Segment& s : places) rows.push_back({names[static_cast<std::size_t>(s.row)], s.first, s.count});
  Values expected;
  for (const audit::Segment& s : rows) {
    const Values part = judge_->read(op.table, {s});
    expected.insert(expected.end(), part.begin(), part.end());
  }
  judge_->each(op.out, "out", places,
               [&](std::size_t i, std::int64_t, std::size_t) { return std::pair(expected[i], 0.0); });
}

void AuditedBackend::execute(const op::EmbeddingBackward& op) {
  const auto call = [&] { real().run(op); };
  constexpr std::int64_t names_of_many = 24;
  const double cost = static_cast<double>(std::min(op.dtable.elements(), audit::room * 4) + op.dout.elements());
  if (!judge_->begins(op.name, op.dtable, cost, op.accumulate ? " accumulate" : "")) return call();
  const std::vector<std::int64_t> names = audit::read_integers(real(), op.ids);
  std::map<std::int64_t, Places> rows_of_name;
  for (std::size_t r = 0; r < names.size(); ++r) rows_of_name[names[r]].push_back(static_cast<std::int64_t>(r));
  Places looked_at;
  if (op.dtable.elements() <= audit::room) {
    looked_at = audit::some_of(op.dtable.dim(0), op.dtable.dim(0));
  } else {  // of what is named some, those of the first and the last row among them; some of what is not
    for (const std::int64_t i : audit::some_of(static_cast<std::int64_t>(names.size()), names_of_many))
      looked_at.push_back(names[static_cast<std::size_t>(i)]);
    for (const std::int64_t i : audit::some_of(op.dtable.dim(0), names_of_many / 3)) looked_at.push_back(i);
    std::sort(looked_at.begin(), looked_at.end());
    looked_at.erase(std::unique(looked_at.begin(), looked_at.end()), looked_at.end());
  }
  const Segments places = audit::whole_rows(op.dtable, looked_at);
  const auto width = static_cast<std::size_t>(audit::width_of(op.dtable));
  Values expected = op.accumulate ? judge_->read(op.dtable, places) : Values(looked_at.size() * width);
  Values terms(expected.size());
  for (std::size_t i = 0; i < terms.size(); ++i) terms[i] = std::abs(expected[i]);
  for (std::size_t name = 0; name < looked_at.size(); ++name) {
    const auto found = rows_of_name.find(looked_at[name]);
    if (found == rows_of_name.end()) continue;
    const Values rows = judge_->read_rows(op.dout, found->second);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      expected[name * width + i % width] += rows[i];
      terms[name * width + i % width] += std::abs(rows[i]);
    }
  }
  call();
  judge_->each(op.dtable, "dtable", places,
               [&](std::size_t i, std::int64_t, std::size_t) { return std::pair(expected[i], terms[i]); });
}

void AuditedBackend::execute(const op::RotaryTable& op) {
  real().run(op);
  if (!judge_->begins(op.name, op.cos, audit::elements_looked_at(op.cos, 4))) return;
  const std::int64_t half = op.cos.dim(-1);
  const auto angle = [&](std::int64_t place) {
    const std::int64_t position = place / half, pair = place % half;
    return static_cast<double>(position) * reference_rotary_frequency(op.theta, op.scaling, pair, half);
  };
  const double magnitude = reference_rotary_magnitude(op.scaling);
  const Segments places = audit::some_segments(op.cos, audit::room);
  // The angle itself may be rounded to fp32.
  judge_->each(op.cos, "cos", places, [&](std::size_t, std::int64_t place, std::size_t) {
    return std::pair(magnitude * std::cos(angle(place)), magnitude * (1 + angle(place)));
  });
  judge_->each(op.sin, "sin", places, [&](std::size_t, std::int64_t place, std::size_t) {
    return std::pair(magnitude * std::sin(angle(place)), magnitude * (1 + angle(place)));
  });
}

void AuditedBackend::execute(const op::Rotary& op) {
  const auto call = [&] { real().run(op); };
  const std::int64_t heads = op.x.dim(-2), positions = op.x.dim(-3);
  if (!judge_->begins(op.name, op.x, audit::elements_looked_at(op.x, 3), op.inverse ? " inverse" : "")) return call();
  const std::int64_t rows = audit::rows_of(op.x), width = audit::width_of(op.x);
  const Segments places = audit::whole_rows(op.x, audit::some_of(rows, op.x.elements() <= audit::room ? rows : 32));
  const Values in = judge_->read(op.x, places), c = judge_->read(op.cos), s = judge_->read(op.sin);
  call();
  judge_->each(op.x, "x", places, [&](std::size_t i, std::int64_t place, std::size_t column) {
    const std::int64_t position = place / width / heads % positions;
    const auto at = static_cast<std::size_t>(position * (width / 2)) + column / 2;
    const double turn = op.inverse ? -s[at] : s[at];
    const double expected = column % 2 == 0 ? in[i] * c[at] - in[i + 1] * turn : in[i - 1] * turn + in[i] * c[at];
    const double other = column % 2 == 0 ? in[i + 1] : in[i - 1];
    return std::pair(expected, std::hypot(c[at], s[at]) * (std::abs(in[i]) + std::abs(other)));
  });
}

}  // namespace assay::compute
