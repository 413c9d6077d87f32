#include "common/checks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace assay::compute {
namespace {

#if ASSAY_DEVICE_HAS_FP16
constexpr std::initializer_list<DType> served_floats = {DType::f32, DType::bf16, DType::f16};
#else
constexpr std::initializer_list<DType> served_floats = {DType::f32, DType::bf16};
#endif

}  // namespace

std::string shape_text(const Tensor& t) {
  std::string text = std::string(name_of(t.dtype)) + " [";
  for (int i = 0; i < t.rank; ++i) text += (i ? ", " : "") + std::to_string(t.dim(i));
  return text + "]";
}

void reject(const char* operation, const std::string& what) {
  throw Error(ASSAY_UNSUPPORTED, fmt::format("{} on the " ASSAY_DEVICE_LABEL ": {}", operation, what));
}

void invalid(const char* operation, const std::string& what) {
  throw Error(ASSAY_INVALID_ARGUMENT, fmt::format("{} on the " ASSAY_DEVICE_LABEL ": {}", operation, what));
}

void require_float(const char* operation, const Tensor& t) { require_dtype(operation, t, served_floats); }

void require_dtype(const char* operation, const Tensor& t, std::initializer_list<DType> allowed) {
  if (std::find(allowed.begin(), allowed.end(), t.dtype) != allowed.end()) return;
  std::string names;
  for (const DType d : allowed) names += (names.empty() ? "" : " or ") + std::string(name_of(d));
  reject(operation, fmt::format("tensor {} given; expected {}", shape_text(t), names));
}

void require_same_shape(const char* operation, const Tensor& a, const Tensor& b) {
  if (a.rank == b.rank && std::equal(a.shape.begin(), a.shape.begin() + a.rank, b.shape.begin())) return;
  invalid(operation, fmt::format("tensors {} and {} given; expected equal shapes", shape_text(a), shape_text(b)));
}

void require_contiguous(const char* operation, const Tensor& t) {
  if (!t.contiguous())
    reject(operation, fmt::format("tensor {} has gaps or a permuted order; expected a contiguous one: copy it first",
                                  shape_text(t)));
}

void require_rank(const char* operation, const Tensor& t, int rank) {
  if (t.rank != rank) invalid(operation, fmt::format("tensor {} given; expected {} dimensions", shape_text(t), rank));
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
    invalid(operation, fmt::format("{} has {} elements; expected {} ({})", name, t.elements(), count, of_what));
}

void require_columns(const char* operation, const char* name, const Tensor& t, std::int64_t columns) {
  require_contiguous(operation, t);
  if (t.elements() != columns)
    invalid(operation, fmt::format("{} has {} elements; expected one for each of the {} columns of x", name,
                                   t.elements(), columns));
}

void require_statistic(const char* operation, const char* name, const Tensor& t, std::int64_t rows) {
  require_dtype(operation, t, {DType::f32});
  require_contiguous(operation, t);
  if (t.elements() != rows)
    invalid(operation,
            fmt::format("{} has {} elements; expected one for each of the {} rows of x", name, t.elements(), rows));
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

void require_some_columns(const char* operation, const Tensor& x) {
  if (x.rank == 0 || x.dim(-1) == 0)
    invalid(operation, "no columns given; expected at least one in the last dimension");
}

void require_number(const char* operation, const char* name, const Tensor& t, const char* of_what) {
  require_dtype(operation, t, {DType::f32});
  require_count(operation, name, t, 1, of_what);
}

void require_counter(const char* operation, const char* name, const Tensor& t, const char* of_what) {
  require_dtype(operation, t, {DType::i64});
  require_count(operation, name, t, 1, of_what);
}

// ---- feeds ---------------------------------------------------------------------------------------------------------

std::size_t feed_slot_step(std::size_t slots, std::size_t bytes_per_slot, const void* device_memory) {
  if (slots == 0 || bytes_per_slot == 0 || !device_memory)
    invalid("open_feed",
            fmt::format("{} slots of {} bytes in {} memory; expected at least one of each, and device memory", slots,
                        bytes_per_slot, device_memory ? "given" : "no"));
  return (bytes_per_slot + 255) / 256 * 256;
}

void require_feed_slot(const char* operation, std::size_t slot, std::size_t slots) {
  if (slot < slots) return;
  throw Error(ASSAY_INVALID_ARGUMENT,
              fmt::format("{} of a feed on the " ASSAY_DEVICE_LABEL ": slot {}; expected less than {}", operation, slot,
                          slots));
}

void require_delivery(const Tensor& to, std::size_t bytes_per_slot) {
  require_contiguous("deliver of a feed", to);
  if (to.bytes() > bytes_per_slot)
    invalid("deliver of a feed", fmt::format("{} bytes; expected at most {}, a slot's", to.bytes(), bytes_per_slot));
}

void SentSlots::deliver(std::size_t slot) {
  if (!is_sent_[slot])
    invalid("deliver of a feed", fmt::format("slot {} was not sent since it was delivered last; send it first", slot));
  is_sent_[slot] = false;
}

}  // namespace assay::compute
