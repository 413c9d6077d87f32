// Embeddings and rotary positions.
#include <algorithm>
#include <cmath>
#include <map>

#include "judge.hpp"

namespace assay::compute {

using audit::Places;
using audit::Segments;
using audit::Values;

void AuditedBackend::embedding_forward(const Tensor& ids, const Tensor& table, const Tensor& out) {
  real().embedding_forward(ids, table, out);
  if (!judge_->begins("embedding_forward", out, audit::elements_looked_at(out, 2))) return;
  const std::vector<std::int64_t> names = audit::read_integers(real(), ids);
  const Segments places = audit::some_segments(out, audit::room);
  Segments rows;
  for (const audit::Segment& s : places) rows.push_back({names[static_cast<std::size_t>(s.row)], s.first, s.count});
  Values expected;
  for (const audit::Segment& s : rows) {
    const Values part = judge_->read(table, {s});
    expected.insert(expected.end(), part.begin(), part.end());
  }
  judge_->each(out, "out", places,
               [&](std::size_t i, std::int64_t, std::size_t) { return std::pair(expected[i], 0.0); });
}

void AuditedBackend::embedding_backward(const Tensor& ids, const Tensor& dout, const Tensor& dtable, bool accumulate) {
  const auto call = [&] { real().embedding_backward(ids, dout, dtable, accumulate); };
  constexpr std::int64_t names_of_many = 24;
  const double cost = static_cast<double>(std::min(dtable.elements(), audit::room * 4) + dout.elements());
  if (!judge_->begins("embedding_backward", dtable, cost, accumulate ? " accumulate" : "")) return call();
  const std::vector<std::int64_t> names = audit::read_integers(real(), ids);
  std::map<std::int64_t, Places> rows_of_name;
  for (std::size_t r = 0; r < names.size(); ++r) rows_of_name[names[r]].push_back(static_cast<std::int64_t>(r));
  Places looked_at;
  if (dtable.elements() <= audit::room) {
    looked_at = audit::some_of(dtable.dim(0), dtable.dim(0));
  } else {  // of what is named some, those of the first and the last row among them; some of what is not
    for (const std::int64_t i : audit::some_of(static_cast<std::int64_t>(names.size()), names_of_many))
      looked_at.push_back(names[static_cast<std::size_t>(i)]);
    for (const std::int64_t i : audit::some_of(dtable.dim(0), names_of_many / 3)) looked_at.push_back(i);
    std::sort(looked_at.begin(), looked_at.end());
    looked_at.erase(std::unique(looked_at.begin(), looked_at.end()), looked_at.end());
  }
  const Segments places = audit::whole_rows(dtable, looked_at);
  const auto width = static_cast<std::size_t>(audit::width_of(dtable));
  Values expected = accumulate ? judge_->read(dtable, places) : Values(looked_at.size() * width);
  Values terms(expected.size());
  for (std::size_t i = 0; i < terms.size(); ++i) terms[i] = std::abs(expected[i]);
  for (std::size_t name = 0; name < looked_at.size(); ++name) {
    const auto found = rows_of_name.find(looked_at[name]);
    if (found == rows_of_name.end()) continue;
    const Values rows = judge_->read_rows(dout, found->second);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      expected[name * width + i % width] += rows[i];
      terms[name * width + i % width] += std::abs(rows[i]);
    }
  }
  call();
  judge_->each(dtable, "dtable", places,
               [&](std::size_t i, std::int64_t, std::size_t) { return std::pair(expected[i], terms[i]); });
}

void AuditedBackend::rotary_table(const Tensor& cos, const Tensor& sin, double theta) {
  real().rotary_table(cos, sin, theta);
  if (!judge_->begins("rotary_table", cos, audit::elements_looked_at(cos, 4))) return;
  const std::int64_t half = cos.dim(-1);
  const auto angle = [&](std::int64_t place) {
    const std::int64_t position = place / half, pair = place % half;
    return static_cast<double>(position) * std::pow(theta, -static_cast<double>(pair) / static_cast<double>(half));
  };
  const Segments places = audit::some_segments(cos, audit::room);
  // The angle itself may be rounded to fp32.
  judge_->each(cos, "cos", places, [&](std::size_t, std::int64_t place, std::size_t) {
    return std::pair(std::cos(angle(place)), 1 + angle(place));
  });
  judge_->each(sin, "sin", places, [&](std::size_t, std::int64_t place, std::size_t) {
    return std::pair(std::sin(angle(place)), 1 + angle(place));
  });
}

void AuditedBackend::rotary(const Tensor& x, const Tensor& cos, const Tensor& sin, bool inverse) {
  const auto call = [&] { real().rotary(x, cos, sin, inverse); };
  const std::int64_t heads = x.dim(-2), positions = x.dim(-3);
  if (!judge_->begins("rotary", x, audit::elements_looked_at(x, 3), inverse ? " inverse" : "")) return call();
  const std::int64_t rows = audit::rows_of(x), width = audit::width_of(x);
  const Segments places = audit::whole_rows(x, audit::some_of(rows, x.elements() <= audit::room ? rows : 32));
  const Values in = judge_->read(x, places), c = judge_->read(cos), s = judge_->read(sin);
  call();
  judge_->each(x, "x", places, [&](std::size_t i, std::int64_t place, std::size_t column) {
    const std::int64_t position = place / width / heads % positions;
    const auto at = static_cast<std::size_t>(position * (width / 2)) + column / 2;
    const double turn = inverse ? -s[at] : s[at];
    const double expected = column % 2 == 0 ? in[i] * c[at] - in[i + 1] * turn : in[i - 1] * turn + in[i] * c[at];
    const double other = column % 2 == 0 ? in[i + 1] : in[i - 1];
    return std::pair(expected, std::abs(in[i]) + std::abs(other));
  });
}

}  // namespace assay::compute
