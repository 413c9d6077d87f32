// Checks of what an operation's tensors share, of data, products, element-wise operations, embedding and position.
#include "common/operation_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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
                                     allowed ? "the same tensor, or one with its own place" : "each in its own place"));
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

// Of numbers of 8 bits.
static void require_scaled_product(const op::Matmul& op, std::int64_t m, std::int64_t n) {
  constexpr const char* name = "matmul of 8 bits";
  require_rank(name, op.a, 2);
  require_contiguous(name, op.a);
  require_contiguous(name, op.b);
  if (op.transpose_a || !op.transpose_b || op.alpha != 1.0F || op.bias || op.residual || (op.accumulate && op.b_scale))
    invalid(name,
            "expected transpose_b alone: no transpose_a, no alpha, no bias, and no sum with a scale for each row");
  const auto require_scale = [&](const char* which, const Tensor& scale, std::int64_t count, const char* of_what) {
    require_dtype(name, scale, {DType::f32});
    require_rank(name, scale, 1);
    require_count(name, which, scale, count, of_what);
    require_contiguous(name, scale);
  };
  if (!op.b_scale) return require_scale("a_scale", op.a_scale, 1, "one number, as there is no b_scale");
  require_scale("a_scale", op.a_scale, m, "one for each row of c");
  require_scale("b_scale", op.b_scale, n, "one for each column of c");
}

void check(const op::Matmul& op) {
  const Tensor &a = op.a, &b = op.b, &c = op.c;
  if (a.rank < 2 || a.rank != b.rank || a.rank != c.rank)
    invalid(op.name,
            fmt::format("tensors of {}, {} and {} dimensions; expected the same, 2 to 4", a.rank, b.rank, c.rank));
  const bool eight_bits = a.dtype == DType::f8_e4m3;
  if (!eight_bits) require_float(op.name, a);
  require_dtype(op.name, b, {a.dtype});
  require_dtype(op.name, c, {eight_bits ? DType::bf16 : a.dtype, DType::f32});
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
  if (eight_bits) return require_scaled_product(op, m, n);
  if (op.a_scale || op.b_scale || op.fast_accumulation)
    invalid(op.name, fmt::format("scales or fast accumulation for numbers of {}; expected them with fp8_e4m3 alone",
                                 name_of(a.dtype)));
  if (op.residual) {
    require_dtype("matmul with a residual", op.residual, {c.dtype});
    require_same_shape("matmul with a residual", c, op.residual);
    if (op.residual.stride != c.stride)
      invalid(op.name, "a residual whose steps are not those of c; expected the same: use add");
    if (op.accumulate || op.bias) invalid(op.name, "a residual with accumulate or a bias; expected it alone: use add");
  } else if (op.residual_scale != 1.0F) {
    invalid(
        op.name,
        fmt::format("residual_scale is {} and there is no residual to scale; expected a residual, or residual_scale 1",
                    op.residual_scale));
  }
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
void check(const op::SoftCap& op) {
  require_alike(op.name, {&op.x, &op.out});
  if (!(op.cap > 0) || !std::isfinite(op.cap)) invalid(op.name, fmt::format("cap is {}; expected above 0", op.cap));
}
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

void require_eight_bits(const char* operation, const op::EightBitRows& eight_bits, std::int64_t rows,
                        std::int64_t columns) {
  if (!eight_bits && !eight_bits.inverse_scale) return;
  const std::string name = fmt::format("{} in 8 bits", operation);
  require_dtype(name.c_str(), eight_bits.numbers, {DType::f8_e4m3});
  require_dtype(name.c_str(), eight_bits.inverse_scale, {DType::f32});
  require_contiguous(name.c_str(), eight_bits.numbers);
  require_contiguous(name.c_str(), eight_bits.inverse_scale);
  const Tensor& numbers = eight_bits.numbers;
  if (numbers.rank != 2 || numbers.dim(0) != rows || numbers.dim(1) != columns)
    invalid(name.c_str(), fmt::format("numbers is {}; expected [{}, {}]", shape_text(numbers), rows, columns));
  require_count(name.c_str(), "inverse_scale", eight_bits.inverse_scale, rows, "one for each row");
}

void require_some_result(const char* operation, const char* name, const Tensor& result,
                         const op::EightBitRows& eight_bits) {
  if (!result && !eight_bits)
    invalid(operation, fmt::format("{} is left out, and its 8 bits, too; expected one of them", name));
}

static void require_gated(const char* operation, Activation activation, const op::EightBitRows& eight_bits) {
  if (activation == Activation::silu) return;
  if (activation != Activation::gelu_tanh)
    reject(operation, "an activation of the gate that is not SiLU or GELU by tanh");
  if (eight_bits) reject(operation, "8 bits of a gate with GELU; expected SiLU, or no 8 bits");
}

void check(const op::SwigluForward& op) {
  require_gated(op.name, op.activation, op.eight_bits);
  require_alike_rows(op.name, {&op.gate, &op.up});
  if (op.h) require_alike_rows(op.name, {&op.gate, &op.h});
  require_some_result(op.name, "h", op.h, op.eight_bits);
  if (op.h && op.eight_bits) require_contiguous(op.name, op.h);
  require_eight_bits(op.name, op.eight_bits, rows_of(op.gate), op.gate.dim(-1));
}

void check(const op::SwigluBackward& op) {
  require_gated(op.name, op.activation, op.eight_bits);
  require_alike_rows(op.name, {&op.gate, &op.up, &op.dh});
  if (static_cast<bool>(op.dgate) != static_cast<bool>(op.dup))
    invalid(op.name, "one of dgate and dup; expected both of them, or none");
  if (op.dgate) require_alike_rows(op.name, {&op.gate, &op.dgate, &op.dup});
  require_some_result(op.name, "dgate", op.dgate, op.eight_bits);
  if (op.h) require_alike_rows(op.name, {&op.gate, &op.h});
  const std::int64_t width = op.gate.dim(-1);
  require_eight_bits(op.name, op.eight_bits, rows_of(op.gate), 2 * width);
  if (op.eight_bits && op.dgate &&
      !(op.dgate.rank == 2 && op.dgate.step(0) == 2 * width && op.dup.step(0) == 2 * width &&
        op.dup.data == op.dgate.slice(1, width, 0).data))
    invalid(op.name, "8 bits of dgate and dup that are not the halves of one buffer; expected [rows, 2 columns]");
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

void require_adjacent(const char* operation, const char* name, const Tensor& t) {
  if (t.step(t.rank - 1) == 1) return;
  reject(operation, fmt::format("the last dimension of {} has gaps; expected adjacent elements: copy it first", name));
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

void check(const op::RotaryTable& op) {
  require_rotary_table(op.name, op.cos, op.sin);
  const RotaryScaling& s = op.scaling;
  const auto require = [&](bool is_met, const char* expected) {
    if (!is_met) invalid(op.name, std::string("expected ") + expected);
  };
  require(op.theta >= 1 && std::isfinite(op.theta), "a theta of at least 1");
  if (s.kind == RotaryScalingKind::none) return;
  require(s.factor >= 1 && std::isfinite(s.factor), "a factor of the scaling of at least 1");
  if (s.kind == RotaryScalingKind::linear) return;
  require(s.original_positions > 0 && std::isfinite(s.original_positions), "original_positions above 0");
  if (s.kind == RotaryScalingKind::llama3)
    return require(s.low > 0 && s.high > s.low && std::isfinite(s.high), "turns of 0 < low < high");
  require(op.theta > 1, "a theta above 1 of yarn");
  require(s.beta_slow > 0 && s.beta_fast > s.beta_slow && std::isfinite(s.beta_fast),
          "turns of 0 < beta_slow < beta_fast");
  require(s.magnitude >= 0 && std::isfinite(s.magnitude), "a magnitude of at least 0, which is the formula's");
}

void check(const op::Rotary& op) {
  require_float(op.name, op.x);
  require_rank(op.name, op.x, 4);
  require_rotary_table(op.name, op.cos, op.sin);
  require_shape(op.name, op.x.dim(3) == 2 * op.cos.dim(1) && op.x.dim(1) <= op.cos.dim(0),
                "x [B, T, H, D] with cos and sin [at least T, D/2]");
  require_adjacent(op.name, "x", op.x);
}

namespace {

// `more`: of the type and shape of x.
template <class Op>
void require_head_norm(const Op& op, std::initializer_list<std::pair<const char*, const Tensor*>> more) {
  require_float(op.name, op.x);
  require_rank(op.name, op.x, 4);
  require_rotary_table(op.name, op.cos, op.sin);
  require_shape(op.name, op.x.dim(3) > 0 && op.x.dim(3) == 2 * op.cos.dim(1) && op.x.dim(1) <= op.cos.dim(0),
                "x [B, T, H, D] with cos and sin [at least T, D/2]");
  require_adjacent(op.name, "x", op.x);
  for (const auto& [name, t] : more) {
    require_dtype(op.name, *t, {op.x.dtype});
    require_same_shape(op.name, op.x, *t);
    require_adjacent(op.name, name, *t);
  }
  require_dtype(op.name, op.weight, {DType::f32, op.x.dtype});
  require_contiguous(op.name, op.weight);
  require_shape(op.name, op.weight.rank == 2 && op.weight.dim(0) == 2 && op.weight.dim(1) == op.x.dim(3),
                "weight [2, D], of queries and of keys, for x [B, T, H, D]");
  if (op.queries < 0 || op.queries > op.x.dim(2))
    invalid(op.name, fmt::format("queries = {}; expected 0 to {}, the heads of x", op.queries, op.x.dim(2)));
}

}  // namespace

void check(const op::HeadNormRotaryForward& op) { require_head_norm(op, {{"rotated", &op.rotated}}); }

void check(const op::HeadNormRotaryBackward& op) {
  require_head_norm(op, {{"drotated", &op.drotated}, {"dx", &op.dx}});
  require_dtype(op.name, op.dweight, {DType::f32, op.x.dtype});
  require_contiguous(op.name, op.dweight);
  require_same_shape(op.name, op.weight, op.dweight);
}

namespace {

void require_latent_keys(const char* operation, const Tensor& nope, const Tensor& shared, const Tensor& k,
                         const Tensor& cos, const Tensor& sin) {
  require_float(operation, k);
  require_rank(operation, k, 4);
  require_rank(operation, nope, 4);
  require_rank(operation, shared, 3);
  require_rotary_table(operation, cos, sin);
  const bool same_tokens = nope.dim(0) == k.dim(0) && nope.dim(1) == k.dim(1) && nope.dim(2) == k.dim(2) &&
                           shared.dim(0) == k.dim(0) && shared.dim(1) == k.dim(1);
  require_shape(operation,
                same_tokens && k.dim(2) > 0 && k.dim(3) == nope.dim(3) + shared.dim(2) &&
                    shared.dim(2) == 2 * cos.dim(1) && k.dim(1) <= cos.dim(0),
                "nope [B, T, H, D], shared [B, T, R] and k [B, T, H, D + R] with cos and sin [at least T, R/2]");
  for (const auto& [name, t] : {std::pair("nope", &nope), std::pair("shared", &shared), std::pair("k", &k)}) {
    require_dtype(operation, *t, {k.dtype});
    require_adjacent(operation, name, *t);
  }
}

}  // namespace

void check(const op::LatentKeysForward& op) { require_latent_keys(op.name, op.nope, op.shared, op.k, op.cos, op.sin); }

void check(const op::LatentKeysBackward& op) {
  require_latent_keys(op.name, op.dnope, op.dshared, op.dk, op.cos, op.sin);
}

}  // namespace assay::compute
