// Checks of what an operation's tensors share, of data, products, element-wise operations, embedding and position.
#include "common/operation_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "common/kernel_arguments.hpp"

namespace assay::compute {

namespace {

// ---- memory --------------------------------------------------------------------------------------------------------

struct Extent {
  std::uintptr_t begin, end;  // bytes; empty where the tensor is
};

Extent extent_of(const Tensor& t) {
  const auto begin = reinterpret_cast<std::uintptr_t>(t.data);
  return {begin, t ? begin + t.extent_bytes() : begin};
}

// A tensor as runs of adjacent bytes at even distances, which the parts of a packed buffer are.
struct Runs {
  std::int64_t length = 0, distance = 0;  // bytes; distance 0: one run
  bool even = true;                       // what lies further out steps by whole distances
};

Runs runs_of(const Tensor& t) {
  // The dimensions that are walked, by rising step.
  struct Walk {
    std::int64_t step = 0, extent = 1;
  };
  std::array<Walk, Tensor::max_rank> walks;
  std::size_t count = 0;
  for (int i = 0; i < t.rank && i < Tensor::max_rank; ++i) {
    if (t.dim(i) <= 1) continue;
    std::size_t at = count++;
    for (; at > 0 && walks[at - 1].step > t.step(i); --at) walks[at] = walks[at - 1];
    walks[at] = {t.step(i), t.dim(i)};
  }
  const auto width = static_cast<std::int64_t>(size_of(t.dtype));
  std::size_t i = 0;
  std::int64_t run = 1;
  for (; i < count && walks[i].step == run; ++i) run *= walks[i].extent;
  Runs runs{run * width, i < count ? walks[i].step * width : 0, true};
  for (; i < count; ++i) runs.even = runs.even && runs.distance > 0 && walks[i].step * width % runs.distance == 0;
  return runs;
}

// Whether the tensors have a byte in common, or cannot be seen to have none.
bool overlap(const Tensor& a, const Extent& of_a, const Tensor& b, const Extent& of_b) {
  if (of_a.begin >= of_b.end || of_b.begin >= of_a.end) return false;
  const Runs x = runs_of(a), y = runs_of(b);
  if (x.distance == 0 || x.distance != y.distance || !x.even || !y.even) return true;
  const auto distance = static_cast<std::uintptr_t>(x.distance);
  const std::uintptr_t from_a = of_b.begin >= of_a.begin ? (of_b.begin - of_a.begin) % distance
                                                         : (distance - (of_a.begin - of_b.begin) % distance) % distance;
  return from_a < static_cast<std::uintptr_t>(x.length) || from_a + static_cast<std::uintptr_t>(y.length) > distance;
}

bool are_one(const Tensor& a, const Tensor& b) {
  return a.data == b.data && a.dtype == b.dtype && a.rank == b.rank &&
         std::equal(a.shape.begin(), a.shape.begin() + a.rank, b.shape.begin()) &&
         std::equal(a.stride.begin(), a.stride.begin() + a.rank, b.stride.begin());
}

bool may_be_one(std::span<const InPlace> in_place, std::string_view a, std::string_view b) {
  return std::any_of(in_place.begin(), in_place.end(), [&](const InPlace& pair) {
    return (pair.out == a && pair.in == b) || (pair.out == b && pair.in == a);
  });
}

}  // namespace

void require_tensors(const char* operation, std::span<const TensorUse> tensors) {
  for (const TensorUse& use : tensors) {
    if (!*use.tensor && !use.may_be_empty && use.tensor->elements() > 0)
      invalid(operation, fmt::format("{} is empty; expected a tensor", use.name));
    if (is_unbound(*use.tensor))
      invalid(
          operation,
          fmt::format("{} has no memory yet; expected a tensor of a plan or a parameter set that is bound", use.name));
  }
}

void require_places(const char* operation, std::span<const TensorUse> tensors, std::span<const InPlace> in_place) {
  std::array<Extent, most_tensors> extents;
  for (std::size_t i = 0; i < tensors.size(); ++i) extents[i] = extent_of(*tensors[i].tensor);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].written || extents[i].begin == extents[i].end) continue;
    for (std::size_t j = 0; j < tensors.size(); ++j) {
      if (j == i || (tensors[j].written && j < i)) continue;
      const Tensor &a = *tensors[i].tensor, &b = *tensors[j].tensor;
      if (!overlap(a, extents[i], b, extents[j])) continue;
      const bool allowed = may_be_one(in_place, tensors[i].name, tensors[j].name);
      if (allowed && are_one(a, b)) continue;
      invalid(operation, fmt::format("{} {} and {} {} share memory; expected {}", tensors[i].name, shape_text(a),
                                     tensors[j].name, shape_text(b),
                                     allowed ? "the same tensor, or one of its own place" : "each in its own place"));
    }
  }
}

namespace {

constexpr std::initializer_list<DType> any_float = {DType::f32, DType::bf16, DType::f16};

// Contiguous, of one shape and one type that the device computes in.
void require_alike(const char* operation, std::initializer_list<const Tensor*> tensors) {
  const Tensor& first = **tensors.begin();
  require_float(operation, first);
  for (const Tensor* t : tensors) require_like(operation, first, *t);
}

// Of one shape and one type that the device computes in; rows may be apart.
void require_alike_rows(const char* operation, std::initializer_list<const Tensor*> tensors) {
  const Tensor& first = **tensors.begin();
  require_float(operation, first);
  for (const Tensor* t : tensors) {
    require_dtype(operation, *t, {first.dtype});
    require_same_shape(operation, first, *t);
    as_rows(operation, *t);
  }
}

void require_bias(const char* operation, const Tensor& x, const Tensor& bias) {
  require_dtype(operation, bias, {DType::f32, x.dtype});
  require_contiguous(operation, bias);
  if (x.rank == 0 || bias.elements() != x.dim(-1))
    invalid(operation, fmt::format("a bias of {} elements; expected one for each of the {} columns", bias.elements(),
                                   x.rank == 0 ? 0 : x.dim(-1)));
}

void require_shape(const char* operation, bool fits, const char* expected) {
  if (!fits) invalid(operation, fmt::format("expected {}", expected));
}

}  // namespace

// ---- data ----------------------------------------------------------------------------------------------------------

void check(const op::Fill& op) { require_contiguous(op.name, op.x); }

void check(const op::Copy& op) {
  require_same_shape(op.name, op.to, op.from);
  if (op.to.dtype == op.from.dtype) return;
  for (const Tensor* t : std::initializer_list<const Tensor*>{&op.to, &op.from})
    require_dtype("copy between types", *t, any_float);
}

void check(const op::RandomNormal& op) {
  require_contiguous(op.name, op.x);
  require_dtype(op.name, op.x, any_float);
}

void check(const op::RandomIntegers& op) {
  require_contiguous(op.name, op.x);
  require_dtype(op.name, op.x, {DType::i64});
  if (op.low >= op.high) invalid(op.name, fmt::format("range [{}, {}) is empty; expected low < high", op.low, op.high));
}

// ---- matrix products -----------------------------------------------------------------------------------------------

void check(const op::Matmul& op) {
  const Tensor &a = op.a, &b = op.b, &c = op.c;
  if (a.rank < 2 || a.rank != b.rank || a.rank != c.rank)
    invalid(op.name,
            fmt::format("tensors of {}, {} and {} dimensions; expected the same, 2 to 4", a.rank, b.rank, c.rank));
  require_float(op.name, a);
  require_dtype(op.name, b, {a.dtype});
  require_dtype(op.name, c, {a.dtype, DType::f32});
  const std::int64_t m = c.dim(-2), n = c.dim(-1), k = op.transpose_a ? a.dim(-2) : a.dim(-1);
  const bool fits = (op.transpose_a ? a.dim(-1) : a.dim(-2)) == m && (op.transpose_b ? b.dim(-1) : b.dim(-2)) == k &&
                    (op.transpose_b ? b.dim(-2) : b.dim(-1)) == n;
  if (!fits)
    invalid(op.name, fmt::format("a is [{}, {}]{}, b is [{}, {}]{}, c is [{}, {}]; expected [m, k] x [k, n] -> [m, n] "
                                 "after transposing",
                                 a.dim(-2), a.dim(-1), op.transpose_a ? " transposed" : "", b.dim(-2), b.dim(-1),
                                 op.transpose_b ? " transposed" : "", m, n));
  for (int i = c.rank - 3; i >= 0; --i)
    if (a.dim(i) != b.dim(i) || a.dim(i) != c.dim(i))
      invalid(op.name,
              fmt::format("leading dimension {} is {}, {} and {}; expected the same", i, a.dim(i), b.dim(i), c.dim(i)));
  if (!op.bias) return;
  require_dtype("matmul with a bias", op.bias, {c.dtype});
  require_rank("matmul with a bias", op.bias, 1);
  require_count("matmul with a bias", "bias", op.bias, n, "one for each column of c");
  if (op.accumulate || op.alpha != 1.0F)
    invalid(op.name, fmt::format("a bias with {} given; expected alpha 1 and no accumulation: use bias_add",
                                 op.accumulate ? "accumulate" : fmt::format("alpha {}", op.alpha)));
}

// ---- element-wise --------------------------------------------------------------------------------------------------

void check(const op::Add& op) { require_alike(op.name, {&op.a, &op.b, &op.out}); }
void check(const op::Multiply& op) { require_alike(op.name, {&op.a, &op.b, &op.out}); }
void check(const op::Scale& op) { require_alike(op.name, {&op.x, &op.out}); }
void check(const op::ActivationForward& op) { require_alike(op.name, {&op.x, &op.y}); }
void check(const op::ActivationBackward& op) { require_alike(op.name, {&op.x, &op.dy, &op.dx}); }

void check(const op::BiasAdd& op) {
  require_alike(op.name, {&op.x, &op.y});
  require_bias(op.name, op.x, op.bias);
}

void check(const op::BiasBackward& op) {
  require_alike(op.name, {&op.dy});
  require_bias(op.name, op.dy, op.dbias);
}

void check(const op::SwigluForward& op) { require_alike_rows(op.name, {&op.gate, &op.up, &op.h}); }

void check(const op::SwigluBackward& op) {
  require_alike_rows(op.name, {&op.gate, &op.up, &op.dh, &op.dgate, &op.dup});
  if (op.h) require_alike_rows(op.name, {&op.gate, &op.h});
}

void require_probability(const char* operation, float probability) {
  if (!(probability >= 0.0F && probability < 1.0F))
    invalid(operation, fmt::format("probability {}; expected 0 <= probability < 1", probability));
}

void require_dropout(const char* operation, const Dropout& dropout) {
  require_probability(operation, dropout.probability);
  if (dropout.probability == 0.0F) return;
  if (!dropout.step) invalid(operation, "step is empty; expected the number of this step, in device memory");
  require_counter(operation, "step", dropout.step, step_text);
}

void check(const op::ApplyDropout& op) {
  require_alike(op.name, {&op.x, &op.y});
  require_dropout(op.name, op.dropout);
  if (!op.dropout.step) invalid(op.name, "step is empty; expected the number of this step, in device memory");
  require_counter(op.name, "step", op.dropout.step, step_text);
}

void check(const op::BiasReluDropoutForward& op) {
  require_alike(op.name, {&op.x, &op.y});
  if (op.bias) require_bias(op.name, op.x, op.bias);
  require_dropout(op.name, op.dropout);
}

void check(const op::ReluDropoutBackward& op) {
  require_alike(op.name, {&op.y, &op.dy, &op.dx});
  require_probability(op.name, op.probability);
}

// ---- embedding and position ----------------------------------------------------------------------------------------

namespace {

void require_embedding(const char* operation, const Tensor& ids, const Tensor& table, const Tensor& rows,
                       const char* expected) {
  require_dtype(operation, ids, {DType::i64});
  require_float(operation, table);
  require_float(operation, rows);
  for (const Tensor* t : {&ids, &table, &rows}) require_contiguous(operation, *t);
  require_rank(operation, table, 2);
  require_shape(operation,
                rows.rank > 0 && rows.dim(-1) == table.dim(1) && rows.elements() == ids.elements() * table.dim(1),
                expected);
}

void require_rotary_table(const char* operation, const Tensor& cos, const Tensor& sin) {
  require_rank(operation, cos, 2);
  require_same_shape(operation, cos, sin);
  for (const Tensor* t : {&cos, &sin}) {
    require_dtype(operation, *t, {DType::f32});
    require_contiguous(operation, *t);
  }
}

}  // namespace

void check(const op::EmbeddingForward& op) {
  require_embedding(op.name, op.ids, op.table, op.out, "out [rows, C] for ids [rows] and table [V, C]");
}

void check(const op::EmbeddingBackward& op) {
  require_embedding(op.name, op.ids, op.dtable, op.dout, "dout [rows, C] for ids [rows] and dtable [V, C]");
}

void check(const op::RotaryTable& op) { require_rotary_table(op.name, op.cos, op.sin); }

void check(const op::Rotary& op) {
  require_float(op.name, op.x);
  require_rank(op.name, op.x, 4);
  require_rotary_table(op.name, op.cos, op.sin);
  require_shape(op.name, op.x.dim(3) == 2 * op.cos.dim(1) && op.x.dim(1) <= op.cos.dim(0),
                "x [B, T, H, D] with cos and sin [at least T, D/2]");
  if (op.x.step(3) != 1) reject(op.name, "the last dimension of x has gaps; expected adjacent elements: copy it first");
}

}  // namespace assay::compute
