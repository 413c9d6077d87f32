#include "reading.hpp"

#include <assay/compute/eight_bit.hpp>
#include <assay/compute/sixteen_bit.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

namespace assay::compute::audit {
namespace {

constexpr std::int64_t longest_segment = 4096;
constexpr std::int64_t segments_of_many = 16;

double element(const std::byte* bytes, DType dtype, std::int64_t i) {
  const std::byte* const at = bytes + static_cast<std::size_t>(i) * size_of(dtype);
  const auto as = [&](auto value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::f32: return static_cast<double>(as(0.0F));
    case DType::bf16: return static_cast<double>(float_of_bf16(as(std::uint16_t{})));
    case DType::f16: return static_cast<double>(float_of_fp16(as(std::uint16_t{})));
    case DType::i64: return static_cast<double>(as(std::int64_t{}));
    case DType::i32: return static_cast<double>(as(std::int32_t{}));
    case DType::u8: return static_cast<double>(as(std::uint8_t{}));
    case DType::f8_e4m3: return static_cast<double>(E4m3::to_float(as(std::uint8_t{})));
    case DType::f8_e5m2: return static_cast<double>(E5m2::to_float(as(std::uint8_t{})));
  }
  return NAN;
}

// Row `row` of a tensor, of rank 1.
Tensor row_of(const Tensor& t, std::int64_t row) {
  Tensor r;
  r.dtype = t.dtype;
  r.rank = 1;
  r.shape[0] = t.dim(-1);
  r.stride[0] = t.step(-1);
  std::int64_t offset = 0;
  for (int d = t.rank - 2; d >= 0; --d) {
    offset += row % t.dim(d) * t.step(d);
    row /= t.dim(d);
  }
  r.data = static_cast<char*>(t.data) + static_cast<std::size_t>(offset) * size_of(t.dtype);
  return r;
}

void append(Backend& backend, const Tensor& t, Values& out) {
  const std::int64_t n = t.elements();
  if (n == 0) return;
  std::int64_t span = 1;  // from the first element to the last; strides are never negative
  for (int d = 0; d < t.rank; ++d) span += (t.dim(d) - 1) * t.step(d);
  std::vector<std::byte> bytes(static_cast<std::size_t>(span) * size_of(t.dtype));
  backend.download(bytes.data(), Tensor(t.data, t.dtype, {span}));
  out.reserve(out.size() + static_cast<std::size_t>(n));
  Tensor::Dims at{};
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t offset = 0;
    for (int d = 0; d < t.rank; ++d) offset += at[static_cast<std::size_t>(d)] * t.step(d);
    out.push_back(element(bytes.data(), t.dtype, offset));
    for (int d = t.rank - 1; d >= 0; --d) {
      if (++at[static_cast<std::size_t>(d)] < t.dim(d)) break;
      at[static_cast<std::size_t>(d)] = 0;
    }
  }
}

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

void Raw::row(std::int64_t row, double* out) const {
  const std::int64_t columns = matrix_.dim(1), step = matrix_.step(1), begin = row * matrix_.step(0);
  // The common types have loops of their own: a choice by type for each element takes several times as long.
  const auto each = [&](auto raw, auto value_of) {
    const std::byte* const at = bytes_.data() + static_cast<std::size_t>(begin) * sizeof raw;
    const auto walk = [&](std::int64_t by) {
      for (std::int64_t c = 0; c < columns; ++c) {
        std::memcpy(&raw, at + static_cast<std::size_t>(c * by) * sizeof raw, sizeof raw);
        out[c] = static_cast<double>(value_of(raw));
      }
    };
    if (step == 1) return walk(1);
    walk(step);
  };
  switch (matrix_.dtype) {
    case DType::f32: return each(0.0F, [](float x) { return x; });
    case DType::bf16: return each(std::uint16_t{}, [](std::uint16_t x) { return float_of_bf16(x); });
    case DType::f16: return each(std::uint16_t{}, [](std::uint16_t x) { return float_of_fp16(x); });
    default:
      for (std::int64_t c = 0; c < columns; ++c) out[c] = element(bytes_.data(), matrix_.dtype, begin + c * step);
  }
}

Raw read_raw(Backend& backend, const Tensor& matrix) {
  const std::int64_t span = (matrix.dim(0) - 1) * matrix.step(0) + (matrix.dim(1) - 1) * matrix.step(1) + 1;
  std::vector<std::byte> bytes(static_cast<std::size_t>(span) * size_of(matrix.dtype));
  backend.download(bytes.data(), Tensor(matrix.data, matrix.dtype, {span}));
  return {std::move(bytes), matrix};
}

Values read(Backend& backend, const Tensor& t) {
  Values values;
  append(backend, t, values);
  return values;
}

Values read(Backend& backend, const Tensor& t, const Segments& segments) {
  std::int64_t elements = 0;
  for (const Segment& s : segments) elements += s.count;
  if (elements == t.elements()) return read(backend, t);
  Values values;
  for (const Segment& s : segments) append(backend, row_of(t, s.row).slice(0, s.first, s.count), values);
  return values;
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

}  // namespace assay::compute::audit
