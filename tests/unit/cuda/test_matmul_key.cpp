// How products of tensors come down to what cuBLASLt is asked for: each call is carried out here, element by element,
// from the key alone, and compared with the product of the tensors.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "common/operation_checks.hpp"
#include "cuda/matmul_key.hpp"

namespace assay::cuda {
namespace {

using compute::DType;
using compute::ProductMath;
using compute::Tensor;

struct Form {
  bool transpose_a = false, transpose_b = false;
  float alpha = 1.0F;
  bool accumulate = false;
  Tensor bias = {};
};

// As the backend calls it: after the checks that devices share.
MatmulCall call_of(const Tensor& a, const Tensor& b, const Tensor& c, const Form& o, ProductMath math) {
  const compute::op::Matmul op{.a = a,
                               .b = b,
                               .c = c,
                               .transpose_a = o.transpose_a,
                               .transpose_b = o.transpose_b,
                               .alpha = o.alpha,
                               .accumulate = o.accumulate,
                               .bias = o.bias};
  compute::check(op);
  return matmul_call(op, math);
}

std::int64_t at(std::int64_t row, std::int64_t column, std::int64_t ld, bool transposed) {
  return transposed ? column * ld + row : row * ld + column;
}

// What the plan's execution does, on fp32.
void carry_out(const MatmulCall& call) {
  const MatmulKey& key = call.key;
  for (std::int64_t o = 0; o < call.outer; ++o)
    for (std::int64_t s = 0; s < key.batch; ++s) {
      const auto* const a = static_cast<const float*>(call.a) + o * call.a_outer_step + s * key.a_step;
      const auto* const b = static_cast<const float*>(call.b) + o * call.b_outer_step + s * key.b_step;
      auto* const c = static_cast<float*>(call.c) + o * call.c_outer_step + s * key.c_step;
      for (std::int64_t i = 0; i < key.m; ++i)
        for (std::int64_t j = 0; j < key.n; ++j) {
          float sum = 0.0F;
          for (std::int64_t l = 0; l < key.k; ++l)
            sum += a[at(i, l, key.lda, key.transpose_a)] * b[at(l, j, key.ldb, key.transpose_b)];
          float& target = c[i * key.ldc + j];
          target = call.alpha * sum + (key.accumulate ? target : 0.0F) +
                   (has_bias(key) ? static_cast<const float*>(call.bias)[j] : 0.0F);
        }
    }
}

float& element(const Tensor& t, std::int64_t x, std::int64_t y, std::int64_t row, std::int64_t column) {
  std::int64_t offset = row * t.step(-2) + column * t.step(-1);
  if (t.rank >= 3) offset += y * t.step(-3);
  if (t.rank == 4) offset += x * t.step(0);
  return static_cast<float*>(t.data)[offset];
}

// The product by its definition; small whole numbers, so that sums are exact in any order.
void expect_product(const Tensor& a, const Tensor& b, const Tensor& c, const Form& o, std::vector<float>& memory_of_c) {
  const std::vector<float> before = memory_of_c;
  const MatmulCall call = call_of(a, b, c, o, ProductMath::exact);
  carry_out(call);
  std::vector<float> got = memory_of_c;
  memory_of_c = before;
  const std::int64_t k = o.transpose_a ? a.dim(-2) : a.dim(-1);
  for (std::int64_t x = 0; x < (c.rank == 4 ? c.dim(0) : 1); ++x)
    for (std::int64_t y = 0; y < (c.rank >= 3 ? c.dim(-3) : 1); ++y)
      for (std::int64_t i = 0; i < c.dim(-2); ++i)
        for (std::int64_t j = 0; j < c.dim(-1); ++j) {
          float sum = 0.0F;
          for (std::int64_t l = 0; l < k; ++l)
            sum += (o.transpose_a ? element(a, x, y, l, i) : element(a, x, y, i, l)) *
                   (o.transpose_b ? element(b, x, y, j, l) : element(b, x, y, l, j));
          float& target = element(c, x, y, i, j);
          target = o.alpha * sum + (o.accumulate ? target : 0.0F) +
                   (o.bias ? static_cast<const float*>(o.bias.data)[j] : 0.0F);
        }
  EXPECT_EQ(got, memory_of_c) << describe(call.key) << ", " << call.outer << " times";
}

std::vector<float> numbers(std::int64_t count, int salt) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(static_cast<int>((i * 7 + static_cast<std::size_t>(salt) * 5) % 11) - 5);
  return values;
}

Tensor view(std::vector<float>& memory, std::initializer_list<std::int64_t> dims) {
  return Tensor(memory.data(), DType::f32, dims);
}

TEST(MatmulKey, EveryFormOfDenseMatrices) {
  for (const auto& [m, k, n] : std::initializer_list<std::array<std::int64_t, 3>>{
           {1, 1, 1}, {1, 7, 5}, {17, 1, 3}, {9, 3, 1}, {1, 5, 1}, {1, 1, 4}, {4, 1, 1}, {5, 6, 7}})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        for (const bool accumulate : {false, true}) {
          auto x = numbers(2 * 3 * m * k, 1), y = numbers(2 * 3 * k * n, 2), z = numbers(2 * 3 * m * n, 3);
          const Form o{ta, tb, 0.5F, accumulate};
          const auto rows = [](bool t, std::int64_t r, std::int64_t c) { return t ? c : r; };
          expect_product(view(x, {rows(ta, m, k), rows(ta, k, m)}), view(y, {rows(tb, k, n), rows(tb, n, k)}),
                         view(z, {m, n}), o, z);
          expect_product(view(x, {6, rows(ta, m, k), rows(ta, k, m)}), view(y, {6, rows(tb, k, n), rows(tb, n, k)}),
                         view(z, {6, m, n}), o, z);
          const Tensor c4 = view(z, {2, 3, m, n});
          const Tensor a4 = view(x, {2, 3, rows(ta, m, k), rows(ta, k, m)});
          const Tensor b4 = view(y, {2, 3, rows(tb, k, n), rows(tb, n, k)});
          expect_product(a4, b4, c4, o, z);
          EXPECT_EQ(call_of(a4, b4, c4, o, ProductMath::exact).outer, 1) << "dense batches are one batch";
        }
}

TEST(MatmulKey, HeadsOfPackedBuffers) {
  for (const auto& [batch, positions, heads, size] : std::initializer_list<std::array<std::int64_t, 4>>{
           {2, 4, 3, 5}, {3, 4, 2, 5}, {1, 3, 4, 2}, {2, 1, 3, 4}, {2, 3, 3, 1}, {2, 3, 1, 4}}) {
    auto packed = numbers(batch * positions * 3 * heads * size, 4);
    auto scores = numbers(batch * heads * positions * positions, 5);
    auto out = numbers(batch * positions * 2 * heads * size, 6);
    const Tensor all = view(packed, {batch, positions, 3 * heads, size});
    const Tensor q = all.slice(2, 0, heads).transposed(1, 2), k = all.slice(2, heads, heads).transposed(1, 2);
    const Tensor p = view(scores, {batch, heads, positions, positions});
    expect_product(q, k, p, {false, true, 0.25F, false}, scores);
    const Tensor target = view(out, {batch, positions, 2 * heads, size}).slice(2, heads, heads).transposed(1, 2);
    for (const bool transposed : {false, true}) expect_product(p, k, target, {transposed, false, 1.0F, true}, out);
  }
}

TEST(MatmulKey, LoopsOverTheShorterOfTwoBatchDimensions) {
  auto memory = numbers(2 * 4 * 15 * 6, 1), scores = numbers(2 * 5 * 4 * 4, 2);
  const Tensor q = view(memory, {2, 4, 15, 6}).slice(2, 5, 5).transposed(1, 2);
  const MatmulCall call = call_of(q, q, view(scores, {2, 5, 4, 4}), {false, true, 1.0F, false}, ProductMath::exact);
  EXPECT_EQ(call.outer, 2);
  EXPECT_EQ(call.key.batch, 5);
}

TEST(MatmulKey, ResultsThatLieByColumns) {
  auto x = numbers(5 * 9, 1), y = numbers(8 * 5, 2), z = numbers(7 * 6, 3);
  const Tensor a = view(x, {5, 9}).slice(1, 2, 6).transposed(0, 1);  // [6, 5]
  const Tensor b = view(y, {8, 5}).slice(0, 1, 7).transposed(0, 1);  // [5, 7]
  expect_product(a, b, view(z, {7, 6}).transposed(0, 1), {false, false, 2.0F, true}, z);
  expect_product(a, b, view(z, {6, 7}), {false, false, 2.0F, true}, z);
  // One row whose elements are apart: a column of another matrix.
  auto wide = numbers(7 * 3, 4);
  expect_product(a.slice(0, 2, 1), b, view(wide, {7, 3}).slice(1, 1, 1).transposed(0, 1), {}, wide);
}

TEST(MatmulKey, ABiasRunsAlongTheColumns) {
  alignas(256) static float bias[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  auto x = numbers(2 * 3 * 5, 1), y = numbers(2 * 5 * 8, 2), z = numbers(2 * 3 * 8, 3);
  Form o;
  o.bias = Tensor(bias, DType::f32, {8});
  expect_product(view(x, {3, 5}), view(y, {5, 8}), view(z, {3, 8}), o, z);
  expect_product(view(x, {2, 3, 5}), view(y, {2, 5, 8}), view(z, {2, 3, 8}), o, z);
  o.transpose_b = true;
  expect_product(view(x, {3, 5}), view(y, {8, 5}), view(z, {3, 8}), o, z);
}

TEST(MatmulKey, RefusesABiasThatIsNotServed) {
  alignas(256) static float memory[64] = {};
  const auto text = [&](const Tensor& a, const Tensor& b, const Tensor& c, const float* bias) -> std::string {
    Form o;
    o.bias = Tensor(const_cast<float*>(bias), DType::f32, {c.dim(1)});
    try {
      call_of(a, b, c, o, ProductMath::exact);
    } catch (const Error& e) {
      return std::to_string(e.status() == ASSAY_UNSUPPORTED) + e.what();
    }
    return "";
  };
  const Tensor square(memory, DType::f32, {4, 4});
  EXPECT_EQ(text(square, square, square, memory), "");
  EXPECT_NE(text(square, square, square, memory + 1).find("1matmul"), std::string::npos);
  EXPECT_NE(text(square, square, square, memory + 1).find("multiple of 16"), std::string::npos);
  EXPECT_NE(text(square, square, square.transposed(0, 1), memory).find("lies by columns"), std::string::npos);
  const Tensor nothing(memory, DType::f32, {4, 0}), none(memory, DType::f32, {0, 4});
  EXPECT_NE(text(nothing, none, square, memory).find("inner dimension is 0"), std::string::npos);
}

TEST(MatmulKey, RefusesWhatCannotBe) {
  const auto refusal = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    try {
      call_of(a, b, c, {}, ProductMath::exact);
    } catch (const Error& e) {
      return e.status();
    }
    return ASSAY_OK;
  };
  float x[64] = {};
  const Tensor a(x, DType::f32, {4, 5}), b(x, DType::f32, {5, 2}), c(x, DType::f32, {4, 2});
  EXPECT_EQ(refusal(a, b, c), ASSAY_OK);
  EXPECT_EQ(refusal(b, a, c), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(refusal(a, Tensor(x, DType::f32, {1, 5, 2}), c), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(refusal(a, Tensor(x, DType::bf16, {5, 2}), c), ASSAY_UNSUPPORTED);
  EXPECT_EQ(refusal(a, b, Tensor(x, DType::bf16, {4, 2})), ASSAY_UNSUPPORTED);
  EXPECT_EQ(refusal(Tensor(x, DType::i32, {4, 5}), Tensor(x, DType::i32, {5, 2}), c), ASSAY_UNSUPPORTED);
  Tensor apart = a, overlapping = a;
  apart.stride = {10, 2};
  overlapping.stride = {3, 1};
  EXPECT_EQ(refusal(apart, b, c), ASSAY_UNSUPPORTED);
  EXPECT_EQ(refusal(overlapping, b, c), ASSAY_UNSUPPORTED);
  const Tensor batch_a(x, DType::f32, {2, 4, 5}), batch_b(x, DType::f32, {3, 5, 2}), batch_c(x, DType::f32, {2, 4, 2});
  EXPECT_EQ(refusal(batch_a, batch_b, batch_c), ASSAY_INVALID_ARGUMENT);
}

TEST(MatmulKey, ServesEightBitsByMultiplesOf16) {
  alignas(256) static float x[8192];
  const auto call = [&](std::int64_t m, std::int64_t k, std::int64_t n, bool fast) {
    const compute::op::Matmul op{.a = Tensor(x, DType::f8_e4m3, {m, k}),
                                 .b = Tensor(x, DType::f8_e4m3, {n, k}),
                                 .c = Tensor(x, DType::bf16, {m, n}),
                                 .transpose_b = true,
                                 .a_scale = Tensor(x, DType::f32, {m}),
                                 .b_scale = Tensor(x + 64, DType::f32, {n}),
                                 .fast_accumulation = fast};
    compute::check(op);
    return matmul_call(op, ProductMath::tf32);
  };
  const MatmulCall served = call(5, 32, 48, true);
  EXPECT_EQ(served.a_scale, x);
  EXPECT_EQ(served.b_scale, x + 64);
  EXPECT_EQ(describe(served.key),
            "matmul fp8_e4m3 fp8_e4m3->bf16 nt 5x32x48 (m x k x n) batch 1 ld 32 32 48 align 256 256 256 scaled fast");
  EXPECT_FALSE(call(5, 32, 48, false).key == served.key);
  for (const auto& [k, n] : {std::pair<std::int64_t, std::int64_t>{40, 48}, {32, 40}}) try {
      call(16, k, n, true);
      FAIL() << k << ", " << n;
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), ASSAY_UNSUPPORTED);
      EXPECT_NE(std::string(e.what()).find("multiples of 16: use bf16"), std::string::npos) << e.what();
    }
}

TEST(MatmulKey, TellsOneScaleFromThoseOfRows) {
  alignas(256) static float x[8192];
  const compute::op::Matmul op{.a = Tensor(x, DType::f8_e4m3, {16, 32}),
                               .b = Tensor(x, DType::f8_e4m3, {48, 32}),
                               .c = Tensor(x, DType::bf16, {16, 48}),
                               .transpose_b = true,
                               .accumulate = true,
                               .a_scale = Tensor(x, DType::f32, {1})};
  compute::check(op);
  const MatmulCall call = matmul_call(op, ProductMath::exact);
  EXPECT_EQ(call.a_scale, x);
  EXPECT_EQ(call.b_scale, nullptr);
  EXPECT_EQ(describe(call.key),
            "matmul fp8_e4m3 fp8_e4m3->bf16 nt 16x32x48 (m x k x n) batch 1 ld 32 32 48 align 256 256 256 accumulate "
            "scaled as one");
}

TEST(MatmulKey, KnowsTheMatrixThatIsAdded) {
  alignas(256) static float x[1024];
  compute::op::Matmul op{
      .a = Tensor(x, DType::f32, {4, 5}), .b = Tensor(x, DType::f32, {5, 2}), .c = Tensor(x, DType::f32, {4, 2})};
  const MatmulKey plain = matmul_call(op, ProductMath::exact).key;
  op.residual = Tensor(x + 4, DType::f32, {4, 2});
  compute::check(op);
  const MatmulCall call = matmul_call(op, ProductMath::exact);
  EXPECT_EQ(call.residual, x + 4);
  EXPECT_FALSE(call.key == plain);
  EXPECT_EQ(describe(call.key),
            "matmul fp32 fp32->fp32 nn 4x5x2 (m x k x n) batch 1 ld 5 2 2 align 256 256 256 residual align 16");
  op.c = op.c.transposed(0, 1);
  op.c.shape = {2, 4};
  op.a = Tensor(x, DType::f32, {2, 5}), op.b = Tensor(x, DType::f32, {5, 4});
  op.residual = op.c;
  EXPECT_THROW(matmul_call(op, ProductMath::exact), Error) << "a result by columns";
}

TEST(MatmulKey, PassesOnAnEmptyInnerDimension) {
  float x[8] = {};
  const MatmulCall call = call_of(Tensor(x, DType::f32, {4, 0}), Tensor(x, DType::f32, {0, 2}),
                                  Tensor(x, DType::f32, {4, 2}), {}, ProductMath::exact);
  EXPECT_EQ(call.key.k, 0);
  EXPECT_EQ(span_of_a(call.key), 0);
  EXPECT_EQ(span_of_c(call.key), 8);
}

TEST(MatmulKey, KnowsTheAlignmentOfAddresses) {
  alignas(256) static float x[1024];
  const auto alignments = [](const float* address, std::int64_t outer_step) {
    Tensor a(const_cast<float*>(address), DType::f32, {2, 2, 3, 3});
    a.stride = {outer_step, 12, 3, 1};
    const Tensor b(x, DType::f32, {2, 2, 3, 3}), c(x, DType::f32, {2, 2, 3, 3});
    return call_of(a, b, c, {}, ProductMath::exact).key.a_alignment;
  };
  EXPECT_EQ(alignments(x, 64), 256);
  EXPECT_EQ(alignments(x + 32, 64), 128);
  EXPECT_EQ(alignments(x + 4, 64), 16);
  EXPECT_EQ(alignments(x + 1, 64), 4);
  EXPECT_EQ(alignments(x, 66), 8) << "the second outer product begins there";
}

TEST(MatmulKey, SpansEndAtTheLastElement) {
  float x[1] = {};
  Tensor a(x, DType::f32, {3, 4, 5});
  a.stride = {100, 9, 1};
  const MatmulKey key = call_of(a, Tensor(x, DType::f32, {3, 7, 5}), Tensor(x, DType::f32, {3, 4, 7}),
                                {false, true, 1.0F, false}, ProductMath::exact)
                            .key;
  EXPECT_EQ(span_of_a(key), 2 * 100 + 3 * 9 + 5);
  EXPECT_EQ(span_of_b(key), 3 * 7 * 5);
  EXPECT_EQ(span_of_c(key), 3 * 4 * 7);
}

TEST(MatmulKey, SaysWhatItIs) {
  alignas(256) static float x[64];
  const Tensor a(x, DType::bf16, {2048, 768}), b(x, DType::bf16, {2304, 768}), c(x, DType::f32, {2048, 2304});
  const Form o{false, true, 0.5F, true};
  EXPECT_EQ(describe(call_of(a, b, c, o, ProductMath::tf32).key),
            "matmul bf16 bf16->fp32 nt 2048x768x2304 (m x k x n) batch 1 ld 768 768 2304 align 256 256 256 accumulate");
  MatmulKey beside_others = call_of(a, b, c, o, ProductMath::exact).key;
  beside_others.multiprocessors = 116;
  EXPECT_TRUE(describe(beside_others).ends_with("accumulate on 116 multiprocessors")) << describe(beside_others);
  Form with_bias;
  with_bias.bias = Tensor(x, DType::f16, {768});
  const Tensor h(x, DType::f16, {8, 768}), w(x, DType::f16, {768, 768});
  EXPECT_EQ(describe(call_of(h, w, h, with_bias, ProductMath::exact).key),
            "matmul fp16 fp16->fp16 nn 8x768x768 (m x k x n) batch 1 ld 768 768 768 align 256 256 256 bias fp16 align "
            "256");
  const Tensor p(x, DType::f32, {3, 4, 4});
  EXPECT_EQ(describe(call_of(p, p, p, {}, ProductMath::tf32).key),
            "matmul fp32 fp32->fp32 nn 4x4x4 (m x k x n) batch 3 ld 4 4 4 step 16 16 16 align 256 256 256 tf32");
}

TEST(MatmulKey, DependsOnAllButAlpha) {
  alignas(256) static float x[64];
  const Tensor a(x, DType::f32, {4, 4});
  const auto key = [&](const Form& o, ProductMath math) { return call_of(a, a, a, o, math).key; };
  const MatmulKey plain = key({}, ProductMath::exact);
  EXPECT_EQ(plain, key({false, false, 0.5F, false}, ProductMath::exact));
  std::unordered_set<MatmulKey, HashMatmulKey> keys = {
      plain,
      key({true, false, 1.0F, false}, ProductMath::exact),
      key({false, true, 1.0F, false}, ProductMath::exact),
      key({false, false, 1.0F, true}, ProductMath::exact),
      key({}, ProductMath::tf32),
      key({false, false, 1.0F, false, Tensor(x, DType::f32, {4})}, ProductMath::exact)};
  EXPECT_EQ(keys.size(), 6u);
  EXPECT_TRUE(keys.contains(plain));
}

}  // namespace
}  // namespace assay::cuda
