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

namespace {

// The tokens of rows [B, T, H], which rise.
Places tokens_of(const Places& rows, std::int64_t heads) {
  Places tokens;
  for (const std::int64_t row : rows)
    if (tokens.empty() || tokens.back() != row / heads) tokens.push_back(row / heads);
  return tokens;
}

Places every_head_of(const Places& tokens, std::int64_t heads) {
  Places rows;
  for (const std::int64_t token : tokens)
    for (std::int64_t h = 0; h < heads; ++h) rows.push_back(token * heads + h);
  return rows;
}

Places some_rows(const Tensor& t, std::int64_t most) {
  const std::int64_t rows = audit::rows_of(t);
  return audit::some_of(rows, t.elements() <= audit::room ? rows : most);
}

}  // namespace

void AuditedBackend::execute(const op::LatentKeysForward& op) {
  real().run(op);
  if (!judge_->begins(op.name, op.k, audit::elements_looked_at(op.k, 3))) return;
  const std::int64_t heads = op.k.dim(2), positions = op.k.dim(1);
  const Places rows = some_rows(op.k, 32), tokens = tokens_of(rows, heads);
  const auto own = static_cast<std::size_t>(op.nope.dim(3)), turned = static_cast<std::size_t>(op.shared.dim(2));
  const Values nope = judge_->read_rows(op.nope, rows), shared = judge_->read_rows(op.shared, tokens);
  const Values c = judge_->read(op.cos), s = judge_->read(op.sin);
  judge_->each(op.k, "k", audit::whole_rows(op.k, rows), [&](std::size_t i, std::int64_t, std::size_t column) {
    const std::size_t row = i / (own + turned);
    if (column < own) return std::pair(nope[row * own + column], 0.0);
    const std::int64_t token = rows[row] / heads;
    const auto which = static_cast<std::size_t>(std::lower_bound(tokens.begin(), tokens.end(), token) - tokens.begin());
    const std::size_t at = column - own, angle = static_cast<std::size_t>(token % positions) * (turned / 2) + at / 2;
    const double x = shared[which * turned + at], other = shared[which * turned + (at ^ 1)];
    return std::pair(x * c[angle] + (at % 2 == 0 ? -1 : 1) * other * s[angle],
                     std::hypot(c[angle], s[angle]) * (std::abs(x) + std::abs(other)));
  });
}

void AuditedBackend::execute(const op::LatentKeysBackward& op) {
  real().run(op);
  if (!judge_->begins(op.name, op.dk, audit::elements_looked_at(op.dk, 3))) return;
  const std::int64_t heads = op.dk.dim(2), positions = op.dk.dim(1);
  const auto own = static_cast<std::size_t>(op.dnope.dim(3)), turned = static_cast<std::size_t>(op.dshared.dim(2));
  const Places rows = some_rows(op.dk, 32);
  const Values of_rows = judge_->read_rows(op.dk, rows);
  judge_->each(op.dnope, "dnope", audit::whole_rows(op.dnope, rows),
               [&](std::size_t i, std::int64_t, std::size_t column) {
                 return std::pair(of_rows[i / own * (own + turned) + column], 0.0);
               });
  const Places tokens = tokens_of(some_rows(op.dk, 8), heads);
  const Values all = judge_->read_rows(op.dk, every_head_of(tokens, heads));
  const Values c = judge_->read(op.cos), s = judge_->read(op.sin);
  judge_->each(op.dshared, "dshared", audit::whole_rows(op.dshared, tokens),
               [&](std::size_t i, std::int64_t place, std::size_t column) {
                 const auto position = static_cast<std::size_t>(place) / turned % static_cast<std::size_t>(positions);
                 const std::size_t angle = position * (turned / 2) + column / 2;
                 double x = 0, other = 0, terms = 0;
                 for (std::size_t h = 0; h < static_cast<std::size_t>(heads); ++h) {
                   const double* const head =
                       &all[(i / turned * static_cast<std::size_t>(heads) + h) * (own + turned) + own];
                   x += head[column], other += head[column ^ 1];
                   terms += std::abs(head[column]) + std::abs(head[column ^ 1]);
                 }
                 return std::pair(x * c[angle] + (column % 2 == 0 ? 1 : -1) * other * s[angle],
                                  std::hypot(c[angle], s[angle]) * terms);
               });
}

}  // namespace assay::compute
