// Attention as products and a softmax, of the head dimensions that the tiled one may refuse, and the products of a
// layer around it: operands lie token by token, [B, T, H, D], as a layer's do, or head by head.
#include <cmath>

#include "attention_reference.hpp"

namespace assay::conformance {
namespace {

// fp32 sums of so many products, of two numbers of deviation 1, measured by the largest result.
constexpr double exact_products = 5e-5;

// One operand, seen as [B, H, T, D] wherever it lies.
class ByHeads {
 public:
  ByHeads(DType type, const AttentionSizes& s, bool by_token, const Values* values = nullptr)
      : tensor_(type,
                by_token ? Shape{s.batch, s.queries, s.heads, s.depth} : Shape{s.batch, s.heads, s.queries, s.depth}),
        view_(by_token ? tensor_->transposed(1, 2) : tensor_.tensor()) {
    if (!values) return;
    const DeviceTensor plain(type, {s.batch, s.queries, s.heads, s.depth}, *values);
    run([&] { backend().run(op::Copy{.to = view_, .from = plain->transposed(1, 2)}); });
  }
  operator const Tensor&() const { return view_; }
  Values read() const { return tensor_.read(view_.transposed(1, 2)); }  // [B, T, H, D]

 private:
  DeviceTensor tensor_;
  Tensor view_;
};

void test_by_products(DType t, const AttentionSizes& s, bool causal, bool by_token) {
  SCOPED_TRACE(::testing::Message() << s << ' ' << name_of(t) << (causal ? " causal" : "")
                                    << (by_token ? " by token" : ""));
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.depth)));
  const std::int64_t count = s.batch * s.queries * s.heads * s.depth;
  const Values q = random_values(t, count, 30), k = random_values(t, count, 31), v = random_values(t, count, 32);
  const Values dout = random_values(t, count, 33);
  const ByHeads q_there(t, s, by_token, &q), k_there(t, s, by_token, &k), v_there(t, s, by_token, &v);
  const ByHeads dout_there(t, s, by_token, &dout), out(t, s, by_token);
  const ByHeads dq(t, s, by_token), dk(t, s, by_token), dv(t, s, by_token);
  const Shape square{s.batch, s.heads, s.queries, s.queries};
  const DeviceTensor scores(t, square), dscores(t, square);
  run([&] {
    compute::Backend& b = backend();
    b.run(op::Matmul{.a = q_there, .b = k_there, .c = scores, .transpose_b = true});
    b.run(op::SoftmaxForward{.x = scores, .y = scores, .scale = scale, .causal = causal});
    b.run(op::Matmul{.a = scores, .b = v_there, .c = out});
    b.run(op::Matmul{.a = scores, .b = dout_there, .c = dv, .transpose_a = true});
    b.run(op::Matmul{.a = dout_there, .b = v_there, .c = dscores, .transpose_b = true});
    b.run(op::SoftmaxBackward{.y = scores, .dy = dscores, .dx = dscores, .scale = scale});
    b.run(op::Matmul{.a = dscores, .b = k_there, .c = dq});
    b.run(op::Matmul{.a = dscores, .b = q_there, .c = dk, .transpose_a = true});
  });
  const auto exact_scale = static_cast<double>(scale);
  const Attended expected = attend(s, q, k, v, exact_scale, causal);
  const AttentionGradients g = attend_backward(s, q, k, v, expected, dout, exact_scale, causal);
  // 16-bit scores and probabilities are rounded on the way, several times.
  const double tolerance = tolerance_of(t, exact_products, 1e-1);
  check("attention by products", t, out.read(), expected.out, tolerance);
  check("attention by products dq", t, dq.read(), g.q, tolerance);
  check("attention by products dk", t, dk.read(), g.k, tolerance);
  check("attention by products dv", t, dv.read(), g.v, tolerance);
}

TEST(AttentionByProducts, OfLargeHeadDimensionsAndShortContexts) {
  for (const DType t : float_types())
    for (const AttentionSizes& s : {AttentionSizes{2, 16, 16, 1, 1024}, AttentionSizes{1, 33, 33, 2, 4096},
                                    AttentionSizes{2, 16, 16, 1, 16384}, AttentionSizes{1, 64, 64, 1, 8192}})
      for (const bool by_token : {false, true}) test_by_products(t, s, by_token || s.heads == 1, by_token);
}

// The tiled attention serves them, or says up to where it does.
TEST(AttentionByProducts, TheTiledOneServesThemOrNamesItsLimit) {
  const AttentionSizes s{1, 16, 16, 1, 1024};
  for (const DType t : float_types()) {
    SCOPED_TRACE(name_of(t));
    const Shape shape{1, 16, 1, 1024};
    const auto values = [&](std::uint64_t salt) { return random_values(t, 16 * 1024, salt); };
    const DeviceTensor q(t, shape, values(40)), k(t, shape, values(41)), v(t, shape, values(42)), out(t, shape);
    const DeviceTensor lse(DType::f32, {1, 1, 16});
    const auto forward = [&] {
      backend().run(op::AttentionForward{.q = q, .k = k, .v = v, .out = out, .lse = lse, .shape = {1.0F / 32, true}});
    };
    if (!is_cuda()) {
      run(forward);
      check("attention_forward of a large head", t, out.read(),
            attend(s, values(40), values(41), values(42), 1.0 / 32, true).out, tolerance_of(t, exact_products));
      continue;
    }
    try {
      run(forward);
      ADD_FAILURE() << "nothing was refused";
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), ASSAY_UNSUPPORTED);
      EXPECT_NE(std::string(e.what()).find("head dimension 1024 given"), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("256"), std::string::npos) << e.what();
    }
  }
}

// [m, k] times [k, n], of plain numbers.
Values multiplied(const Values& a, const Values& b, std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a,
                  bool transpose_b) {
  Values c(static_cast<std::size_t>(m * n));
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t l = 0; l < k; ++l) {
      const double factor = a[static_cast<std::size_t>(transpose_a ? l * m + i : i * k + l)];
      for (std::int64_t j = 0; j < n; ++j)
        c[static_cast<std::size_t>(i * n + j)] +=
            factor * b[static_cast<std::size_t>(transpose_b ? j * k + l : l * n + j)];
    }
  return c;
}

// A layer's products: into q by W', a weight's gradient, and the sum of gradients by x of which each adds to the last.
TEST(AttentionByProducts, OfALayersWeights) {
  constexpr std::int64_t tokens = 48, width = 1024;
  for (const DType t : float_types()) {
    SCOPED_TRACE(name_of(t));
    const Values x = random_values(t, tokens * width, 35), dq = random_values(t, tokens * width, 36);
    const Values w = random_values(t, width * width, 37, 0.0, 1 / std::sqrt(double(width)));
    const DeviceTensor x_there(t, {tokens, width}, x), dq_there(t, {tokens, width}, dq), w_there(t, {width, width}, w);
    const DeviceTensor q(t, {tokens, width}), dw(t, {width, width}), dx(t, {tokens, width});
    run([&] {
      backend().run(op::Matmul{.a = x_there, .b = w_there, .c = q, .transpose_b = true});
      backend().run(op::Matmul{.a = dq_there, .b = x_there, .c = dw, .transpose_a = true});
      backend().run(op::Matmul{.a = dq_there, .b = w_there, .c = dx});
      backend().run(op::Matmul{.a = x_there, .b = w_there, .c = dx, .accumulate = true});
    });
    const double tolerance = tolerance_of(t, exact_products);
    check("layer q", t, q.read(), multiplied(x, w, tokens, width, width, false, true), tolerance);
    check("layer dw", t, dw.read(), multiplied(dq, x, width, width, tokens, true, false), tolerance);
    Values sum = multiplied(dq, w, tokens, width, width, false, false);
    const Values second = multiplied(x, w, tokens, width, width, false, false);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += second[i];
    // Rounded twice: the sum itself, and the first product, which is up to 4.5 deviations large where the sum is near
    // zero: 4.5 / sqrt(2) of a rounding, against the sum's deviation.
    check("layer dx", t, dx.read(), sum, 4.2 * tolerance);
  }
}

}  // namespace
}  // namespace assay::conformance
