#include "common/host_inspector.hpp"

#include <assay/compute/eight_bit.hpp>
#include <assay/compute/host_threads.hpp>
#include <assay/compute/sixteen_bit.hpp>
#include <assay/compute/tensor_parts.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <mutex>
#include <numeric>
#include <string>

#include "common/hash_of_word.hpp"

namespace assay::compute {
namespace {

constexpr std::int64_t bytes_at_once = std::int64_t{64} << 20;        // of the host's memory, where a tensor is copied
constexpr std::int64_t elements_of_a_thread = std::int64_t{1} << 17;  // fewer are not worth its start
constexpr std::size_t lanes = 8;  // so many partial sums at a time, so that a compiler makes vectors of them

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class T>
T loaded(const std::byte* bytes, std::int64_t i) {
  T value;
  std::memcpy(&value, bytes + index(i) * sizeof value, sizeof value);
  return value;
}

// `visit(value_of)`, where value_of(bytes, i) is element i as a float or a number that a double holds: a loop over
// elements has the choice by type outside of it.
template <class Visit>
auto by_type(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::bf16:
      return visit([](const std::byte* b, std::int64_t i) { return float_of_bf16(loaded<std::uint16_t>(b, i)); });
    case DType::f16:
      return visit([](const std::byte* b, std::int64_t i) { return float_of_fp16(loaded<std::uint16_t>(b, i)); });
    case DType::i64:
      return visit([](const std::byte* b, std::int64_t i) { return static_cast<double>(loaded<std::int64_t>(b, i)); });
    case DType::i32:
      return visit([](const std::byte* b, std::int64_t i) { return static_cast<double>(loaded<std::int32_t>(b, i)); });
    case DType::u8:
      return visit([](const std::byte* b, std::int64_t i) { return static_cast<float>(loaded<std::uint8_t>(b, i)); });
    case DType::f8_e4m3:
      return visit([](const std::byte* b, std::int64_t i) { return E4m3::to_float(loaded<std::uint8_t>(b, i)); });
    case DType::f8_e5m2:
      return visit([](const std::byte* b, std::int64_t i) { return E5m2::to_float(loaded<std::uint8_t>(b, i)); });
    case DType::f32: break;
  }
  return visit([](const std::byte* b, std::int64_t i) { return loaded<float>(b, i); });
}

// A tensor's bytes, from its first element to its last: where they lie, if that is the host's memory, or a copy.
class Bytes {
 public:
  Bytes(Backend& backend, const Tensor& t) {
    if (t.elements() == 0) return;
    if (std::strcmp(backend.kind(), "cpu") == 0) {
      backend.synchronize();
      at_ = static_cast<const std::byte*>(t.data);
      return;
    }
    copy_.resize(t.extent_bytes());
    backend.download(copy_.data(),
                     Tensor(t.data, t.dtype, {static_cast<std::int64_t>(copy_.size() / size_of(t.dtype))}));
    at_ = copy_.data();
  }
  const std::byte* at() const { return at_; }

 private:
  std::vector<std::byte> copy_;
  const std::byte* at_ = nullptr;
};

std::int64_t elements_at_once(const Tensor& t) { return bytes_at_once / static_cast<std::int64_t>(size_of(t.dtype)); }

Tensor span_of(const Tensor& t, const ElementSpan& span) { return t.flat().slice(0, span.first, span.count); }

template <class T>
void read_segment(const Tensor& t, const std::byte* from, std::int64_t offset, std::int64_t count, T* out) {
  const std::int64_t step = t.rank > 0 ? t.step(-1) : 1;
  by_type(t.dtype, [&](const auto& value_of) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(value_of(from, offset + i * step));
  });
}

}  // namespace

std::int64_t offset_of_row(const Tensor& t, std::int64_t row) {
  std::int64_t offset = 0;
  for (int d = t.rank - 2; d >= 0; --d) {
    offset += row % t.dim(d) * t.step(d);
    row /= t.dim(d);
  }
  return offset;
}

std::vector<ElementSpan> spread_spans(std::int64_t elements, std::int64_t most, std::int64_t run) {
  if (elements <= most) return {{0, elements}};
  const std::int64_t length = std::min(run, elements);
  const std::int64_t count = std::max<std::int64_t>(2, most / length);
  if (count * length >= elements) return {{0, elements}};
  std::vector<ElementSpan> spans;
  for (std::int64_t i = 0; i < count; ++i) {
    // In floating point, since a product of two such counts may be too large for an integer.
    const double begin =
        static_cast<double>(i) / static_cast<double>(count - 1) * static_cast<double>(elements - length);
    spans.push_back({i + 1 == count ? elements - length : static_cast<std::int64_t>(begin), length});
  }
  return spans;
}

std::vector<RowSegment> segments_of(const Tensor& t, const std::vector<ElementSpan>& spans) {
  const std::int64_t width = t.dim(-1);
  std::vector<RowSegment> segments;
  for (const ElementSpan& span : spans)
    for (std::int64_t first = span.first; first < span.first + span.count;) {
      const std::int64_t column = first % width, count = std::min(width - column, span.first + span.count - first);
      segments.push_back({first / width, column, count});
      first += count;
    }
  return segments;
}

BlockSums block_sums(const std::vector<float>& found, const std::vector<float>& expected) {
  constexpr std::int64_t length = BlockSums::block_elements;
  if (found.size() != expected.size())
    throw Error(ASSAY_INTERNAL,
                std::to_string(found.size()) + " elements are held against " + std::to_string(expected.size()));
  BlockSums sums;
  sums.elements = static_cast<std::int64_t>(found.size());
  sums.blocks.resize(index((sums.elements + length - 1) / length));
  in_parts(
      sums.elements, elements_of_a_thread,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t first = begin; first < end; first += length) {
          std::array<double, lanes> distance{}, squares{}, along{};
          const auto add = [&](std::size_t lane, std::int64_t i) {
            const auto right = static_cast<double>(expected[index(i)]);
            const double d = static_cast<double>(found[index(i)]) - right;
            distance[lane] += d * d, squares[lane] += right * right, along[lane] += d * right;
          };
          const std::int64_t last = std::min(end, first + length);
          std::int64_t i = first;
          for (; i + static_cast<std::int64_t>(lanes) <= last; i += lanes)
            for (std::size_t lane = 0; lane < lanes; ++lane) add(lane, i + static_cast<std::int64_t>(lane));
          for (; i < last; ++i) add(0, i);
          BlockSums::Block& block = sums.blocks[index(first / length)];
          for (std::size_t lane = 0; lane < lanes; ++lane)
            block.distance += distance[lane], block.expected += squares[lane], block.along += along[lane];
        }
      },
      length);
  return sums;
}

std::vector<double> HostInspector::read(const Tensor& t) {
  if (t.elements() == 0) return {};
  if (t.contiguous()) {
    std::vector<double> values(index(t.elements()));
    const Bytes bytes(backend_, t);
    const Tensor flat = t.flat();
    in_parts(flat.elements(), elements_of_a_thread, [&](std::int64_t begin, std::int64_t end) {
      read_segment(flat, bytes.at(), begin, end - begin, values.data() + begin);
    });
    return values;
  }
  return read(t, segments_of(t, {{0, t.elements()}}));
}

std::vector<double> HostInspector::read(const Tensor& t, const std::vector<RowSegment>& segments) {
  std::vector<double> values;
  std::int64_t elements = 0;
  for (const RowSegment& s : segments) elements += s.count;
  values.resize(index(elements));
  if (elements == 0) return values;
  double* out = values.data();
  // Few elements of a large tensor are copied by themselves.
  const bool whole = 2 * elements >= static_cast<std::int64_t>(t.extent_bytes() / size_of(t.dtype)) ||
                     std::strcmp(backend_.kind(), "cpu") == 0;
  if (whole) {
    const Bytes bytes(backend_, t);
    for (const RowSegment& s : segments) {
      read_segment(t, bytes.at(), offset_of_row(t, s.row) + s.first * t.step(-1), s.count, out);
      out += s.count;
    }
    return values;
  }
  for (const RowSegment& s : segments) {
    Tensor row = t;
    row.data = static_cast<char*>(t.data) + index(offset_of_row(t, s.row) + s.first * t.step(-1)) * size_of(t.dtype);
    row.rank = 1;
    row.shape[0] = s.count;
    row.stride[0] = t.step(-1);
    const Bytes bytes(backend_, row);
    read_segment(row, bytes.at(), 0, s.count, out);
    out += s.count;
  }
  return values;
}

std::vector<float> HostInspector::read(const Tensor& t, const std::vector<ElementSpan>& spans) {
  std::vector<std::int64_t> begins{0};
  for (const ElementSpan& span : spans) begins.push_back(begins.back() + span.count);
  std::vector<float> values(index(begins.back()));
  if (values.empty()) return values;
  const Tensor flat = t.flat();
  if (std::strcmp(backend_.kind(), "cpu") != 0) {
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const Bytes bytes(backend_, span_of(t, spans[i]));
      read_segment(flat, bytes.at(), 0, spans[i].count, values.data() + begins[i]);
    }
    return values;
  }
  const Bytes bytes(backend_, t);
  const auto threaded = [&](std::int64_t first, std::int64_t count, float* out) {
    in_parts(count, elements_of_a_thread, [&](std::int64_t begin, std::int64_t end) {
      read_segment(flat, bytes.at(), first + begin, end - begin, out + begin);
    });
  };
  if (spans.size() == 1) {
    threaded(spans[0].first, spans[0].count, values.data());
    return values;
  }
  in_parts(static_cast<std::int64_t>(spans.size()), 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      read_segment(flat, bytes.at(), spans[index(i)].first, spans[index(i)].count, values.data() + begins[index(i)]);
  });
  return values;
}

std::uint64_t HostInspector::hash(const Tensor& t) {
  std::uint64_t total = 0;
  const std::int64_t size = static_cast<std::int64_t>(size_of(t.dtype));
  for_each_part(t, elements_at_once(t), [&](std::int64_t first, const Tensor& part) {
    const Bytes bytes(backend_, part);
    const auto count = static_cast<std::int64_t>(part.bytes());
    const std::uint64_t before = static_cast<std::uint64_t>(first * size) / 8;  // parts are multiples of a word
    std::mutex adding;
    in_parts((count + 7) / 8, elements_of_a_thread, [&](std::int64_t begin, std::int64_t end) {
      std::uint64_t sum = 0;
      for (std::int64_t word = begin; word < end; ++word) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, bytes.at() + word * 8, index(std::min<std::int64_t>(8, count - word * 8)));
        sum += hash_of_word(bits, before + static_cast<std::uint64_t>(word));
      }
      const std::scoped_lock lock(adding);
      total += sum;
    });
  });
  return total;
}

namespace {

// Sums over rows of a matrix, whether or not the elements of a row are adjacent.
struct RowsOfMatrix {
  const Tensor& t;
  const LineWeights &over_columns, &over_rows;

  // Rows [first, last), whose first one lies at `from`.
  void sum(const std::byte* from, std::int64_t block_begin, std::int64_t first, std::int64_t last, MatrixSums& sums,
           LineSums& of_columns) const {
    const std::size_t columns = index(t.dim(1));
    std::vector<double> line(columns);
    for (std::int64_t r = first; r < last; ++r) {
      read_segment(t, from, (r - block_begin) * t.step(0), t.dim(1), line.data());
      if (!over_columns.values.empty()) {
        const double* const w = over_columns.values.data();
        const double* const w2 = over_columns.squares.data();
        sums.of_rows.values[index(r)] = total(columns, [&](std::size_t c) { return line[c] * w[c]; });
        sums.of_rows.squares[index(r)] = total(columns, [&](std::size_t c) { return line[c] * line[c] * w2[c]; });
      }
      if (over_rows.values.empty()) continue;
      const double w = over_rows.values[index(r)], w_of_square = over_rows.squares[index(r)];
      double* const value = of_columns.values.data();
      double* const square = of_columns.squares.data();
      for (std::size_t c = 0; c < columns; ++c) value[c] += w * line[c];
      for (std::size_t c = 0; c < columns; ++c) square[c] += w_of_square * line[c] * line[c];
    }
  }

 private:
  template <class Term>
  static double total(std::size_t count, const Term& term) {
    std::array<double, lanes> partial{};
    std::size_t c = 0;
    for (; c + lanes <= count; c += lanes)
      for (std::size_t lane = 0; lane < lanes; ++lane) partial[lane] += term(c + lane);
    double sum = 0;
    for (; c < count; ++c) sum += term(c);
    for (const double p : partial) sum += p;
    return sum;
  }
};

void add(LineSums& to, const LineSums& from) {
  for (std::size_t i = 0; i < from.values.size(); ++i) to.values[i] += from.values[i];
  for (std::size_t i = 0; i < from.squares.size(); ++i) to.squares[i] += from.squares[i];
}

LineSums zeros(std::int64_t count) { return {std::vector<double>(index(count)), std::vector<double>(index(count))}; }

}  // namespace

MatrixSums HostInspector::sum_matrix(const Tensor& t, const LineWeights& over_columns, const LineWeights& over_rows) {
  if (t.step(1) != 1 && t.step(0) == 1) {
    MatrixSums turned = sum_matrix(t.transposed(0, 1), over_rows, over_columns);
    std::swap(turned.of_rows, turned.of_columns);
    return turned;
  }
  const std::int64_t rows = t.dim(0), columns = t.dim(1);
  MatrixSums sums;
  if (!over_columns.values.empty()) sums.of_rows = zeros(rows);
  if (!over_rows.values.empty()) sums.of_columns = zeros(columns);
  const std::int64_t row_bytes =
      std::max<std::int64_t>(1, std::max(t.step(0), columns) * static_cast<std::int64_t>(size_of(t.dtype)));
  const std::int64_t at_once = std::clamp<std::int64_t>(bytes_at_once / row_bytes, 1, std::max<std::int64_t>(1, rows));
  const RowsOfMatrix matrix{t, over_columns, over_rows};
  std::mutex adding;
  for (std::int64_t begin = 0; begin < rows; begin += at_once) {
    const std::int64_t n = std::min(at_once, rows - begin);
    const Bytes bytes(backend_, t.slice(0, begin, n));
    in_parts(n, elements_of_a_thread / std::max<std::int64_t>(1, columns) + 1,
             [&](std::int64_t first, std::int64_t last) {
               LineSums part = over_rows.values.empty() ? LineSums() : zeros(columns);
               matrix.sum(bytes.at(), begin, begin + first, begin + last, sums, part);
               const std::scoped_lock lock(adding);
               add(sums.of_columns, part);
             });
  }
  return sums;
}

std::vector<WeightedSum> HostInspector::sum_spans(const Tensor& t, const std::vector<WeightedSpan>& spans,
                                                  const std::vector<float>& weights) {
  std::vector<WeightedSum> sums(spans.size());
  const auto period = static_cast<std::int64_t>(weights.size());
  // Some of a span whose first element lies at `from`.
  const auto add_to = [&](WeightedSum& to, const std::byte* from, DType dtype, std::int64_t first, std::int64_t count) {
    by_type(dtype, [&](const auto& value_of) {
      for (std::int64_t done = 0; done < count;) {
        const std::int64_t place = (first + done) % period, n = std::min(count - done, period - place);
        std::array<double, lanes> sum{}, squares{};
        const auto one = [&](std::size_t lane, std::int64_t i) {
          const double product =
              static_cast<double>(weights[index(place + i)]) * static_cast<double>(value_of(from, done + i));
          sum[lane] += product, squares[lane] += product * product;
        };
        std::int64_t i = 0;
        for (; i + static_cast<std::int64_t>(lanes) <= n; i += lanes)
          for (std::size_t lane = 0; lane < lanes; ++lane) one(lane, i + static_cast<std::int64_t>(lane));
        for (; i < n; ++i) one(0, i);
        for (std::size_t lane = 0; lane < lanes; ++lane) to.sum += sum[lane], to.squares += squares[lane];
        done += n;
      }
    });
  };
  // By their first elements, so that a part looks at those alone that lie in it.
  std::vector<std::size_t> order(spans.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return spans[a].first < spans[b].first; });
  auto next = order.begin();
  std::vector<std::size_t> in_part;
  const auto size = static_cast<std::int64_t>(size_of(t.dtype));
  for_each_part(t, elements_at_once(t), [&](std::int64_t begin, const Tensor& part) {
    const Bytes bytes(backend_, part);
    const std::int64_t end = begin + part.elements();
    for (; next != order.end() && spans[*next].first < end; ++next) in_part.push_back(*next);
    in_parts(static_cast<std::int64_t>(in_part.size()), 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const std::size_t which = in_part[index(i)];
        const WeightedSpan& span = spans[which];
        const std::int64_t from = std::max(span.first, begin), to = std::min(span.first + span.count, end);
        if (from < to)
          add_to(sums[which], bytes.at() + (from - begin) * size, t.dtype, span.place + from - span.first, to - from);
      }
    });
    std::erase_if(in_part, [&](std::size_t which) { return spans[which].first + spans[which].count <= end; });
  });
  return sums;
}

std::vector<double> HostInspector::product(const std::vector<double>& x, std::int64_t rows, const Tensor& w) {
  if (w.step(1) == 1 || w.step(0) != 1) {  // rows of w: dot products
    const std::int64_t n = w.dim(0), k = w.dim(1);
    std::vector<double> y(index(rows * n));
    const Bytes bytes(backend_, w);
    in_parts(n, elements_of_a_thread / std::max<std::int64_t>(1, k) + 1, [&](std::int64_t begin, std::int64_t end) {
      std::vector<double> line(index(k));
      for (std::int64_t j = begin; j < end; ++j) {
        read_segment(w, bytes.at(), j * w.step(0), k, line.data());
        for (std::int64_t r = 0; r < rows; ++r) {
          const double* const row = x.data() + r * k;
          std::array<double, lanes> partial{};
          std::int64_t c = 0;
          for (; c + static_cast<std::int64_t>(lanes) <= k; c += lanes)
            for (std::size_t lane = 0; lane < lanes; ++lane)
              partial[lane] += row[c + static_cast<std::int64_t>(lane)] * line[index(c) + lane];
          double sum = 0;
          for (; c < k; ++c) sum += row[c] * line[index(c)];
          for (const double p : partial) sum += p;
          y[index(r * n + j)] = sum;
        }
      }
    });
    return y;
  }
  // Columns of a matrix that lies row by row: rows of its transpose are added up.
  const Tensor turned = w.transposed(0, 1);
  const std::int64_t n = w.dim(0), k = w.dim(1);
  std::vector<double> y(index(rows * n));
  const Bytes bytes(backend_, turned);
  in_parts(n, elements_of_a_thread / std::max<std::int64_t>(1, k) + 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> line(index(end - begin));
    for (std::int64_t c = 0; c < k; ++c) {
      read_segment(turned, bytes.at(), c * turned.step(0) + begin, end - begin, line.data());
      for (std::int64_t r = 0; r < rows; ++r) {
        const double factor = x[index(r * k + c)];
        double* const out = y.data() + r * n + begin;
        for (std::size_t j = 0; j < line.size(); ++j) out[j] += factor * line[j];
      }
    }
  });
  return y;
}

BlockSums HostInspector::difference_from_product(const Tensor& found, float factor, const std::vector<double>& a,
                                                 const std::vector<double>& b, std::int64_t rows) {
  constexpr std::int64_t length = BlockSums::block_elements;
  const std::int64_t m = found.dim(0), n = found.dim(1);
  BlockSums sums;
  sums.elements = found.elements();
  sums.blocks.resize(index((sums.elements + length - 1) / length));
  const Bytes bytes(backend_, found);
  const Tensor flat = found.flat();
  in_parts(
      sums.elements, elements_of_a_thread,
      [&](std::int64_t begin, std::int64_t end) {
        std::array<float, length> values;
        std::array<double, length> expected;
        for (std::int64_t first = begin; first < end; first += length) {
          const std::int64_t last = std::min(end, first + length);
          read_segment(flat, bytes.at(), first, last - first, values.data());
          expected.fill(0);
          // In runs of one row of the result.
          for (std::int64_t at = first; at < last;) {
            const std::int64_t i = at / n, j = at % n, count = std::min(n - j, last - at);
            double* const out = expected.data() + (at - first);
            for (std::int64_t r = 0; r < rows; ++r) {
              const double of_row = a[index(r * m + i)];
              if (of_row == 0) continue;  // most of a row that stands for a token
              const double* const in = b.data() + r * n + j;
              for (std::int64_t c = 0; c < count; ++c) out[c] += of_row * in[c];
            }
            at += count;
          }
          BlockSums::Block& block = sums.blocks[index(first / length)];
          for (std::int64_t i = 0; i < last - first; ++i) {
            const double right = static_cast<double>(static_cast<float>(expected[index(i)]));
            const double d = static_cast<double>(values[index(i)] * factor) - right;
            block.distance += d * d, block.expected += right * right, block.along += d * right;
          }
        }
      },
      length);
  return sums;
}

std::unique_ptr<KeptTensor> HostInspector::keep(const Tensor& t, std::int64_t most_on_host) {
  std::vector<ElementSpan> spans = spread_spans(t.elements(), most_on_host);
  std::vector<float> values = read(t, spans);
  return std::make_unique<KeptOnHost>(std::move(values), std::move(spans));
}

BlockSums HostInspector::difference(const KeptTensor& found, const Tensor& expected) {
  const auto& kept = dynamic_cast<const KeptOnHost&>(found);
  if (expected.contiguous()) return block_sums(kept.values(), read(expected, kept.spans()));
  const std::vector<double> wide = read(expected, segments_of(expected, kept.spans()));
  return block_sums(kept.values(), std::vector<float>(wide.begin(), wide.end()));
}

std::shared_ptr<Inspector> inspector_of(Backend& backend) {
  if (Inspector* const own = backend.inspector()) return {std::shared_ptr<void>(), own};
  return std::make_shared<HostInspector>(backend);
}

}  // namespace assay::compute
