#include "reading.hpp"

#include <algorithm>

#include "masks.hpp"

namespace assay::compute::audit {
namespace {

constexpr std::int64_t longest_segment = 4096;
constexpr std::int64_t segments_of_many = 16;

}  // namespace

Places some_of(std::int64_t count, std::int64_t most) {
  Places places;
  if (count <= most) {
    for (std::int64_t i = 0; i < count; ++i) places.push_back(i);
    return places;
  }
  for (std::int64_t i = 0; i < most; ++i) {
    const std::int64_t between = (2 * i + 1) * count / (2 * most);
    places.push_back(i < 2 ? i : i >= most - 2 ? count - most + i : between);
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

Segments whole_rows(const Tensor& t, const Places& rows) {
  Segments segments;
  for (const std::int64_t row : rows) segments.push_back({row, 0, width_of(t)});
  return segments;
}

Segments whole(const Tensor& t) { return whole_rows(t, some_of(rows_of(t), rows_of(t))); }

double elements_looked_at(const Tensor& t, double cost) {
  return cost * static_cast<double>(std::min(t.elements(), std::max(room, segments_of_many * longest_segment)));
}

Segments some_segments(const Tensor& t, std::int64_t room) {
  if (t.elements() <= room) return whole(t);
  const std::int64_t width = width_of(t), pieces = (width + longest_segment - 1) / longest_segment;
  Segments segments;
  for (const std::int64_t i : some_of(rows_of(t) * pieces, segments_of_many)) {
    const std::int64_t first = i % pieces * longest_segment;
    segments.push_back({i / pieces, first, std::min(longest_segment, width - first)});
  }
  return segments;
}

Values read(Backend& backend, const Tensor& t) { return inspector_of(backend)->read(t); }

Values read(Backend& backend, const Tensor& t, const Segments& segments) {
  return inspector_of(backend)->read(t, segments);
}

Values read_rows(Backend& backend, const Tensor& t, const Places& rows) {
  return read(backend, t, whole_rows(t, rows));
}

std::vector<std::int64_t> read_integers(Backend& backend, const Tensor& t) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(t.elements()));
  if (!values.empty()) backend.download(values.data(), t);
  return values;
}

double read_number(Backend& backend, const Tensor& t) { return read(backend, Tensor(t.data, t.dtype, {1})).front(); }

LineWeights random_signs(std::int64_t count, std::uint64_t stream) {
  LineWeights weights{Values(static_cast<std::size_t>(count)), Values(static_cast<std::size_t>(count), 1)};
  for (std::size_t i = 0; i < weights.values.size(); ++i)
    weights.values[i] = philox(0x5eed, stream, i)[0] & 1U ? 1 : -1;
  return weights;
}

double elements_read(const Tensor& t) {
  return static_cast<double>((t.dim(0) - 1) * t.step(0) + (t.dim(1) - 1) * t.step(1) + 1);
}

}  // namespace assay::compute::audit
