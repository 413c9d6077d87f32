// What cuBLASLt must know of a matrix product to choose an algorithm for it, and how a product of tensors comes down to
// that. Plain C++: tested without a GPU.
#pragma once
#include <assay/compute/backend.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace assay::cuda {

// `batch` products c[m, n] = op(a)[m, k] op(b)[k, n] (+ c), all in rows: c steps by ldc from row to row. An operand
// that is transposed lies by columns: its steps are 1 and ld instead of ld and 1. alpha is left out, since no algorithm
// depends on it. No padding, so that it hashes as words.
struct MatmulKey {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  std::int64_t a_step = 0, b_step = 0, c_step = 0;  // from one product of the batch to the next, in elements
  std::int64_t multiprocessors = 0;                 // that it may count on; 0: all of the device's
  std::int32_t batch = 1;
  compute::DType input{}, output{};
  compute::ProductMath math{};  // exact unless the inputs are fp32
  std::int32_t transpose_a = 0, transpose_b = 0, accumulate = 0;
  std::int32_t a_alignment = 0, b_alignment = 0, c_alignment = 0;  // bytes, of the addresses; at most 256
  compute::DType bias{};                                           // of the vector that is added to each row of c
  std::int32_t bias_alignment = 0;                                 // 0: no bias
  std::int32_t scaled = 0;  // inputs of 8 bits, with a scale for all of c (1), or for each row and column (2)
  std::int32_t fast_accumulation = 0;                 // of those
  std::int32_t residual = 0, residual_alignment = 0;  // is there a matrix that is added, which lies as c

  bool operator==(const MatmulKey&) const = default;
};
static_assert(std::has_unique_object_representations_v<MatmulKey>);

struct HashMatmulKey {
  std::size_t operator()(const MatmulKey& key) const noexcept;
};

// "matmul bf16 bf16->fp32 nt 2048x768x2304 (m x k x n) batch 1 ld 768 768 2304 align 256 256 256 accumulate"
std::string describe(const MatmulKey& key);

// A product of tensors as `outer` runs of a key, whose operands move by the outer steps in between.
struct MatmulCall {
  MatmulKey key;
  const void *a = nullptr, *b = nullptr;
  void* c = nullptr;
  const void *bias = nullptr, *residual = nullptr;
  const float *a_scale = nullptr, *b_scale = nullptr;
  std::int64_t outer = 1;
  std::int64_t a_outer_step = 0, b_outer_step = 0, c_outer_step = 0;  // elements
  float alpha = 1.0F, residual_scale = 1.0F;
};

// Of a checked product, whose c has elements. Throws assay::Error (UNSUPPORTED) for steps and alignments that are not
// served. An inner dimension of 0 is passed on.
MatmulCall matmul_call(const compute::op::Matmul& op, compute::ProductMath math);

// Elements from the first to the last that an operand of `rows` lines of `width` spans, over the batch.
constexpr std::int64_t span_of(std::int64_t lines, std::int64_t width, std::int64_t ld, std::int64_t batch,
                               std::int64_t step) {
  if (lines == 0 || width == 0 || batch == 0) return 0;
  return (batch - 1) * step + (lines - 1) * ld + width;
}
constexpr std::int64_t span_of_a(const MatmulKey& key) {
  return key.transpose_a ? span_of(key.k, key.m, key.lda, key.batch, key.a_step)
                         : span_of(key.m, key.k, key.lda, key.batch, key.a_step);
}
constexpr std::int64_t span_of_b(const MatmulKey& key) {
  return key.transpose_b ? span_of(key.n, key.k, key.ldb, key.batch, key.b_step)
                         : span_of(key.k, key.n, key.ldb, key.batch, key.b_step);
}
constexpr bool has_bias(const MatmulKey& key) { return key.bias_alignment != 0; }
constexpr std::int64_t span_of_c(const MatmulKey& key) { return span_of(key.m, key.n, key.ldc, key.batch, key.c_step); }

}  // namespace assay::cuda
