#include "common/checks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace assay::compute {

std::string shape_text(const Tensor& t) {
  std::string text = std::string(name_of(t.dtype)) + " [";
  for (int i = 0; i < t.rank; ++i) text += (i ? ", " : "") + std::to_string(t.dim(i));
  return text + "]";
}

void reject(const char* operation, const std::string& what) {
  throw Error(ASSAY_UNSUPPORTED, fmt::format("{} on the " ASSAY_DEVICE_LABEL ": {}", operation, what));
}

void require_dtype(const char* operation, const Tensor& t, std::initializer_list<DType> allowed) {
  if (std::find(allowed.begin(), allowed.end(), t.dtype) != allowed.end()) return;
  std::string names;
  for (const DType d : allowed) names += (names.empty() ? "" : " or ") + std::string(name_of(d));
  reject(operation, fmt::format("tensor {} given; expected {}", shape_text(t), names));
}

void require_same_shape(const char* operation, const Tensor& a, const Tensor& b) {
  if (a.rank == b.rank && std::equal(a.shape.begin(), a.shape.begin() + a.rank, b.shape.begin())) return;
  throw Error(ASSAY_INVALID_ARGUMENT,
              fmt::format("{} on the " ASSAY_DEVICE_LABEL ": tensors {} and {} given; expected equal shapes", operation,
                          shape_text(a), shape_text(b)));
}

void require_contiguous(const char* operation, const Tensor& t) {
  if (!t.contiguous())
    reject(operation, fmt::format("tensor {} has gaps or a permuted order; expected a contiguous one: copy it first",
                                  shape_text(t)));
}

void require_rank(const char* operation, const Tensor& t, int rank) {
  if (t.rank != rank)
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("{} on the " ASSAY_DEVICE_LABEL ": tensor {} given; expected {} dimensions", operation,
                            shape_text(t), rank));
}

Rows as_rows(const char* operation, const Tensor& t) {
  if (t.rank == 0) return {1, 1, 1};
  Rows rows{1, t.dim(-1), t.dim(-1)};
  bool regular = t.step(-1) == 1 || t.dim(-1) == 1;
  std::int64_t span = 0;  // what the next dimension outwards must step by
  for (int i = t.rank - 2; i >= 0; --i) {
    if (t.dim(i) == 1) continue;
    if (rows.count == 1) {
      rows.stride = t.step(i);
    } else {
      regular = regular && t.step(i) == span;
    }
    rows.count *= t.dim(i);
    span = t.step(i) * t.dim(i);
  }
  if (!regular)
    reject(operation, fmt::format("the rows of tensor {} are not evenly spaced runs; expected a contiguous last "
                                  "dimension and one stride from row to row: copy it first",
                                  shape_text(t)));
  return rows;
}

void require_count(const char* operation, const char* name, const Tensor& t, std::int64_t count, const char* of_what) {
  require_contiguous(operation, t);
  if (t.elements() != count)
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("{} on the " ASSAY_DEVICE_LABEL ": {} has {} elements; expected {} ({})", operation, name,
                            t.elements(), count, of_what));
}

void require_columns(const char* operation, const char* name, const Tensor& t, std::int64_t columns) {
  require_contiguous(operation, t);
  if (t.elements() != columns)
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("{} on the " ASSAY_DEVICE_LABEL ": {} has {} elements; expected one for each of the "
                            "{} columns of x",
                            operation, name, t.elements(), columns));
}

float* require_statistic(const char* operation, const char* name, const Tensor& t, std::int64_t rows) {
  require_dtype(operation, t, {DType::f32});
  require_contiguous(operation, t);
  if (t.elements() != rows)
    throw Error(ASSAY_INVALID_ARGUMENT, fmt::format("{} on the " ASSAY_DEVICE_LABEL
                                                    ": {} has {} elements; expected one for each of the {} rows of x",
                                                    operation, name, t.elements(), rows));
  return static_cast<float*>(t.data);
}

void require_like(const char* operation, const Tensor& first, const Tensor& other) {
  require_dtype(operation, other, {first.dtype});
  require_same_shape(operation, first, other);
  require_contiguous(operation, other);
}

void require_gradient(const char* operation, const char* name, const Tensor& x, const Tensor& t) {
  require_dtype(operation, t, {DType::f32, x.dtype});
  require_columns(operation, name, t, x.dim(-1));
}

CopyShape copy_shape(const Tensor& to, const Tensor& from) {
  CopyShape s{{1, 1, 1, 1}, {}, {}};
  int at = 4;  // the dimension last written
  for (int i = to.rank - 1; i >= 0; --i) {
    if (to.dim(i) == 1) continue;
    if (at < 4 && to.step(i) == s.to_step[at] * s.extent[at] && from.step(i) == s.from_step[at] * s.extent[at]) {
      s.extent[at] *= to.dim(i);
      continue;
    }
    --at;
    s.extent[at] = to.dim(i);
    s.to_step[at] = to.step(i);
    s.from_step[at] = from.step(i);
  }
  return s;
}

}  // namespace assay::compute
