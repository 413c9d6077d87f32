// Matrix products: all transposes, types, batches by strides, accumulation, and the promise of optimised kernels.
#include <assay/algorithms.h>
#include <array>
#include <assay/compute/forwarding_backend.hpp>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "samples.hpp"

namespace assay::conformance {
namespace {

using compute::ProductMath;

struct Form {
  bool transpose_a = false, transpose_b = false;
  float alpha = 1.0F;
  bool accumulate = false;
};
op::Matmul in_form(const Form& o, const Tensor& a, const Tensor& b, const Tensor& c) {
  return {.a = a,
          .b = b,
          .c = c,
          .transpose_a = o.transpose_a,
          .transpose_b = o.transpose_b,
          .alpha = o.alpha,
          .accumulate = o.accumulate};
}

struct Types {
  DType input, output;
};
const std::vector<Types>& type_pairs() {
  static const std::vector<Types> pairs = [] {
    std::vector<Types> p = {{DType::f32, DType::f32}, {DType::bf16, DType::f32}, {DType::bf16, DType::bf16}};
    if (is_cuda()) p.insert(p.end(), {{DType::f16, DType::f32}, {DType::f16, DType::f16}});
    return p;
  }();
  return pairs;
}

// c = alpha op(a) op(b) + start, over `batch` dense matrices.
Values product(const Values& a, const Values& b, const Values& start, std::int64_t batch, std::int64_t m,
               std::int64_t k, std::int64_t n, const Form& o) {
  Values c = o.accumulate ? start : Values(static_cast<std::size_t>(batch * m * n), 0.0);
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t s = 0; s < batch; ++s)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t l = 0; l < k; ++l) {
        const double x = o.alpha * a[at(s * m * k + (o.transpose_a ? l * m + i : i * k + l))];
        for (std::int64_t j = 0; j < n; ++j)
          c[at((s * m + i) * n + j)] += x * b[at(s * k * n + (o.transpose_b ? j * k + l : l * n + j))];
      }
  return c;
}

// Rounding of the result, and of sums of k products in fp32. cuBLASLt may round the product to 16 bits before it adds
// what was there: one rounding more.
double tolerance(DType output, std::int64_t k, bool accumulate = false) {
  const double once = tolerance_of(output, 5e-7 * std::sqrt(static_cast<double>(k)) + 1e-6);
  return accumulate && is_cuda() && output != DType::f32 ? 2 * once : once;
}

Shape shape_of(const Shape& batch, bool transpose, std::int64_t rows, std::int64_t columns) {
  Shape s = batch;
  s.push_back(transpose ? columns : rows);
  s.push_back(transpose ? rows : columns);
  return s;
}

void check_product(const Types& t, const Shape& batch, std::int64_t m, std::int64_t k, std::int64_t n, const Form& o) {
  SCOPED_TRACE(std::to_string(batch.size()) + " batch dims, " + std::to_string(m) + "x" + std::to_string(k) + "x" +
               std::to_string(n) + (o.transpose_a ? " ta" : "") + (o.transpose_b ? " tb" : "") +
               (o.accumulate ? " accumulate" : ""));
  const std::int64_t count = elements(batch);
  const Values x = random_values(t.input, count * m * k, 1), y = random_values(t.input, count * k * n, 2);
  const Values start = random_values(t.output, count * m * n, 3);
  const DeviceTensor a(t.input, shape_of(batch, o.transpose_a, m, k), x);
  const DeviceTensor b(t.input, shape_of(batch, o.transpose_b, k, n), y);
  const DeviceTensor c(t.output, shape_of(batch, false, m, n), start);
  run([&] { backend().run(in_form(o, a, b, c)); });
  const std::string name = t.input == t.output ? "matmul" : "matmul to fp32";
  check(name, t.input, c.read(), product(x, y, start, count, m, k, n, o), tolerance(t.output, k, o.accumulate));
}

TEST(Matmul, EveryFormAtOddAndTrainingShapes) {
  for (const Types& t : type_pairs())
    for (const auto& [m, k, n] : std::initializer_list<std::array<std::int64_t, 3>>{
             {1, 1, 1}, {1, 7, 5}, {17, 1, 3}, {9, 33, 1}, {17, 13, 29}, {64, 64, 64}, {130, 257, 66}, {128, 768, 96}})
      for (const bool transpose_a : {false, true})
        for (const bool transpose_b : {false, true})
          for (const bool accumulate : {false, true})
            check_product(t, {}, m, k, n, {transpose_a, transpose_b, 1.0F, accumulate});
}

TEST(Matmul, Scales) {
  for (const Types& t : type_pairs())
    for (const bool accumulate : {false, true}) check_product(t, {}, 33, 65, 17, {false, true, 0.125F, accumulate});
}

TEST(Matmul, Batches) {
  for (const Types& t : type_pairs())
    for (const Shape& batch : {Shape{3}, Shape{1}, Shape{2, 3}, Shape{1, 5}, Shape{4, 1}})
      for (const bool transpose_a : {false, true})
        for (const bool transpose_b : {false, true})
          for (const bool accumulate : {false, true})
            check_product(t, batch, 19, 24, 35, {transpose_a, transpose_b, 1.0F, accumulate});
}

// The products of attention, on heads that are views of packed buffers: what is not in the view must not change.
TEST(Matmul, HeadsByStrides) {
  for (const Types& t : type_pairs())
    for (const auto& [batch, positions, heads, size] :
         std::initializer_list<std::array<std::int64_t, 4>>{{2, 9, 3, 10}, {1, 33, 4, 16}, {2, 64, 2, 64}}) {
      const Shape packed_shape = {batch, positions, 3 * heads, size};
      const DeviceTensor packed(t.input, packed_shape, random_values(t.input, elements(packed_shape), 4));
      const auto view = [&, heads = heads](int which) {
        return packed->slice(2, which * heads, heads).transposed(1, 2);
      };
      const Tensor q = view(0), k = view(1), v = view(2);
      const std::int64_t count = batch * heads;
      const Form scores_options{false, true, 0.25F, false};

      const DeviceTensor scores(t.output, {batch, heads, positions, positions});
      run([&] { backend().run(in_form(scores_options, q, k, scores)); });
      check("matmul by strides", t.input, scores.read(),
            product(packed.read(q), packed.read(k), {}, count, positions, size, positions, scores_options),
            tolerance(t.output, size));

      const Shape square = {batch, heads, positions, positions};
      const DeviceTensor p(t.input, square, random_values(t.input, elements(square), 5));
      const Shape wide = {batch, positions, 2 * heads, size};
      const DeviceTensor out(t.output, wide, Values(static_cast<std::size_t>(elements(wide)), 7.0));
      const Tensor target = out->slice(2, heads, heads).transposed(1, 2);
      for (const bool transpose_p : {false, true}) {
        const Form o{transpose_p, false, 1.0F, false};
        run([&] { backend().run(in_form(o, p, v, target)); });
        check("matmul by strides", t.input, out.read(target),
              product(p.read(), packed.read(v), {}, count, positions, positions, size, o),
              tolerance(t.output, positions));
      }
      const Tensor rest = out->slice(2, 0, heads);
      EXPECT_EQ(out.read(rest), Values(static_cast<std::size_t>(rest.elements()), 7.0)) << "outside the view";
    }
}

TEST(Matmul, SlicesAndTransposedViewsOfMatrices) {
  for (const Types& t : type_pairs()) {
    const std::int64_t m = 21, k = 40, n = 26;
    const DeviceTensor wide_a(t.input, {m, k + 9}, random_values(t.input, m * (k + 9), 6));
    const DeviceTensor wide_b(t.input, {n + 4, k}, random_values(t.input, (n + 4) * k, 7));
    const DeviceTensor wide_c(t.output, {m, n + 11}, Values(static_cast<std::size_t>(m * (n + 11)), 3.0));
    const Tensor a = wide_a->slice(1, 5, k), b = wide_b->slice(0, 2, n).transposed(0, 1), c = wide_c->slice(1, 6, n);
    const Values reference = product(wide_a.read(a), wide_b.read(b), {}, 1, m, k, n, {});
    run([&] { backend().run(op::Matmul{.a = a, .b = b, .c = c}); });
    check("matmul by strides", t.input, wide_c.read(c), reference, tolerance(t.output, k));
    EXPECT_EQ(wide_c.read(wide_c->slice(1, 0, 6)), Values(static_cast<std::size_t>(m * 6), 3.0)) << "left of the slice";

    const DeviceTensor turned(t.output, {n, m});
    run([&] { backend().run(op::Matmul{.a = a, .b = b, .c = turned->transposed(0, 1)}); });
    check("matmul by strides", t.input, turned.read(turned->transposed(0, 1)), reference, tolerance(t.output, k));
  }
}

TEST(Matmul, RefusesWhatCannotBe) {
  const DeviceTensor a(DType::f32, {4, 5}), b(DType::f32, {6, 7}), c(DType::f32, {4, 7}), h(DType::bf16, {5, 7});
  std::string text;
  EXPECT_EQ(status_of([&] { backend().run(op::Matmul{.a = a, .b = b, .c = c}); }, &text), ASSAY_INVALID_ARGUMENT);
  EXPECT_NE(text.find("[4, 5]"), std::string::npos) << text;
  EXPECT_EQ(status_of([&] { backend().run(op::Matmul{.a = a, .b = h, .c = c}); }), ASSAY_UNSUPPORTED);
  const DeviceTensor d(DType::f32, {1, 5, 7});
  EXPECT_EQ(status_of([&] { backend().run(op::Matmul{.a = a, .b = d, .c = c}); }), ASSAY_INVALID_ARGUMENT);
  const DeviceTensor sparse(DType::f32, {4, 5, 2}), e(DType::f32, {5, 7});
  Tensor gaps = sparse->slice(2, 0, 1);  // [4, 5] with steps 10 and 2
  gaps.rank = 2;
  EXPECT_EQ(status_of([&] { backend().run(op::Matmul{.a = gaps, .b = e, .c = c}); }), ASSAY_UNSUPPORTED);
}

// Large enough for the choice between oneDNN's kernels to matter, with extents that no block divides.
TEST(Matmul, LargeFormsInBothPrecisions) {
  for (const Types& t : type_pairs()) {
    check_product(t, {}, 257, 259, 301, {false, false, 1.0F, false});
    check_product(t, {}, 257, 259, 301, {true, false, 1.0F, true});
    check_product(t, {}, 131, 1601, 97, {true, false, 1.0F, true});
    check_product(t, {}, 1601, 131, 97, {false, true, 1.0F, false});
    check_product(t, {}, 257, 259, 301, {false, true, 0.5F, true});
  }
}

TEST(Matmul, AddsABias) {
  for (const Types& t : type_pairs())
    for (const auto& [m, k, n] : std::initializer_list<std::array<std::int64_t, 3>>{
             {1, 1, 1}, {17, 13, 29}, {7, 129, 1}, {1, 64, 129}, {130, 257, 66}, {1601, 131, 97}, {4, 1024, 4100}})
      for (const bool transpose_b : {false, true}) {
        const Values x = random_values(t.input, m * k, 1), y = random_values(t.input, k * n, 2);
        const Values bias = random_values(t.output, n, 3, 1.0, 2.0);
        const DeviceTensor a(t.input, {m, k}, x), b(t.input, shape_of({}, transpose_b, k, n), y);
        const DeviceTensor c(t.output, {m, n}), bias_there(t.output, {n}, bias);
        const Form o{.transpose_b = transpose_b};
        run([&] { backend().run(op::Matmul{.a = a, .b = b, .c = c, .transpose_b = transpose_b, .bias = bias_there}); });
        Values expected = product(x, y, {}, 1, m, k, n, o);
        for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += bias[i % bias.size()];
        // cuBLASLt may round the product to 16 bits before it adds the bias.
        const double roundings = is_cuda() && t.output != DType::f32 ? 1.5 : 1.0;
        check("matmul with a bias", t.input, c.read(), expected, roundings * tolerance(t.output, k));
      }
  // One of another place and another size: what was prepared must not remember the first.
  const DeviceTensor a(DType::f32, {3, 2}, Values(6, 1.0)), b(DType::f32, {2, 2}, Values(4, 1.0)),
      c(DType::f32, {3, 2});
  for (const double value : {1.0, 10.0}) {
    const DeviceTensor bias(DType::f32, {2}, {value, -value});
    run([&] { backend().run(op::Matmul{.a = a, .b = b, .c = c, .bias = bias}); });
    EXPECT_EQ(c.read(), (Values{2 + value, 2 - value, 2 + value, 2 - value, 2 + value, 2 - value}));
  }
  const DeviceTensor batch(DType::f32, {2, 3, 2}, Values(12, 1.0)), weights(DType::f32, {2, 2, 2}, Values(8, 1.0));
  const DeviceTensor result(DType::f32, {2, 3, 2}), bias(DType::f32, {2}, {3.0, 4.0});
  run([&] { backend().run(op::Matmul{.a = batch, .b = weights, .c = result, .bias = bias}); });
  EXPECT_EQ(result.read(), (Values{5, 6, 5, 6, 5, 6, 5, 6, 5, 6, 5, 6}));
}

TEST(Matmul, RefusesABiasThatDoesNotFit) {
  const DeviceTensor a(DType::f32, {4, 5}), b(DType::f32, {5, 7}), c(DType::f32, {4, 7}), bias(DType::f32, {7});
  const DeviceTensor shorter(DType::f32, {6}), row(DType::f32, {1, 7}), half(DType::bf16, {7});
  const auto call = [&](const Tensor& of, const Form& o = {}) {
    op::Matmul product = in_form(o, a, b, c);
    product.bias = of;
    return status_of([&] { backend().run(product); });
  };
  EXPECT_EQ(call(shorter), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(call(row), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(call(half), ASSAY_UNSUPPORTED);
  EXPECT_EQ(call(bias, {.accumulate = true}), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(call(bias, {.alpha = 0.5F}), ASSAY_INVALID_ARGUMENT);
}

TEST(Matmul, AddsAResidual) {
  for (const Types& t : type_pairs())
    for (const auto& [m, k, n] :
         std::initializer_list<std::array<std::int64_t, 3>>{{1, 1, 1}, {17, 13, 29}, {130, 257, 66}, {256, 96, 48}})
      for (const bool transpose_b : {false, true}) {
        const Values x = random_values(t.input, m * k, 1), y = random_values(t.input, k * n, 2);
        const Values residual = random_values(t.output, m * n, 3, 0.0, 4.0);
        const DeviceTensor a(t.input, {m, k}, x), b(t.input, shape_of({}, transpose_b, k, n), y);
        const DeviceTensor c(t.output, {m, n}, Values(static_cast<std::size_t>(m * n), 1e30)),
            added(t.output, {m, n}, residual);
        run([&] { backend().run(op::Matmul{.a = a, .b = b, .c = c, .transpose_b = transpose_b, .residual = added}); });
        const Form o{.transpose_b = transpose_b, .accumulate = true};
        check("matmul with a residual", t.input, c.read(), product(x, y, residual, 1, m, k, n, o),
              tolerance(t.output, k, true));
        EXPECT_EQ(added.read(), residual);
      }
  const DeviceTensor a(DType::f32, {4, 5}), b(DType::f32, {5, 7}), c(DType::f32, {4, 7}), residual(DType::f32, {4, 7}),
      wider(DType::f32, {4, 9}), other(DType::f32, {7, 4}), bias(DType::f32, {7});
  const auto call = [&](const Tensor& added, auto change) {
    op::Matmul product{.a = a, .b = b, .c = c};
    product.residual = added;
    change(product);
    return status_of([&] { backend().run(product); });
  };
  const auto as_it_is = [](op::Matmul&) {};
  EXPECT_EQ(call(other, as_it_is), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(call(wider->slice(1, 0, 7), as_it_is), ASSAY_INVALID_ARGUMENT) << "of other steps";
  EXPECT_EQ(call(residual, [](op::Matmul& p) { p.accumulate = true; }), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(call({}, [](op::Matmul& p) { p.residual_scale = 2; }), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(call(residual, [&](op::Matmul& p) { p.bias = bias; }), ASSAY_INVALID_ARGUMENT);
}

// As the steps of Newton and Schulz have it: a batch, a factor of the product and another one of what is added.
TEST(Matmul, AddsAScaledResidualInABatch) {
  const std::int64_t batch = 3, m = 24, k = 40, n = 56;
  const float alpha = 2.0315F, scale = -4.775F;
  for (const Types& t : type_pairs()) {
    const Values x = random_values(t.input, batch * m * k, 1), y = random_values(t.input, batch * k * n, 2);
    const Values residual = random_values(t.output, batch * m * n, 3, 0.0, 4.0);
    const DeviceTensor a(t.input, {batch, k, m}, x), b(t.input, {batch, k, n}, y), c(t.output, {batch, m, n}),
        added(t.output, {batch, m, n}, residual);
    run([&] {
      backend().run(op::Matmul{
          .a = a, .b = b, .c = c, .transpose_a = true, .alpha = alpha, .residual = added, .residual_scale = scale});
    });
    Values scaled = residual;
    for (double& value : scaled) value *= static_cast<double>(scale);
    const Form o{.transpose_a = true, .alpha = alpha, .accumulate = true};
    check("matmul with a residual", t.input, c.read(), product(x, y, scaled, batch, m, k, n, o),
          tolerance(t.output, k, true));
  }
}

// Inputs are rounded, or cut, to ten bits of mantissa; sums stay in fp32.
TEST(Matmul, Tf32WhereThereIsSuchAMode) {
  if (!is_cuda()) {
    EXPECT_EQ(status_of([&] { backend().set_product_math(ProductMath::tf32); }), ASSAY_UNSUPPORTED);
    EXPECT_EQ(status_of([&] { backend().set_product_math(ProductMath::exact); }), ASSAY_OK);
    return;
  }
  backend().set_product_math(ProductMath::tf32);
  for (const auto& [m, k, n] :
       std::initializer_list<std::array<std::int64_t, 3>>{{64, 64, 64}, {130, 257, 66}, {128, 768, 96}})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const bool accumulate : {false, true}) {
          const Form o{transpose_a, transpose_b, 1.0F, accumulate};
          const Values x = random_values(DType::f32, m * k, 1), y = random_values(DType::f32, k * n, 2);
          const Values start = random_values(DType::f32, m * n, 3);
          const DeviceTensor a(DType::f32, shape_of({}, transpose_a, m, k), x);
          const DeviceTensor b(DType::f32, shape_of({}, transpose_b, k, n), y);
          const DeviceTensor c(DType::f32, {m, n}, start);
          run([&] { backend().run(in_form(o, a, b, c)); });
          check("matmul tf32", DType::f32, c.read(), product(x, y, start, 1, m, k, n, o), 2e-3);
        }
  backend().set_product_math(ProductMath::exact);
}

// What only the GPU's backend promises.
TEST(Matmul, ShapesThatTheGpuRefusesOrClears) {
  if (!is_cuda()) GTEST_SKIP() << "of the cuda backend";
  const DeviceTensor a(DType::f32, {23, 29}), b(DType::f32, {29, 31}), c(DType::f32, {23, 31});
  std::string text;
  EXPECT_EQ(status_of([&] { backend().run(op::Matmul{.a = a, .b = b, .c = c}); }, &text), ASSAY_INVALID_ARGUMENT)
      << "never prepared";
  EXPECT_NE(text.find("23x29x31"), std::string::npos) << text;

  const Values start(12 * 5, 3.0);
  const DeviceTensor wide(DType::bf16, {12, 5}, start);
  const Tensor left = wide->slice(1, 0, 2);  // [12, 2], with gaps
  const Tensor none_a = contiguous(a->data, DType::bf16, {12, 0}), none_b = contiguous(b->data, DType::bf16, {0, 2});
  run([&] { backend().run(op::Matmul{.a = none_a, .b = none_b, .c = left, .accumulate = true}); });
  EXPECT_EQ(wide.read(), start);
  run([&] { backend().run(op::Matmul{.a = none_a, .b = none_b, .c = left}); });
  EXPECT_EQ(wide.read(left), Values(12 * 2, 0.0));
  EXPECT_EQ(wide.read(wide->slice(1, 2, 3)), Values(12 * 3, 3.0)) << "right of the slice";
}

// Of the backend's own there is none; oneDNN makes the map of a primitive's arguments, and its packing GEMM the buffers
// for its threads' panels, on each call. A handful, and no more than a handful: oneDNN 3.7 makes 22 for each thread.
TEST(Matmul, AllocatesNothingOfItsOwnInASecondExecution) {
  assay_device_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(Session::get().api().info(Session::get().device(), &info), ASSAY_OK);
  const bool is_onednn_3 = std::string_view(info.libraries).starts_with("oneDNN 3.");
  const auto handful = static_cast<std::uint64_t>(16 + (is_onednn_3 ? 24 : 8) * info.compute_units);
  for (const Types& t : type_pairs())
    for (const bool transpose_a : {false, true}) {
      const DeviceTensor a(t.input, {256, 256}), b(t.input, {256, 512}), c(t.output, {256, 512});
      EXPECT_LE(allocations_in_second([&] {
                  backend().run(op::Matmul{.a = a, .b = b, .c = c, .transpose_a = transpose_a, .accumulate = true});
                }),
                handful);
    }
}

// Hands every call on, as what stands before a backend does.
class Through final : public compute::ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
};

std::uint64_t algorithms_told() {
  const Session& session = Session::get();
  const auto* table = static_cast<const assay_algorithms*>(session.api().get_extension(ASSAY_EXT_ALGORITHMS));
  std::uint64_t count = 0;
  if (!table || table->count(session.device(), &count) != ASSAY_OK) ADD_FAILURE() << "the device tells of none";
  return count;
}

TEST(MatmulTuning, TheFirstChoiceIsToldToNobodyAndGivesWayToWhatIsMeasured) {
  const std::int64_t m = 88, k = 136, n = 104;  // of no other test
  const std::unique_ptr<compute::Backend> own(
      Session::get().factory().create(Session::get().device(), Session::get().stream()));
  Through through(*own);
  const Values x = random_values(DType::f32, m * k, 1), w = random_values(DType::f32, k * n, 2);
  const DeviceTensor a(DType::f32, {m, k}, x), b(DType::f32, {k, n}, w), c(DType::f32, {m, n});
  const Values reference = product(x, w, {}, 1, m, k, n, {});
  const std::uint64_t told_before = algorithms_told();
  using compute::Tuning;
  for (const auto& [tuning, reported] : {std::pair(Tuning::first_choice, 0),
                                         {Tuning::first_choice, 0},
                                         {Tuning::measured, 1},
                                         {Tuning::first_choice, 1},
                                         {Tuning::measured, 1}}) {
    through.set_tuning(tuning);
    through.set_mode(Mode::prepare);
    through.run(op::Matmul{.a = a, .b = b, .c = c});
    through.set_mode(Mode::execute);
    EXPECT_EQ(algorithms_told() - told_before, static_cast<std::uint64_t>(reported));
    EXPECT_EQ(through.primitives().size(), 1u);
    const Buffer workspace(through.workspace_bytes() + 1);
    through.set_workspace(workspace.data(), through.workspace_bytes());
    through.run(op::Matmul{.a = a, .b = b, .c = c});
    through.synchronize();
    check("matmul", DType::f32, c.read(), reference, tolerance(DType::f32, k));
  }
}

// One rank after the other: what the second one reads stands there, or it never will.
class OneAfterTheOther final : public compute::AlgorithmExchange {
 public:
  bool lead(const std::string&) override { return ++asked_ == 1; }
  void put(const std::string&, std::int64_t, const std::string& text) override { texts.push_back(text); }
  std::string get(const std::string&, std::int64_t index) override { return texts.at(static_cast<std::size_t>(index)); }
  std::vector<std::string> texts;

 private:
  int asked_ = 0;
};

// Without what was measured: "brg:avx512_core, 1.2 ms, best of 4", "cuDNN eng2_k24=7 12.3 us".
std::string algorithm_in(const std::string& implementation) {
  const std::string text = implementation.substr(0, implementation.find(", "));
  return text.starts_with("cuDNN ") ? text.substr(0, text.find(' ', 6)) : text;
}

TEST(MatmulTuning, AnotherBackendRunsWhatTheFirstHasChosen) {
  const std::int64_t n = 512;
  const auto make = [] {
    return std::unique_ptr<compute::Backend>(
        Session::get().factory().create(Session::get().device(), Session::get().stream()));
  };
  std::deque<DeviceTensor> memory;
  const auto tensor = [&](DType type, const Shape& shape) -> Tensor {
    return memory.emplace_back(type, shape).tensor();
  };
  std::vector<std::function<void(compute::Backend&)>> operations;
  for (const DType type : float_types())
    operations.push_back([a = tensor(type, {n, n}), c = tensor(DType::f32, {n, n})](compute::Backend& by) {
      by.run(op::Matmul{.a = a, .b = a, .c = c, .transpose_b = true});
    });
  if (is_cuda())
    operations.push_back([x = tensor(DType::bf16, {2, 256, 4, 64}), y = tensor(DType::bf16, {2, 256, 4, 64}),
                          lse = tensor(DType::f32, {2, 4, 256})](compute::Backend& by) {
      by.run(op::AttentionForward{.q = x, .k = x, .v = x, .out = y, .lse = lse, .shape = {.scale = 0.125F}});
    });
  OneAfterTheOther exchange;
  const auto prepared = [&](auto first, auto last) {
    std::map<std::string, std::string> implementations;
    const std::unique_ptr<compute::Backend> by = make();
    by->share_tuning(&exchange);
    by->set_mode(Mode::prepare);
    for (; first != last; ++first) (*first)(*by);
    by->set_mode(Mode::execute);
    by->share_tuning(nullptr);
    for (const auto& p : by->primitives()) implementations[p.operation] = p.implementation;
    return implementations;
  };
  const auto of_first = prepared(operations.begin(), operations.end());
  const std::size_t reported = exchange.texts.size();
  const auto of_second = prepared(operations.rbegin(), operations.rend());
  EXPECT_EQ(exchange.texts.size(), reported) << "one writes";
  EXPECT_EQ(of_first.size(), of_second.size());
  std::size_t told_by_another = 0;
  for (const auto& [operation, implementation] : of_second) {
    ASSERT_TRUE(of_first.count(operation)) << operation;
    EXPECT_EQ(algorithm_in(implementation), algorithm_in(of_first.at(operation))) << operation;
    if (implementation.find("another rank") != std::string::npos) ++told_by_another;
  }
  // Where nothing is timed, nothing is shared. Attention's text does not say where its engine is from.
  EXPECT_EQ(told_by_another > 0, reported > 0);
}

// Listed last on purpose: by now every form above has made its primitive.
TEST(MatmulPrimitives, NoneIsAReferenceImplementation) {
  for (const Types& t : type_pairs()) {
    const std::int64_t m = 64;
    for (const auto& [k, n] :
         {std::array<std::int64_t, 2>{768, 2304}, {768, 768}, {768, 6144}, {3072, 768}, {768, 10000}}) {
      const DeviceTensor x(t.input, {m, k}), w(t.input, {n, k}), y(t.input, {m, n}), dw(t.output, {n, k});
      const DeviceTensor yo(t.output, {m, n}), xo(t.output, {m, k});
      backend().set_mode(Mode::prepare);
      backend().run(op::Matmul{.a = x, .b = w, .c = yo, .transpose_b = true});
      backend().run(op::Matmul{.a = y, .b = w, .c = xo});
      backend().run(op::Matmul{.a = y, .b = x, .c = dw, .transpose_a = true, .accumulate = true});
      backend().set_mode(Mode::execute);
    }
  }
  const auto primitives = backend().primitives();
  EXPECT_GE(primitives.size(), 45u);
  for (const auto& p : primitives)
    EXPECT_NE(p.implementation.substr(0, 3), "ref") << p.operation << " runs " << p.implementation;
}

}  // namespace

// ---- samples
op::Matmul sample(Given& g, Kind<op::Matmul>) {
  return {.a = g.numbers({6, 5}), .b = g.numbers({5, 8}), .c = g.room({6, 8}), .bias = g.numbers({8})};
}

}  // namespace assay::conformance
