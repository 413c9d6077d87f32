// RMS and layer normalisation, forward and backward.
#include <cmath>
#include <span>

#include "norm_reference.hpp"
#include "samples.hpp"

namespace assay::conformance {
namespace {

const Shape shapes[] = {{1, 1},    {3, 7},    {5, 64},    {2, 3, 33}, {70, 100},
                        {33, 768}, {4, 2560}, {200, 130}, {2, 20000}, {3000, 48}};

// Factors that count from one: a row of a warp, of a block, and one that is read twice.
const Shape offset_shapes[] = {{3, 7}, {33, 768}, {2, 20000}};
constexpr float no_offset = 0;

void test_forward(bool layer, std::span<const Shape> of, float offset) {
  for (const NormTypes& t : norm_type_sets())
    for (const Shape& shape : of) {
      const std::int64_t columns = shape.back(), rows = elements(shape) / columns;
      const Values x = random_values(t.x, rows * columns, 1, 0.5, 2.0);
      const Values weight = random_values(t.weight, columns, 2, 1.0, 0.3), bias = random_values(t.weight, columns, 3);
      const DeviceTensor dx(t.x, shape, x), dw(t.weight, {columns}, weight), db(t.weight, {columns}, bias);
      const DeviceTensor y(t.x, shape), mean(DType::f32, {rows}), rstd(DType::f32, {rows});
      run([&] {
        if (layer)
          backend().run(op::LayerNormForward{.x = dx,
                                             .weight = dw,
                                             .bias = db,
                                             .y = y,
                                             .mean = mean,
                                             .rstd = rstd,
                                             .eps = static_cast<float>(norm_eps)});
        else
          backend().run(op::RmsNormForward{.x = dx,
                                           .weight = dw,
                                           .y = y,
                                           .rstd = rstd,
                                           .eps = static_cast<float>(norm_eps),
                                           .weight_offset = offset});
      });
      const Normalised reference = normalise(layer, x, added(weight, Values(weight.size(), offset)), bias);
      const std::string name = layer ? "layer_norm_forward" : "rms_norm_forward";
      check(name, t.x, y.read(), reference.y, tolerance_of(t.x, 2e-6));
      check(name + " rstd", t.x, rstd.read(), reference.rstd, 1e-6);
      if (layer) check(name + " mean", t.x, mean.read(), reference.mean, 1e-6);
    }
}

struct BackwardForm {
  bool residual, in_place;  // the residual is a tensor apart, or what dx holds
  bool accumulate;          // dweight and dbias
  bool again;               // y is asked for
};
constexpr BackwardForm backward_forms[] = {
    {false, false, false, false}, {true, true, true, true}, {true, false, false, true}};

void test_backward(bool layer, const NormTypes& t, const Shape& shape, const BackwardForm& form, float offset) {
  const std::int64_t columns = shape.back(), rows = elements(shape) / columns;
  const Values x = random_values(t.x, rows * columns, 4, 0.5, 2.0), dy = random_values(t.x, rows * columns, 5);
  const Values weight = random_values(t.weight, columns, 6, 1.0, 0.3);
  const Values before = random_values(t.x, rows * columns, 7);
  const Values dweight_before = random_values(t.weight_gradient, columns, 8);
  const Values dbias_before = random_values(t.weight_gradient, columns, 9);
  const Values factors = added(weight, Values(weight.size(), offset));
  Normalised n = normalise(layer, x, factors, Values(weight.size()));
  n.mean = rounded(DType::f32, n.mean), n.rstd = rounded(DType::f32, n.rstd);
  const DeviceTensor x_there(t.x, shape, x), w_there(t.weight, {columns}, weight);
  const DeviceTensor mean(DType::f32, {rows}, n.mean), rstd(DType::f32, {rows}, n.rstd);
  const DeviceTensor dweight(t.weight_gradient, {columns}, dweight_before);
  const DeviceTensor dbias(t.weight_gradient, {columns}, dbias_before);
  // Without a residual dx takes the place of dy, as the interface allows.
  const DeviceTensor dx(t.x, shape, form.residual ? before : dy), dy_apart(t.x, shape, dy);
  const DeviceTensor residual_apart(t.x, shape, before), y(t.x, shape);
  const Tensor dy_there = form.residual ? dy_apart.tensor() : dx.tensor();
  const Tensor residual = !form.residual ? Tensor{} : form.in_place ? dx.tensor() : residual_apart.tensor();
  run([&] {
    if (layer)
      backend().run(op::LayerNormBackward{.dy = dy_there,
                                          .x = x_there,
                                          .weight = w_there,
                                          .mean = mean,
                                          .rstd = rstd,
                                          .residual = residual,
                                          .dx = dx,
                                          .dweight = dweight,
                                          .dbias = dbias,
                                          .accumulate = form.accumulate});
    else
      backend().run(op::RmsNormBackward{.dy = dy_there,
                                        .x = x_there,
                                        .weight = w_there,
                                        .rstd = rstd,
                                        .residual = residual,
                                        .dx = dx,
                                        .dweight = dweight,
                                        .accumulate = form.accumulate,
                                        .weight_offset = offset,
                                        .y = form.again ? y.tensor() : Tensor{}});
  });
  const NormGradients reference = normalise_backward(layer, dy, x, factors, n);
  const std::string name = layer ? "layer_norm_backward" : "rms_norm_backward";
  // One column leaves dx = g - g = 0 but for rounding, which no relative error measures.
  if (columns > 1)
    check(name + " dx", t.x, dx.read(), form.residual ? added(reference.x, before) : reference.x,
          tolerance_of(t.x, 3e-6));
  check(name + " dweight", t.weight_gradient, dweight.read(),
        form.accumulate ? added(reference.weight, dweight_before) : reference.weight,
        tolerance_of(t.weight_gradient, 3e-6));
  if (layer)
    check(name + " dbias", t.weight_gradient, dbias.read(),
          form.accumulate ? added(reference.bias, dbias_before) : reference.bias,
          tolerance_of(t.weight_gradient, 3e-6));
  if (form.again && !layer) check(name + " y", t.x, y.read(), n.y, tolerance_of(t.x, 2e-6));
}

void test_backward(bool layer, std::span<const Shape> of, float offset) {
  for (const NormTypes& t : norm_type_sets())
    for (const Shape& shape : of)
      for (const BackwardForm& form : backward_forms) test_backward(layer, t, shape, form, offset);
}

// The operation's gradients against central differences of the float64 forward.
void test_by_differences(bool layer) {
  const std::int64_t rows = 4, columns = 19;
  const Values x = random_values(DType::f32, rows * columns, 10, 0.5, 1.5);
  const Values weight = random_values(DType::f32, columns, 11, 1.0, 0.3), bias = random_values(DType::f32, columns, 12);
  const Values dy = random_values(DType::f32, rows * columns, 13);
  const auto loss = [&](const Values& at, const Values& w, const Values& b) {
    const Values y = normalise(layer, at, w, b).y;
    double total = 0.0;
    for (std::size_t i = 0; i < y.size(); ++i) total += y[i] * dy[i];
    return total;
  };
  const Normalised n = normalise(layer, x, weight, bias);
  const DeviceTensor x_there(DType::f32, {rows, columns}, x), dy_there(DType::f32, {rows, columns}, dy);
  const DeviceTensor w_there(DType::f32, {columns}, weight), dx(DType::f32, {rows, columns});
  const DeviceTensor mean(DType::f32, {rows}, n.mean), rstd(DType::f32, {rows}, n.rstd);
  const Values zeros(static_cast<std::size_t>(columns));
  const DeviceTensor dweight(DType::f32, {columns}, zeros), dbias(DType::f32, {columns}, zeros);
  run([&] {
    if (layer)
      backend().run(op::LayerNormBackward{.dy = dy_there,
                                          .x = x_there,
                                          .weight = w_there,
                                          .mean = mean,
                                          .rstd = rstd,
                                          .dx = dx,
                                          .dweight = dweight,
                                          .dbias = dbias,
                                          .accumulate = true});
    else
      backend().run(op::RmsNormBackward{.dy = dy_there,
                                        .x = x_there,
                                        .weight = w_there,
                                        .rstd = rstd,
                                        .dx = dx,
                                        .dweight = dweight,
                                        .accumulate = true});
  });
  const std::string name = layer ? "layer_norm_backward by differences" : "rms_norm_backward by differences";
  const auto by_x = numerical_gradient([&](const Values& p) { return loss(p, weight, bias); }, x);
  const auto by_weight = numerical_gradient([&](const Values& p) { return loss(x, p, bias); }, weight);
  check(name, DType::f32, dx.read(), by_x, 2e-6);
  check(name, DType::f32, dweight.read(), by_weight, 2e-6);
  if (layer)
    check(name, DType::f32, dbias.read(), numerical_gradient([&](const Values& p) { return loss(x, weight, p); }, bias),
          2e-6);
}

TEST(RmsNorm, Forward) { test_forward(false, shapes, no_offset); }
TEST(RmsNorm, Backward) { test_backward(false, shapes, no_offset); }
TEST(RmsNorm, FactorsMayCountFromOne) {
  test_forward(false, offset_shapes, 1);
  test_backward(false, offset_shapes, 1);
}
TEST(RmsNorm, BackwardByDifferences) { test_by_differences(false); }
TEST(LayerNorm, Forward) { test_forward(true, shapes, no_offset); }
TEST(LayerNorm, Backward) { test_backward(true, shapes, no_offset); }
TEST(LayerNorm, BackwardByDifferences) { test_by_differences(true); }

TEST(RmsNorm, AddedForwardNormalisesTheStoredSum) {
  for (const NormTypes& t : norm_type_sets())
    for (const Shape& shape : shapes)
      for (const int place : {0, 1, 2}) {  // the sum's: its own, that of x, that of the residual
        const std::int64_t columns = shape.back(), rows = elements(shape) / columns;
        const Values x = random_values(t.x, rows * columns, 14), residual = random_values(t.x, rows * columns, 15);
        const Values weight = random_values(t.weight, columns, 16, 1.0, 0.3);
        const DeviceTensor x_there(t.x, shape, x), residual_there(t.x, shape, residual), apart(t.x, shape);
        const DeviceTensor w_there(t.weight, {columns}, weight), y(t.x, shape), rstd(DType::f32, {rows});
        const DeviceTensor& sum = place == 0 ? apart : place == 1 ? x_there : residual_there;
        run([&] {
          backend().run(op::AddRmsNormForward{.x = x_there,
                                              .residual = residual_there,
                                              .sum = sum,
                                              .weight = w_there,
                                              .y = y,
                                              .rstd = rstd,
                                              .eps = static_cast<float>(norm_eps)});
        });
        const Values expected_sum = rounded(t.x, added(x, residual));
        const Normalised reference = normalise(false, expected_sum, weight, {});
        EXPECT_EQ(sum.read(), expected_sum) << name_of(t.x);
        check("add_rms_norm_forward", t.x, y.read(), reference.y, tolerance_of(t.x, 2e-6));
        check("add_rms_norm_forward rstd", t.x, rstd.read(), reference.rstd, 1e-6);
      }
}

TEST(LayerNorm, KeepsItsPrecisionFarFromZero) {
  const std::int64_t columns = 1000;
  const Values x = random_values(DType::f32, columns, 17, 1000.0, 1.0);
  const Values ones(static_cast<std::size_t>(columns), 1.0), zeros(static_cast<std::size_t>(columns));
  const DeviceTensor x_there(DType::f32, {1, columns}, x), w(DType::f32, {columns}, ones);
  const DeviceTensor b(DType::f32, {columns}, zeros), y(DType::f32, {1, columns});
  const DeviceTensor mean(DType::f32, {1}), rstd(DType::f32, {1});
  run([&] {
    backend().run(op::LayerNormForward{
        .x = x_there, .weight = w, .bias = b, .y = y, .mean = mean, .rstd = rstd, .eps = static_cast<float>(norm_eps)});
  });
  // The mean itself is rounded to 2^-14 there, which moves every y by as much.
  check("layer_norm_forward far from 0", DType::f32, y.read(), normalise(true, x, ones, zeros).y, 2e-4);
}

TEST(Norm, RefusesWhatItDoesNotServe) {
  const DeviceTensor x(DType::f32, {4, 8}), y(DType::f32, {4, 8}), rstd(DType::f32, {4}), short_rstd(DType::f32, {3});
  const DeviceTensor w(DType::f32, {8}), w_half(DType::bf16, {8}), short_w(DType::f32, {7}),
      half(is_cuda() ? DType::i32 : DType::f16, {4, 8});
  const auto call = [&](const Tensor& in, const Tensor& weight, const Tensor& out, const Tensor& statistic) {
    return [&] {
      backend().run(op::RmsNormForward{.x = in, .weight = weight, .y = out, .rstd = statistic, .eps = 1e-5F});
    };
  };
  std::string text;
  EXPECT_EQ(status_of(call(half, w, half, rstd), &text), ASSAY_UNSUPPORTED);
  EXPECT_NE(text.find("rms_norm_forward"), std::string::npos) << text;
  EXPECT_EQ(status_of(call(x, w_half, y, rstd)), ASSAY_UNSUPPORTED);
  EXPECT_EQ(status_of(call(x, short_w, y, rstd)), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(status_of(call(x, w, y, short_rstd), &text), ASSAY_INVALID_ARGUMENT);
  EXPECT_NE(text.find("3 elements"), std::string::npos) << text;
  EXPECT_EQ(status_of(call(x.tensor().slice(1, 0, 7), short_w, y.tensor().slice(1, 0, 7), rstd)), ASSAY_UNSUPPORTED);
}

}  // namespace

// ---- samples
op::RmsNormForward sample(Given& g, Kind<op::RmsNormForward>) {
  return {.x = g.numbers(sample_shape),
          .weight = g.numbers({8}),
          .y = g.room(sample_shape),
          .rstd = g.room({6}),
          .eps = 1e-5F,
          .eight_bits = g.eight_bits()};
}
op::AddRmsNormForward sample(Given& g, Kind<op::AddRmsNormForward>) {
  return {.x = g.numbers(sample_shape),
          .residual = g.numbers(sample_shape),
          .sum = g.room(sample_shape),
          .weight = g.numbers({8}),
          .y = g.room(sample_shape),
          .rstd = g.room({6}),
          .eps = 1e-5F,
          .eight_bits = g.eight_bits()};
}
op::RmsNormBackward sample(Given& g, Kind<op::RmsNormBackward>) {
  return {.dy = g.numbers(sample_shape),
          .x = g.numbers(sample_shape),
          .weight = g.numbers({8}),
          .rstd = g.positive({6}),
          .residual = g.numbers(sample_shape),
          .dx = g.room(sample_shape),
          .dweight = g.room({8}),
          .y = g.room(sample_shape),
          .eight_bits = g.eight_bits()};
}
op::LayerNormForward sample(Given& g, Kind<op::LayerNormForward>) {
  return {.x = g.numbers(sample_shape),
          .weight = g.numbers({8}),
          .bias = g.numbers({8}),
          .y = g.room(sample_shape),
          .mean = g.room({6}),
          .rstd = g.room({6}),
          .eps = 1e-5F};
}
op::LayerNormBackward sample(Given& g, Kind<op::LayerNormBackward>) {
  return {.dy = g.numbers(sample_shape),
          .x = g.numbers(sample_shape),
          .weight = g.numbers({8}),
          .mean = g.numbers({6}),
          .rstd = g.positive({6}),
          .residual = g.numbers(sample_shape),
          .dx = g.room(sample_shape),
          .dweight = g.room({8}),
          .dbias = g.room({8})};
}

}  // namespace assay::conformance
