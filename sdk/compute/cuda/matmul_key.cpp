#include "matmul_key.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "common/checks.hpp"

namespace assay::cuda {
namespace {

using compute::DType;
using compute::reject;
using compute::require_dtype;
using compute::size_of;
using compute::Tensor;

// How a matrix lies: `ld` elements from line to line, lines being its rows or, when transposed, its columns.
struct Lines {
  std::int64_t ld;
  bool transposed;
};

// Where an extent is 1 its step is never taken; a canonical one keeps equal products under one key.
Lines lines_of(const char* name, const Tensor& t, bool transpose, std::int64_t rows, std::int64_t columns) {
  std::int64_t row = t.step(-2), column = t.step(-1);
  if (transpose) std::swap(row, column);
  if (columns == 1) column = 1;
  if (rows == 1) row = column == 1 ? columns : 1;
  const bool transposed = column != 1;
  const std::int64_t ld = transposed ? column : row;
  const std::int64_t width = transposed ? rows : columns;
  if (transposed && row != 1)
    reject("matmul", fmt::format("{} of {} by {} steps by {} and {} elements; expected one of them to be 1: copy it "
                                 "first",
                                 name, rows, columns, row, column));
  if (ld < width)
    reject("matmul", fmt::format("{} of {} by {} has lines of {} elements that begin every {}; expected lines that do "
                                 "not overlap: copy it first",
                                 name, rows, columns, width, ld));
  return {ld, transposed};
}

// The largest power of two, up to 256, that divides the address and the outer step, which cuBLASLt does not see.
std::int32_t alignment_of(const void* address, std::int64_t outer_step, DType dtype) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address) |
                    static_cast<std::uintptr_t>(outer_step) * size_of(dtype) | std::uintptr_t{256};
  return static_cast<std::int32_t>(bits & (~bits + 1));
}

constexpr std::int32_t bias_alignment_least = 16;

struct BatchDim {
  std::int64_t extent = 1, a_step = 0, b_step = 0, c_step = 0;
};

// Leading dimensions of 1 are dropped, and two that all operands walk in one stride become one. Outer first.
std::array<BatchDim, 2> batch_dims(const Tensor& a, const Tensor& b, const Tensor& c) {
  std::array<BatchDim, 2> dims;  // [1] is the inner one
  int used = 0;
  for (int i = c.rank - 3; i >= 0; --i) {  // innermost first
    if (c.dim(i) == 1) continue;
    const BatchDim d{c.dim(i), a.step(i), b.step(i), c.step(i)};
    if (d.a_step < 0 || d.b_step < 0 || d.c_step <= 0)
      reject("matmul", fmt::format("leading dimension {} steps by {}, {} and {} elements; expected none below 0, and "
                                   "the result's above 0: copy it first",
                                   i, d.a_step, d.b_step, d.c_step));
    BatchDim& inner = dims[1];
    if (used == 1 && d.a_step == inner.a_step * inner.extent && d.b_step == inner.b_step * inner.extent &&
        d.c_step == inner.c_step * inner.extent) {
      inner.extent *= d.extent;
      continue;
    }
    dims[used == 0 ? 1 : 0] = d;
    ++used;
  }
  // The longer of two goes into the batch, which is one launch; the other one is looped over.
  if (dims[0].extent > dims[1].extent) std::swap(dims[0], dims[1]);
  return dims;
}

}  // namespace

std::size_t HashMatmulKey::operator()(const MatmulKey& key) const noexcept {
  static_assert(sizeof(MatmulKey) % sizeof(std::uint64_t) == 0);
  std::uint64_t word[sizeof(MatmulKey) / sizeof(std::uint64_t)];
  std::memcpy(word, &key, sizeof word);
  std::uint64_t hash = 0;
  for (const std::uint64_t w : word) hash = (hash ^ w) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
  return hash;
}

std::string describe(const MatmulKey& key) {
  std::string text =
      fmt::format("matmul {0} {0}->{1} {2}{3} {4}x{5}x{6} (m x k x n) batch {7} ld {8} {9} {10}", name_of(key.input),
                  name_of(key.output), key.transpose_a ? 't' : 'n', key.transpose_b ? 't' : 'n', key.m, key.k, key.n,
                  key.batch, key.lda, key.ldb, key.ldc);
  if (key.batch > 1) text += fmt::format(" step {} {} {}", key.a_step, key.b_step, key.c_step);
  text += fmt::format(" align {} {} {}", key.a_alignment, key.b_alignment, key.c_alignment);
  if (key.math == compute::ProductMath::tf32) text += " tf32";
  if (key.accumulate) text += " accumulate";
  if (key.residual) text += fmt::format(" residual align {}", key.residual_alignment);
  if (key.scaled) text += key.scaled == 1 ? " scaled as one" : " scaled";
  if (key.fast_accumulation) text += " fast";
  if (key.multiprocessors > 0) text += fmt::format(" on {} multiprocessors", key.multiprocessors);
  if (has_bias(key)) text += fmt::format(" bias {} align {}", name_of(key.bias), key.bias_alignment);
  return text;
}

MatmulCall matmul_call(const compute::op::Matmul& op, compute::ProductMath math) {
  const Tensor &a = op.a, &b = op.b, &c = op.c;
  if (c.step(-1) != 1 && c.dim(-1) != 1 && (c.step(-2) == 1 || c.dim(-2) == 1)) {
    // A c that lies by columns, or is a single row with gaps, is written as its transpose, c' = b' a'.
    if (op.bias)
      reject("matmul", "a bias for a result that lies by columns; expected one that lies by rows: use bias_add");
    if (op.residual)
      reject("matmul", "a residual for a result that lies by columns; expected one that lies by rows: use add");
    if (op.a_scale) reject("matmul", "numbers of 8 bits for a result that lies by columns; expected one by rows");
    return matmul_call({.a = b,
                        .b = a,
                        .c = c.transposed(c.rank - 2, c.rank - 1),
                        .transpose_a = !op.transpose_b,
                        .transpose_b = !op.transpose_a,
                        .alpha = op.alpha,
                        .accumulate = op.accumulate},
                       math);
  }
  MatmulCall call;
  MatmulKey& key = call.key;
  key.m = c.dim(-2), key.n = c.dim(-1);
  key.k = op.transpose_a ? a.dim(-2) : a.dim(-1);
  const auto dims = batch_dims(a, b, c);
  if (dims[1].extent > std::numeric_limits<std::int32_t>::max())
    reject("matmul", fmt::format("a batch of {} products; expected at most {}", dims[1].extent,
                                 std::numeric_limits<std::int32_t>::max()));
  call.outer = dims[0].extent;
  call.a_outer_step = dims[0].a_step, call.b_outer_step = dims[0].b_step, call.c_outer_step = dims[0].c_step;
  key.batch = static_cast<std::int32_t>(dims[1].extent);
  key.a_step = dims[1].a_step, key.b_step = dims[1].b_step, key.c_step = dims[1].c_step;
  if (key.k > 0) {
    const Lines a_lines = lines_of("a", a, op.transpose_a, key.m, key.k);
    const Lines b_lines = lines_of("b", b, op.transpose_b, key.k, key.n);
    key.lda = a_lines.ld, key.transpose_a = a_lines.transposed;
    key.ldb = b_lines.ld, key.transpose_b = b_lines.transposed;
  }
  key.ldc = lines_of("c", c, false, key.m, key.n).ld;  // by rows: the other kind was turned above, or is rejected here
  key.input = a.dtype, key.output = c.dtype;
  key.math = a.dtype == DType::f32 ? math : compute::ProductMath::exact;
  key.accumulate = op.accumulate;
  call.a = a.data, call.b = b.data, call.c = c.data;
  call.alpha = op.alpha;
  key.scaled = op.b_scale ? 2 : op.a_scale ? 1 : 0;
  // Of the matrix units, which take them 16 at a time.
  if (key.scaled && (key.k % 16 != 0 || key.n % 16 != 0))
    reject("matmul",
           fmt::format("8 bits and dimensions k = {}, n = {}; expected multiples of 16: use bf16", key.k, key.n));
  key.fast_accumulation = op.fast_accumulation;
  call.a_scale = static_cast<const float*>(op.a_scale.data);
  call.b_scale = static_cast<const float*>(op.b_scale.data);
  key.a_alignment = alignment_of(call.a, call.a_outer_step, a.dtype);
  key.b_alignment = alignment_of(call.b, call.b_outer_step, b.dtype);
  key.c_alignment = alignment_of(call.c, call.c_outer_step, c.dtype);
  if (op.residual) {
    call.residual = op.residual.data;
    call.residual_scale = op.residual_scale;
    key.residual = 1;
    key.residual_alignment = alignment_of(call.residual, call.c_outer_step, c.dtype);
    if (key.k == 0) reject("matmul", "a residual for a product whose inner dimension is 0; use copy");
  }
  if (op.bias) {
    call.bias = op.bias.data;
    key.bias = op.bias.dtype;
    key.bias_alignment = alignment_of(call.bias, 0, key.bias);
    // cuBLASLt asks for no alignment of it in its preferences, and its kernels read it in whole vectors.
    if (key.bias_alignment < bias_alignment_least)
      reject("matmul",
             fmt::format("a bias at an address that is no multiple of {}; expected one that is: copy it first",
                         bias_alignment_least));
    if (key.k == 0) reject("matmul", "a bias for a product whose inner dimension is 0; use fill and bias_add");
  }
  return call;
}

}  // namespace assay::cuda
