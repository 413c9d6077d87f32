// Element-wise operations: values against double, gradients against finite differences of the double reference.
#include <array>
#include <cmath>

#include "eight_bit_numbers.hpp"
#include "samples.hpp"

namespace assay::conformance {
namespace {

using compute::Activation;

const std::initializer_list<std::int64_t> sizes = {1, 15, 64, 1021, 200003};

template <class F>
Values map(const Values& x, F f) {
  Values y;
  for (const double v : x) y.push_back(f(v));
  return y;
}
template <class F>
Values map(const Values& x, const Values& y, F f) {
  Values z;
  for (std::size_t i = 0; i < x.size(); ++i) z.push_back(f(x[i], y[i]));
  return z;
}

TEST(Elementwise, AddMultiplyScale) {
  for (const DType t : float_types())
    for (const std::int64_t n : sizes) {
      const Values x = random_values(t, n, 1), y = random_values(t, n, 2);
      const DeviceTensor a(t, {n}, x), b(t, {n}, y), out(t, {n});
      const Values sum = map(x, y, std::plus<>()), product = map(x, y, std::multiplies<>());
      run([&] { backend().run(op::Add{.a = a, .b = b, .out = out}); });
      check("add", t, out.read(), sum, tolerance_of(t, 1.2e-7));
      run([&] { backend().run(op::Multiply{.a = a, .b = b, .out = out}); });
      check("multiply", t, out.read(), product, tolerance_of(t, 1.2e-7));
      run([&] { backend().run(op::Scale{.x = a, .factor = -0.3F, .out = out}); });
      check("scale", t, out.read(), map(x, [](double v) { return v * static_cast<double>(-0.3F); }),
            tolerance_of(t, 1.2e-7));
      run([&] { backend().run(op::Add{.a = a, .b = b, .out = a}); });
      check("add in place", t, a.read(), sum, tolerance_of(t, 1.2e-7));
      a.write(x);
      run([&] { backend().run(op::Multiply{.a = a, .b = b, .out = b}); });
      check("multiply in place", t, b.read(), product, tolerance_of(t, 1.2e-7));
      run([&] { backend().run(op::Scale{.x = a, .factor = 2.0F, .out = a}); });
      check("scale in place", t, a.read(), map(x, [](double v) { return 2.0 * v; }), tolerance_of(t, 1.2e-7));
    }
}

TEST(Elementwise, SoftCapStaysBelowItsCap) {
  for (const DType t : float_types())
    for (const std::int64_t n : sizes) {
      Values x = random_values(t, n, 1, 0, 4);
      if (n > 1) x[1] = 1e4;
      const DeviceTensor in(t, {n}, x), out(t, {n});
      const Values expected = map(x, [](double v) { return 1.5 * std::tanh(v / 1.5); });
      run([&] { backend().run(op::SoftCap{.x = in, .cap = 1.5F, .out = out}); });
      check("soft_cap", t, out.read(), expected, tolerance_of(t, 5e-7));
      run([&] { backend().run(op::SoftCap{.x = in, .cap = 1.5F, .out = in}); });
      EXPECT_EQ(in.read(), out.read());
    }
  const DeviceTensor x(DType::f32, {4});
  EXPECT_THROW(backend().run(op::SoftCap{.x = x, .cap = 0, .out = x}), Error);
}

// ---- activations ---------------------------------------------------------------------------------------------------

double activation(Activation kind, double x) {
  switch (kind) {
    case Activation::relu: return x > 0.0 ? x : 0.0;
    case Activation::gelu_erf: return 0.5 * x * std::erfc(-x * M_SQRT1_2);
    case Activation::gelu_tanh: return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::silu: return x / (1.0 + std::exp(-x));
  }
  return 0.0;
}
const char* name_of_activation(Activation kind) {
  switch (kind) {
    case Activation::relu: return "relu";
    case Activation::gelu_erf: return "gelu_erf";
    case Activation::gelu_tanh: return "gelu_tanh";
    case Activation::silu: return "silu";
  }
  return "?";
}
double slope(Activation kind, double x) {  // central, and exact enough: the error is of order 1e-9
  const double h = 1e-5;
  return (activation(kind, x + h) - activation(kind, x - h)) / (2.0 * h);
}

constexpr Activation activations[] = {Activation::relu, Activation::gelu_erf, Activation::gelu_tanh, Activation::silu};

TEST(Elementwise, ActivationsAndTheirSlopes) {
  for (const Activation kind : activations)
    for (const DType t : float_types())
      for (const std::int64_t n : sizes) {
        Values x = random_values(t, n, 3, 0.0, 3.0);
        for (double& v : x)  // at the kink of relu a difference means nothing
          if (std::fabs(v) < 1e-4) v = 1.0;
        const Values dy = random_values(t, n, 4);
        const DeviceTensor in(t, {n}, x), gradient(t, {n}, dy), out(t, {n});
        const std::string name = name_of_activation(kind);
        run([&] { backend().run(op::ActivationForward{.kind = kind, .x = in, .y = out}); });
        check(name + " forward", t, out.read(), map(x, [=](double v) { return activation(kind, v); }),
              tolerance_of(t, 6e-7));
        const Values dx = map(x, dy, [=](double v, double d) { return d * slope(kind, v); });
        run([&] { backend().run(op::ActivationBackward{.kind = kind, .x = in, .dy = gradient, .dx = out}); });
        check(name + " backward", t, out.read(), dx, tolerance_of(t, 3e-6));
        run([&] { backend().run(op::ActivationBackward{.kind = kind, .x = in, .dy = gradient, .dx = gradient}); });
        check(name + " backward in place", t, gradient.read(), dx, tolerance_of(t, 3e-6));
      }
}

TEST(Elementwise, ActivationsFarFromZero) {
  const Values x = {-1e4, -200.0, -90.0, -30.0, -12.0, 12.0, 30.0, 90.0, 200.0, 1e4};
  for (const Activation kind : activations) {
    const DeviceTensor in(DType::f32, {10}, x), out(DType::f32, {10});
    run([&] { backend().run(op::ActivationForward{.kind = kind, .x = in, .y = out}); });
    const Values got = out.read();
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(got[i], activation(kind, x[i]), 1e-6 * std::fabs(activation(kind, x[i])) + 1e-30)
          << name_of_activation(kind) << " of " << x[i];
  }
}

TEST(Elementwise, ReluKeepsNan) {
  const DeviceTensor in(DType::f32, {3}, {std::nan(""), -HUGE_VAL, HUGE_VAL}), out(DType::f32, {3});
  run([&] { backend().run(op::ActivationForward{.kind = Activation::relu, .x = in, .y = out}); });
  const Values got = out.read();
  EXPECT_TRUE(std::isnan(got[0]));
  EXPECT_EQ(got[1], 0.0);
  EXPECT_EQ(got[2], HUGE_VAL);
}

// ---- bias ----------------------------------------------------------------------------------------------------------

const std::initializer_list<std::array<std::int64_t, 2>> matrices = {
    {1, 1}, {3, 17}, {129, 64}, {1000, 130}, {9001, 33}};

TEST(Elementwise, BiasAddAndItsGradient) {
  for (const DType t : float_types())
    for (const DType bias_type : {DType::f32, t})
      for (const auto& [rows, width] : matrices) {
        const Values x = random_values(t, rows * width, 5), bias = random_values(bias_type, width, 6);
        const DeviceTensor in(t, {rows, width}, x), b(bias_type, {width}, bias), out(t, {rows, width});
        Values sum, columns(static_cast<std::size_t>(width), 0.0);
        for (std::size_t i = 0; i < x.size(); ++i) {
          const std::size_t c = i % static_cast<std::size_t>(width);
          sum.push_back(x[i] + bias[c]);
          columns[c] += x[i];
        }
        run([&] { backend().run(op::BiasAdd{.x = in, .bias = b, .y = out}); });
        check("bias_add", t, out.read(), sum, tolerance_of(t, 1.2e-7));
        run([&] { backend().run(op::BiasAdd{.x = in, .bias = b, .y = in}); });
        check("bias_add in place", t, in.read(), sum, tolerance_of(t, 1.2e-7));
        in.write(x);
        const DeviceTensor gradient(bias_type, {width});
        run([&] { backend().run(op::BiasBackward{.dy = in, .dbias = gradient}); });
        check("bias_backward", bias_type, gradient.read(), columns, tolerance_of(bias_type, 2e-6));
        gradient.write(bias);
        run([&] { backend().run(op::BiasBackward{.dy = in, .dbias = gradient, .accumulate = true}); });
        check("bias_backward accumulate", bias_type, gradient.read(), map(columns, bias, std::plus<>()),
              tolerance_of(bias_type, 2e-6));
      }
  const DeviceTensor x(DType::f32, {4, 5}), bias(DType::f32, {4});
  EXPECT_EQ(status_of([&] { backend().run(op::BiasAdd{.x = x, .bias = bias, .y = x}); }), ASSAY_INVALID_ARGUMENT);
}

// ---- 8 bits --------------------------------------------------------------------------------------------------------

TEST(Elementwise, QuantizeTakesTheNearestNumberOfEightBits) {
  for (const DType t : float_types())
    for (const DType format : {DType::f8_e4m3, DType::f8_e5m2})
      for (const auto& [rows, width] : std::initializer_list<std::array<std::int64_t, 2>>{
               {1, 1}, {3, 17}, {64, 64}, {130, 48}, {144, 160}, {1000, 130}, {9001, 33}}) {
        const NumbersOfEightBits numbers(format);
        Values x = random_values(t, rows * width, 31, 0.0, 0.02);
        // Small ones, where numbers are equally far apart, and ties.
        for (std::size_t i = 0; i < x.size(); i += 3) x[i] = rounded(t, std::ldexp(x[i], -static_cast<int>(i % 14)));
        double high = 0;
        for (const double v : x) high = std::max(high, std::fabs(v));
        const DeviceTensor in(t, {rows, width}, x), max_abs(DType::f32, {1}, {high}), y(format, {rows, width}),
            transposed(format, {width, rows}), inverse(DType::f32, {1});
        const double scale = numbers.scale_for(high);
        Values expected, columns(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
          expected.push_back(numbers.nearest(x[i] * scale));
          const auto r = i / static_cast<std::size_t>(width), c = i % static_cast<std::size_t>(width);
          columns[c * static_cast<std::size_t>(rows) + r] = expected.back();
        }
        run([&] {
          backend().run(
              op::Quantize{.x = in, .max_abs = max_abs, .y = y, .transposed = transposed, .inverse_scale = inverse});
        });
        EXPECT_EQ(y.read(), expected) << rows << " x " << width;
        EXPECT_EQ(transposed.read(), columns) << rows << " x " << width;
        EXPECT_EQ(inverse.read()[0], 1 / scale);
        y.write(Values(x.size(), 0.0));
        run([&] { backend().run(op::Quantize{.x = in, .max_abs = max_abs, .y = y, .inverse_scale = inverse}); });
        EXPECT_EQ(y.read(), expected) << "by rows alone";
      }
}

// Each number of the format, each middle of two of them, and right beside that.
TEST(Elementwise, QuantizeRoundsTiesToEven) {
  for (const DType format : {DType::f8_e4m3, DType::f8_e5m2}) {
    const NumbersOfEightBits numbers(format);
    const bool is_e4m3 = format == DType::f8_e4m3;
    Values x;
    for (int bits = 0; bits < (is_e4m3 ? 0x7e : 0x7b); ++bits) {
      const auto value = [&](int b) {
        const auto code = static_cast<std::uint8_t>(b);
        return is_e4m3 ? compute::E4m3::to_float(code) : compute::E5m2::to_float(code);
      };
      const float low = value(bits), high = value(bits + 1), middle = (low + high) / 2;
      for (const float v : {low, middle, std::nextafterf(middle, 0.0F), std::nextafterf(middle, HUGE_VALF), high})
        x.push_back(v), x.push_back(-v);
    }
    const auto n = static_cast<std::int64_t>(x.size());
    const DeviceTensor in(DType::f32, {n}, x), max_abs(DType::f32, {1}, {numbers.largest()}), y(format, {n}),
        inverse(DType::f32, {1});
    run([&] { backend().run(op::Quantize{.x = in, .max_abs = max_abs, .y = y, .inverse_scale = inverse}); });
    EXPECT_EQ(y.read(), map(x, [&](double v) { return numbers.nearest(v); }));
    EXPECT_EQ(inverse.read()[0], 1.0);
  }
}

TEST(Elementwise, QuantizeKeepsWhatIsNoNumberAndEndsAtTheLargest) {
  const DeviceTensor max_abs(DType::f32, {1}, {448.0}), y(DType::f8_e4m3, {4}), inverse(DType::f32, {1});
  const DeviceTensor in(DType::f32, {4}, {std::nan(""), 1e30, -HUGE_VAL, -0.0});
  const auto quantize = [&] {
    run([&] { backend().run(op::Quantize{.x = in, .max_abs = max_abs, .y = y, .inverse_scale = inverse}); });
    return y.read();
  };
  const Values got = quantize();
  EXPECT_TRUE(std::isnan(got[0]));
  EXPECT_EQ(got[1], 448.0);
  EXPECT_EQ(got[2], -448.0);
  EXPECT_EQ(got[3], 0.0);
  for (const double unknown : {HUGE_VAL, std::nan("")}) {
    max_abs.write({unknown});
    for (const double v : quantize()) EXPECT_TRUE(std::isnan(v));
    EXPECT_TRUE(std::isnan(inverse.read()[0]));
  }
  max_abs.write({0.0});  // of nothing but zeros
  in.write({0.0, 0.0, 0x1p-100, -0x1p-101});
  EXPECT_EQ(quantize(), (Values{0.0, 0.0, 256.0, -128.0}));
  EXPECT_EQ(inverse.read()[0], 0x1p-108);
}

TEST(Elementwise, QuantizeRefusesWhatDoesNotFit) {
  const DeviceTensor x(DType::f32, {4, 6}), max_abs(DType::f32, {1}), y(DType::f8_e4m3, {4, 6}),
      rows(DType::f8_e4m3, {4, 6}), other(DType::f8_e5m2, {6, 4}), wide(DType::bf16, {4, 6}), inverse(DType::f32, {1});
  const auto status = [&](const Tensor& to, const Tensor& transposed) {
    return status_of([&] {
      backend().run(
          op::Quantize{.x = x, .max_abs = max_abs, .y = to, .transposed = transposed, .inverse_scale = inverse});
    });
  };
  EXPECT_EQ(status(y, Tensor()), ASSAY_OK);
  EXPECT_EQ(status(wide, Tensor()), ASSAY_UNSUPPORTED);
  EXPECT_EQ(status(y, rows), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(status(y, other), ASSAY_UNSUPPORTED);
}

// ---- SwiGLU --------------------------------------------------------------------------------------------------------

void test_gated_unit(Activation kind) {
  // The slope of GELU by tanh has a sum that cancels where it is small.
  const double of_gradients = kind == Activation::silu ? 1e-6 : 2e-6;
  const auto value = [&](double x) { return activation(kind, x); };
  for (const DType t : float_types())
    for (const auto& [rows, width] : matrices) {
      const std::int64_t n = rows * width;
      const DeviceTensor both(t, {rows, 2 * width}, random_values(t, 2 * n, 7));
      const Tensor gate = both->slice(1, 0, width), up = both->slice(1, width, width);
      const Values g = both.read(gate), u = both.read(up), d = random_values(t, n, 8);
      const DeviceTensor h(t, {rows, width}), dh(t, {rows, width}, d);
      const Values forward = map(g, u, [&](double a, double b) { return value(a) * b; });
      run([&] { backend().run(op::SwigluForward{.gate = gate, .up = up, .h = h, .activation = kind}); });
      check("swiglu_forward", t, h.read(), forward, tolerance_of(t, 6e-7));

      Values dgate, dup;
      for (std::size_t i = 0; i < g.size(); ++i) {
        dgate.push_back(d[i] * u[i] * slope(kind, g[i]));
        dup.push_back(d[i] * value(g[i]));
      }
      const DeviceTensor gradients(t, {rows, 2 * width});
      const Tensor dg = gradients->slice(1, 0, width), du = gradients->slice(1, width, width);
      run([&] {
        backend().run(op::SwigluBackward{.gate = gate, .up = up, .dh = dh, .dgate = dg, .dup = du, .activation = kind});
      });
      check("swiglu_backward", t, gradients.read(dg), dgate, tolerance_of(t, of_gradients));
      check("swiglu_backward", t, gradients.read(du), dup, tolerance_of(t, of_gradients));
      const DeviceTensor again(t, {rows, width});
      run([&] {
        backend().run(op::SwigluBackward{
            .gate = gate, .up = up, .dh = dh, .dgate = gate, .dup = up, .h = again, .activation = kind});
      });
      check("swiglu_backward in place", t, both.read(gate), dgate, tolerance_of(t, of_gradients));
      check("swiglu_backward in place", t, both.read(up), dup, tolerance_of(t, of_gradients));
      EXPECT_EQ(again.read(), h.read()) << "h on the way back is h of the way forth";
    }
}

TEST(Elementwise, SwigluOnHalvesOfOneBuffer) { test_gated_unit(Activation::silu); }
TEST(Elementwise, GegluOnHalvesOfOneBuffer) { test_gated_unit(Activation::gelu_tanh); }

TEST(Elementwise, GatedUnitsRefuseWhatTheyAreNot) {
  const DeviceTensor x(DType::f32, {4, 3, 6});
  const Tensor uneven = x->slice(1, 0, 2);
  const DeviceTensor h(DType::f32, {4, 2, 6});
  EXPECT_EQ(status_of([&] { backend().run(op::SwigluForward{.gate = uneven, .up = h, .h = h}); }), ASSAY_UNSUPPORTED);
  EXPECT_EQ(
      status_of([&] { backend().run(op::SwigluForward{.gate = x, .up = x, .h = h, .activation = Activation::relu}); }),
      ASSAY_UNSUPPORTED);
}

// ---- dropout -------------------------------------------------------------------------------------------------------

TEST(Elementwise, DropoutKeepsItsMask) {
  for (const DType t : float_types()) {
    const std::int64_t n = 100003;
    const float p = 0.1F;
    const Values x(static_cast<std::size_t>(n), 1.0);
    const DeviceTensor in(t, {n}, x), forward(t, {n}), backward(t, {n}), step(DType::i64, {1}, {3});
    run([&] { backend().run(op::ApplyDropout{.x = in, .y = forward, .dropout = {p, 11, 5, step}}); });
    run([&] { backend().run(op::ApplyDropout{.x = in, .y = backward, .dropout = {p, 11, 5, step}}); });
    const Values y = forward.read();
    EXPECT_EQ(y, backward.read()) << "the backward has the mask of the forward";
    const double kept = rounded(t, 1.0 / (1.0 - p));
    double count = 0;
    for (const double v : y) {
      ASSERT_TRUE(v == 0.0 || std::fabs(v - kept) <= 1.2e-7 * kept) << v;
      count += v != 0.0;
    }
    // Five standard deviations of a binomial.
    EXPECT_NEAR(count / static_cast<double>(n), 0.9, 5.0 * std::sqrt(0.09 / static_cast<double>(n)));

    const auto differing = [&](const Values& other) {
      int d = 0;
      for (std::size_t i = 0; i < y.size(); ++i) d += (y[i] == 0.0) != (other[i] == 0.0);
      return d;
    };
    // Independent masks differ in 2 p (1 - p) = 18% of all places.
    run([&] { backend().run(op::ApplyDropout{.x = in, .y = backward, .dropout = {p, 12, 5, step}}); });
    EXPECT_GT(differing(backward.read()), n / 10) << "another seed";
    run([&] { backend().run(op::ApplyDropout{.x = in, .y = backward, .dropout = {p, 11, 6, step}}); });
    EXPECT_GT(differing(backward.read()), n / 10) << "another stream";
    step.write({4});
    run([&] { backend().run(op::ApplyDropout{.x = in, .y = backward, .dropout = {p, 11, 5, step}}); });
    EXPECT_GT(differing(backward.read()), n / 10) << "another step";

    step.write({3});
    const std::int64_t part = 77;
    const DeviceTensor head(t, {part}, Values(77, 1.0)), out(t, {part});
    run([&] { backend().run(op::ApplyDropout{.x = head, .y = out, .dropout = {p, 11, 5, step}}); });
    EXPECT_EQ(out.read(), Values(y.begin(), y.begin() + part)) << "an element's mask does not depend on the size";
    run([&] { backend().run(op::ApplyDropout{.x = in, .y = in, .dropout = {0.0F, 11, 5, step}}); });
    EXPECT_EQ(in.read(), x) << "probability 0, in place";
  }
  const DeviceTensor x(DType::f32, {4}), step(DType::i64, {1});
  EXPECT_EQ(status_of([&] {
              backend().run(op::ApplyDropout{.x = x, .y = x, .dropout = {1.0F, 1, 1, step}});
            }),
            ASSAY_INVALID_ARGUMENT);
}

TEST(Elementwise, RefusesWhatItDoesNotServe) {
  const DeviceTensor a(DType::f32, {4}), b(DType::f32, {5}), c(DType::bf16, {4}), ids(DType::i64, {4});
  EXPECT_EQ(status_of([&] { backend().run(op::Add{.a = a, .b = b, .out = a}); }), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { backend().run(op::Add{.a = a, .b = c, .out = a}); }), ASSAY_UNSUPPORTED);
  EXPECT_EQ(status_of([&] { backend().run(op::Add{.a = ids, .b = ids, .out = ids}); }), ASSAY_UNSUPPORTED);
}

TEST(Elementwise, NothingAllocatesInASecondExecution) {
  for (const DType t : float_types()) {
    const DeviceTensor x(t, {500, 300}), y(t, {500, 300}), z(t, {500, 300}), bias(t, {300}), step(DType::i64, {1}, {1});
    const auto a = Activation::gelu_erf;
    EXPECT_EQ(allocations_in_second([&] { backend().run(op::Add{.a = x, .b = y, .out = z}); }), 0u);
    EXPECT_EQ(allocations_in_second([&] { backend().run(op::Multiply{.a = x, .b = y, .out = z}); }), 0u);
    EXPECT_EQ(allocations_in_second([&] { backend().run(op::Scale{.x = x, .factor = 2.0F, .out = z}); }), 0u);
    EXPECT_EQ(allocations_in_second([&] { backend().run(op::ActivationForward{.kind = a, .x = x, .y = y}); }), 0u);
    EXPECT_EQ(
        allocations_in_second([&] { backend().run(op::ActivationBackward{.kind = a, .x = x, .dy = y, .dx = z}); }), 0u);
    EXPECT_EQ(allocations_in_second([&] { backend().run(op::BiasAdd{.x = x, .bias = bias, .y = y}); }), 0u);
    EXPECT_EQ(
        allocations_in_second([&] { backend().run(op::BiasBackward{.dy = x, .dbias = bias, .accumulate = true}); }),
        0u);
    EXPECT_EQ(allocations_in_second([&] { backend().run(op::SwigluForward{.gate = x, .up = y, .h = z}); }), 0u);
    EXPECT_EQ(allocations_in_second(
                  [&] { backend().run(op::SwigluBackward{.gate = x, .up = y, .dh = z, .dgate = x, .dup = y}); }),
              0u);
    EXPECT_EQ(allocations_in_second([&] {
                backend().run(op::ApplyDropout{.x = x, .y = y, .dropout = {0.1F, 1, 2, step}});
              }),
              0u);
  }
}

}  // namespace

// ---- samples
op::Add sample(Given& g, Kind<op::Add>) {
  return {.a = g.numbers(sample_shape), .b = g.numbers(sample_shape), .out = g.room(sample_shape)};
}
op::Multiply sample(Given& g, Kind<op::Multiply>) {
  return {.a = g.numbers(sample_shape), .b = g.numbers(sample_shape), .out = g.room(sample_shape)};
}
op::Scale sample(Given& g, Kind<op::Scale>) {
  return {.x = g.numbers(sample_shape), .factor = 3, .out = g.room(sample_shape)};
}
op::SoftCap sample(Given& g, Kind<op::SoftCap>) {
  return {.x = g.numbers(sample_shape), .cap = 2, .out = g.room(sample_shape)};
}
op::ActivationForward sample(Given& g, Kind<op::ActivationForward>) {
  return {.kind = compute::Activation::gelu_erf, .x = g.numbers(sample_shape), .y = g.room(sample_shape)};
}
op::ActivationBackward sample(Given& g, Kind<op::ActivationBackward>) {
  return {.kind = compute::Activation::gelu_erf,
          .x = g.numbers(sample_shape),
          .dy = g.numbers(sample_shape),
          .dx = g.room(sample_shape)};
}
op::BiasAdd sample(Given& g, Kind<op::BiasAdd>) {
  return {.x = g.numbers(sample_shape), .bias = g.numbers({8}), .y = g.room(sample_shape)};
}
op::BiasBackward sample(Given& g, Kind<op::BiasBackward>) {
  return {.dy = g.numbers(sample_shape), .dbias = g.room({8})};
}
op::SwigluForward sample(Given& g, Kind<op::SwigluForward>) {
  return {.gate = g.numbers(sample_shape),
          .up = g.numbers(sample_shape),
          .h = g.room(sample_shape),
          .eight_bits = g.eight_bits()};
}
op::SwigluBackward sample(Given& g, Kind<op::SwigluBackward>) {
  return {.gate = g.numbers(sample_shape),
          .up = g.numbers(sample_shape),
          .dh = g.numbers(sample_shape),
          .dgate = g.room(sample_shape),
          .dup = g.room(sample_shape),
          .h = g.room(sample_shape)};
}
op::Quantize sample(Given& g, Kind<op::Quantize>) {
  return {.x = g.numbers(sample_shape),
          .max_abs = g.one(3),
          .y = g.room(sample_shape, DType::f8_e4m3),
          .transposed = g.room({8, 6}, DType::f8_e4m3),
          .inverse_scale = g.room({1})};
}

}  // namespace assay::conformance
