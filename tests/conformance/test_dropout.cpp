// Operations that drop on their way: bias, relu and dropout in one, and the end of a post-norm block.
#include <array>
#include <cmath>

#include "masks.hpp"
#include "norm_reference.hpp"
#include "samples.hpp"

namespace assay::conformance {
namespace {

using compute::Dropout;

const Shape shapes[] = {{1, 1}, {3, 7}, {129, 129}, {5, 128}, {64, 512}, {2, 3, 33}, {3000, 48}, {4, 2560}};
constexpr float probabilities[] = {0.0F, 0.1F};

// The step is not looked at where nothing is dropped.
Dropout dropout_of(float probability, const DeviceTensor& step) {
  return {probability, 17, 3, probability > 0.0F ? step.tensor() : Tensor{}};
}

// ---- bias, relu, dropout -------------------------------------------------------------------------------------------

TEST(BiasReluDropout, ForwardAndBackward) {
  const DeviceTensor step(DType::i64, {1}, {5});
  for (const DType t : float_types())
    for (const Shape& shape : shapes)
      for (const float p : probabilities)
        for (const int form : {0, 1, 2}) {  // no bias, one of fp32, one of the tensor's type and y in place of x
          const std::int64_t n = elements(shape), width = shape.back();
          const DType bias_type = form == 1 ? DType::f32 : t;
          const Values x = random_values(t, n, 1), bias = random_values(bias_type, width, 2);
          const Values dy = random_values(t, n, 3);
          const DeviceTensor x_there(t, shape, x), b(bias_type, {width}, bias), apart(t, shape);
          const DeviceTensor& y = form == 2 ? x_there : apart;
          const Dropout dropout = dropout_of(p, step);
          run([&] {
            backend().run(op::BiasReluDropoutForward{
                .x = x_there, .bias = form == 0 ? Tensor{} : b.tensor(), .y = y, .dropout = dropout});
          });
          const Values mask = mask_of(shape, dropout);
          Values expected;
          for (std::size_t i = 0; i < x.size(); ++i)
            expected.push_back(std::max(0.0, x[i] + (form ? bias[i % static_cast<std::size_t>(width)] : 0.0)));
          expected = masked(mask, expected);
          const Values got = y.read();
          check("bias_relu_dropout_forward", t, got, expected, tolerance_of(t, 2.5e-7));
          for (std::size_t i = 0; i < mask.size(); ++i) {
            if (mask[i] == 0.0) {
              ASSERT_EQ(got[i], 0.0) << "element " << i << " is one that dropout() drops";
            }
          }

          const double factor = 1.0 / (1.0 - static_cast<double>(p));
          Values dx;
          for (std::size_t i = 0; i < got.size(); ++i) dx.push_back(got[i] > 0.0 ? dy[i] * factor : 0.0);
          const DeviceTensor dy_there(t, shape, dy), dx_apart(t, shape);
          const DeviceTensor& dx_there = form == 2 ? dy_there : dx_apart;
          run([&] {
            backend().run(op::ReluDropoutBackward{.y = y, .dy = dy_there, .dx = dx_there, .probability = p});
          });
          check("relu_dropout_backward", t, dx_there.read(), dx, tolerance_of(t, 2.5e-7));
        }
}

TEST(BiasReluDropout, IsTheThreeOperationsAfterEachOther) {
  const Shape shape = {129, 100};
  const DeviceTensor step(DType::i64, {1}, {2}), bias(DType::f32, {100}, random_values(DType::f32, 100, 4));
  const DeviceTensor x(DType::f32, shape, random_values(DType::f32, 12900, 5)), fused(DType::f32, shape);
  run([&] {
    backend().run(op::BiasReluDropoutForward{.x = x, .bias = bias, .y = fused, .dropout = {0.25F, 8, 9, step}});
    backend().run(op::BiasAdd{.x = x, .bias = bias, .y = x});
    backend().run(op::ActivationForward{.kind = compute::Activation::relu, .x = x, .y = x});
    backend().run(op::ApplyDropout{.x = x, .y = x, .dropout = {0.25F, 8, 9, step}});
  });
  check("bias_relu_dropout_forward", DType::f32, fused.read(), x.read(), 1.2e-7);
}

TEST(BiasReluDropout, DropsItsShare) {
  const std::int64_t rows = 700, width = 129;
  const DeviceTensor step(DType::i64, {1}, {1}), bias(DType::f32, {width}, Values(129, 1.0));
  const DeviceTensor x(DType::f32, {rows, width}, Values(700 * 129, 1.0));
  for (const float p : {0.1F, 0.5F}) {
    const DeviceTensor y(DType::f32, {rows, width});
    run([&] { backend().run(op::BiasReluDropoutForward{.x = x, .bias = bias, .y = y, .dropout = {p, 1, 2, step}}); });
    std::int64_t dropped = 0;
    for (const double v : y.read()) dropped += v == 0.0;
    expect_share(dropped, rows * width, static_cast<double>(p));
  }
}

TEST(BiasReluDropout, RefusesWhatItDoesNotServe) {
  const DeviceTensor x(DType::f32, {4, 5}), bias(DType::f32, {4}), step(DType::i64, {1}), wide(DType::i64, {2});
  const auto forward = [&](const Tensor& b, const Dropout& d) {
    return status_of([&] { backend().run(op::BiasReluDropoutForward{.x = x, .bias = b, .y = x, .dropout = d}); });
  };
  EXPECT_EQ(forward(bias, {}), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(forward({}, {1.0F, 1, 1, step}), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(forward({}, {0.1F, 1, 1, wide}), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(forward({}, {0.1F, 1, 1, bias}), ASSAY_UNSUPPORTED);
  EXPECT_EQ(status_of([&] { backend().run(op::ReluDropoutBackward{.y = x, .dy = x, .dx = x, .probability = -0.1F}); }),
            ASSAY_INVALID_ARGUMENT);
}

// ---- dropout, residual, layer normalisation ------------------------------------------------------------------------

TEST(DropoutAddLayerNorm, Forward) {
  const DeviceTensor step(DType::i64, {1}, {5});
  for (const NormTypes& t : norm_type_sets())
    for (const Shape& shape : shapes)
      for (const float p : probabilities)
        for (const int place :
             {0, 1, 2}) {  // the sum's: its own, that of x, that of the residual; the first without bias
          const std::int64_t columns = shape.back(), rows = elements(shape) / columns;
          const Values x = random_values(t.x, rows * columns, 6), residual = random_values(t.x, rows * columns, 7);
          const Values weight = random_values(t.weight, columns, 8, 1.0, 0.3);
          const Values bias = random_values(t.weight, columns, 9), norm_bias = random_values(t.weight, columns, 10);
          const DeviceTensor x_there(t.x, shape, x), residual_there(t.x, shape, residual), apart(t.x, shape);
          const DeviceTensor w(t.weight, {columns}, weight), b(t.weight, {columns}, bias);
          const DeviceTensor nb(t.weight, {columns}, norm_bias), y(t.x, shape);
          const DeviceTensor mean(DType::f32, {rows}), rstd(DType::f32, {rows});
          const DeviceTensor& sum = place == 0 ? apart : place == 1 ? x_there : residual_there;
          const Dropout dropout = dropout_of(p, step);
          run([&] {
            backend().run(op::DropoutAddLayerNormForward{.x = x_there,
                                                         .bias = place == 0 ? Tensor{} : b.tensor(),
                                                         .residual = residual_there,
                                                         .dropout = dropout,
                                                         .sum = sum,
                                                         .weight = w,
                                                         .norm_bias = nb,
                                                         .y = y,
                                                         .mean = mean,
                                                         .rstd = rstd,
                                                         .eps = static_cast<float>(norm_eps)});
          });
          Values branch = x;
          for (std::size_t i = 0; place > 0 && i < x.size(); ++i) branch[i] += bias[i % bias.size()];
          const Values expected_sum = added(masked(mask_of(shape, dropout), branch), residual);
          const Values stored = sum.read();
          const std::string name = "dropout_add_layer_norm_forward";
          check(name + " sum", t.x, stored, expected_sum, tolerance_of(t.x, 2.5e-7));
          // Of the sum as it was stored: the backward sees no other.
          const Normalised reference = normalise(true, stored, weight, norm_bias);
          check(name, t.x, y.read(), reference.y, tolerance_of(t.x, 2e-6));
          check(name + " rstd", t.x, rstd.read(), reference.rstd, 1e-6);
          check(name + " mean", t.x, mean.read(), reference.mean, 1e-6);
        }
}

struct BackwardForm {
  bool in_place, with_bias, with_dx, accumulate;
};
constexpr BackwardForm backward_forms[] = {
    {false, true, true, false}, {true, true, true, true}, {true, false, true, true}, {false, true, false, true}};

void test_backward(const NormTypes& t, const Shape& shape, const Dropout& dropout, const BackwardForm& form) {
  SCOPED_TRACE(::testing::Message() << name_of(t.x) << " of " << shape.back() << " columns, in place " << form.in_place
                                    << ", p " << dropout.probability);
  const std::int64_t columns = shape.back(), rows = elements(shape) / columns;
  const Values sum = random_values(t.x, rows * columns, 11, 0.5, 2.0), dy = random_values(t.x, rows * columns, 12);
  const Values weight = random_values(t.weight, columns, 13, 1.0, 0.3);
  const Values before = random_values(t.weight_gradient, columns, 14);
  Normalised n = normalise(true, sum, weight, Values(weight.size()));
  n.mean = rounded(DType::f32, n.mean), n.rstd = rounded(DType::f32, n.rstd);
  const DeviceTensor sum_there(t.x, shape, sum), dy_there(t.x, shape, dy), w(t.weight, {columns}, weight);
  const DeviceTensor mean(DType::f32, {rows}, n.mean), rstd(DType::f32, {rows}, n.rstd);
  const DeviceTensor apart(t.x, shape), dx(t.x, shape), dweight(t.weight_gradient, {columns}, before);
  const DeviceTensor dbias(t.weight_gradient, {columns}, before), dnorm_bias(t.weight_gradient, {columns}, before);
  const DeviceTensor& dsum = form.in_place ? dy_there : apart;
  const bool with_dx = form.with_dx && dropout.probability > 0.0F;
  run([&] {
    backend().run(op::DropoutAddLayerNormBackward{.dy = dy_there,
                                                  .sum = sum_there,
                                                  .weight = w,
                                                  .mean = mean,
                                                  .rstd = rstd,
                                                  .dropout = dropout,
                                                  .dsum = dsum,
                                                  .dx = with_dx ? dx.tensor() : Tensor{},
                                                  .dbias = form.with_bias ? dbias.tensor() : Tensor{},
                                                  .dweight = dweight,
                                                  .dnorm_bias = dnorm_bias,
                                                  .accumulate = form.accumulate});
  });
  const NormGradients reference = normalise_backward(true, dy, sum, weight, n);
  const Values gradient = masked(mask_of(shape, dropout), reference.x);
  Values columns_of_gradient(weight.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) columns_of_gradient[i % weight.size()] += gradient[i];
  const auto expected = [&](const Values& total) { return form.accumulate ? added(total, before) : total; };
  const std::string name = "dropout_add_layer_norm_backward";
  // One column leaves 0 but for rounding, which no relative error measures. dx may be made of the rounded dsum: one
  // rounding more.
  if (columns > 1) {
    check(name + " dsum", t.x, dsum.read(), reference.x, tolerance_of(t.x, 3e-6));
    const double twice = 2.0 * tolerance_of(t.x, 3e-6);
    if (with_dx) check(name + " dx", t.x, dx.read(), gradient, twice);
    if (form.with_bias)
      check(name + " dbias", t.weight_gradient, dbias.read(), expected(columns_of_gradient),
            t.x == DType::f32 ? 3e-6 : twice);
  }
  const double tolerance = tolerance_of(t.weight_gradient, 3e-6);
  check(name + " dweight", t.weight_gradient, dweight.read(), expected(reference.weight), tolerance);
  check(name + " dnorm_bias", t.weight_gradient, dnorm_bias.read(), expected(reference.bias), tolerance);
  if (!form.with_bias) {
    EXPECT_EQ(dbias.read(), before) << "not asked for";
  }
}

TEST(DropoutAddLayerNorm, Backward) {
  const DeviceTensor step(DType::i64, {1}, {5});
  for (const NormTypes& t : norm_type_sets())
    for (const Shape& shape : shapes)
      for (const float p : probabilities)
        for (const BackwardForm& form : backward_forms) test_backward(t, shape, dropout_of(p, step), form);
}

TEST(DropoutAddLayerNorm, IsItsPartsAfterEachOther) {
  const Shape shape = {129, 100};
  const std::int64_t rows = 129, columns = 100;
  const DeviceTensor step(DType::i64, {1}, {2});
  const Dropout dropout{0.25F, 8, 9, step};
  const auto made = [&](const Shape& s, std::uint64_t salt) {
    return DeviceTensor(DType::f32, s, random_values(DType::f32, elements(s), salt));
  };
  const DeviceTensor x = made(shape, 15), residual = made(shape, 16), dy = made(shape, 17);
  const DeviceTensor bias = made({columns}, 18), weight = made({columns}, 19), norm_bias = made({columns}, 20);
  const DeviceTensor sum(DType::f32, shape), y(DType::f32, shape), mean(DType::f32, {rows}), rstd(DType::f32, {rows});
  const DeviceTensor dsum(DType::f32, shape), dx(DType::f32, shape), dbias(DType::f32, {columns});
  const DeviceTensor dweight(DType::f32, {columns}), dnorm_bias(DType::f32, {columns});
  run([&] {
    backend().run(op::DropoutAddLayerNormForward{.x = x,
                                                 .bias = bias,
                                                 .residual = residual,
                                                 .dropout = dropout,
                                                 .sum = sum,
                                                 .weight = weight,
                                                 .norm_bias = norm_bias,
                                                 .y = y,
                                                 .mean = mean,
                                                 .rstd = rstd,
                                                 .eps = 1e-5F});
    backend().run(op::DropoutAddLayerNormBackward{.dy = dy,
                                                  .sum = sum,
                                                  .weight = weight,
                                                  .mean = mean,
                                                  .rstd = rstd,
                                                  .dropout = dropout,
                                                  .dsum = dsum,
                                                  .dx = dx,
                                                  .dbias = dbias,
                                                  .dweight = dweight,
                                                  .dnorm_bias = dnorm_bias});
  });
  const DeviceTensor y2(DType::f32, shape), dsum2(DType::f32, shape), dx2(DType::f32, shape),
      dbias2(DType::f32, {columns});
  const DeviceTensor dweight2(DType::f32, {columns}), dnorm_bias2(DType::f32, {columns});
  run([&] {
    backend().run(op::BiasAdd{.x = x, .bias = bias, .y = x});
    backend().run(op::ApplyDropout{.x = x, .y = x, .dropout = {0.25F, 8, 9, step}});
    backend().run(op::Add{.a = x, .b = residual, .out = x});
    backend().run(op::LayerNormForward{
        .x = x, .weight = weight, .bias = norm_bias, .y = y2, .mean = mean, .rstd = rstd, .eps = 1e-5F});
    backend().run(op::LayerNormBackward{.dy = dy,
                                        .x = x,
                                        .weight = weight,
                                        .mean = mean,
                                        .rstd = rstd,
                                        .dx = dsum2,
                                        .dweight = dweight2,
                                        .dbias = dnorm_bias2});
    backend().run(op::ApplyDropout{.x = dsum2, .y = dx2, .dropout = {0.25F, 8, 9, step}});
    backend().run(op::BiasBackward{.dy = dx2, .dbias = dbias2});
  });
  const auto same = [](const char* what, const DeviceTensor& fused, const DeviceTensor& parts) {
    check(std::string("dropout_add_layer_norm ") + what, DType::f32, fused.read(), parts.read(), 2e-6);
  };
  same("sum", sum, x), same("y", y, y2), same("dsum", dsum, dsum2), same("dx", dx, dx2), same("dbias", dbias, dbias2);
  same("dweight", dweight, dweight2), same("dnorm_bias", dnorm_bias, dnorm_bias2);
}

TEST(DropoutAddLayerNorm, DropsItsShareAndOtherElementsInAnotherStep) {
  const std::int64_t rows = 700, columns = 129;
  const DeviceTensor step(DType::i64, {1}, {1}), w(DType::f32, {columns}, Values(129, 1.0));
  const DeviceTensor x(DType::f32, {rows, columns}, Values(700 * 129, 1.0)), y(DType::f32, {rows, columns});
  const DeviceTensor zeros(DType::f32, {rows, columns}, Values(700 * 129, 0.0)), sum(DType::f32, {rows, columns});
  const DeviceTensor mean(DType::f32, {rows}), rstd(DType::f32, {rows});
  Values first;
  for (const double number : {1.0, 2.0}) {
    step.write({number});
    run([&] {
      backend().run(op::DropoutAddLayerNormForward{.x = x,
                                                   .residual = zeros,
                                                   .dropout = {0.1F, 1, 2, step},
                                                   .sum = sum,
                                                   .weight = w,
                                                   .norm_bias = w,
                                                   .y = y,
                                                   .mean = mean,
                                                   .rstd = rstd,
                                                   .eps = 1e-5F});
    });
    const Values got = sum.read();
    std::int64_t dropped = 0, differing = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      dropped += got[i] == 0.0;
      differing += !first.empty() && (first[i] == 0.0) != (got[i] == 0.0);
    }
    expect_share(dropped, rows * columns, 0.1);
    if (!first.empty()) expect_share(differing, rows * columns, 0.18);  // 2 p (1 - p)
    first = got;
  }
}

TEST(DropoutAddLayerNorm, RefusesWhatItDoesNotServe) {
  const DeviceTensor x(DType::f32, {4, 8}), y(DType::f32, {4, 8}), w(DType::f32, {8}), row(DType::f32, {4});
  const DeviceTensor half(DType::bf16, {8}), step(DType::i64, {1}, {1}), short_bias(DType::f32, {7});
  const auto forward = [&](const Tensor& bias, const Dropout& d) {
    return status_of([&] {
      backend().run(op::DropoutAddLayerNormForward{.x = x,
                                                   .bias = bias,
                                                   .residual = x,
                                                   .dropout = d,
                                                   .sum = y,
                                                   .weight = w,
                                                   .norm_bias = w,
                                                   .y = y,
                                                   .mean = row,
                                                   .rstd = row,
                                                   .eps = 1e-5F});
    });
  };
  EXPECT_EQ(forward(half, {}), ASSAY_UNSUPPORTED);
  EXPECT_EQ(forward(short_bias, {}), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(forward(w, {1.5F, 1, 1, step}), ASSAY_INVALID_ARGUMENT);
  std::string text;
  EXPECT_EQ(status_of(
                [&] {
                  backend().run(op::DropoutAddLayerNormBackward{.dy = x,
                                                                .sum = x,
                                                                .weight = w,
                                                                .mean = row,
                                                                .rstd = row,
                                                                .dropout = {},
                                                                .dsum = x,
                                                                .dx = y,
                                                                .dweight = w,
                                                                .dnorm_bias = w});
                },
                &text),
            ASSAY_INVALID_ARGUMENT);
  EXPECT_NE(text.find("dsum is the gradient by x"), std::string::npos) << text;
}

TEST(DropoutAddLayerNorm, NothingAllocatesInASecondExecution) {
  for (const DType t : float_types()) {
    const DeviceTensor x(t, {500, 300}), y(t, {500, 300}), w(t, {300}), row(DType::f32, {500}), mean(DType::f32, {500}),
        dx(t, {500, 300}), dbias(t, {300}), dweight(t, {300}), dnorm_bias(t, {300}), step(DType::i64, {1}, {1});
    const Dropout d{0.1F, 1, 2, step};
    EXPECT_EQ(allocations_in_second(
                  [&] { backend().run(op::BiasReluDropoutForward{.x = x, .bias = w, .y = y, .dropout = d}); }),
              0u);
    EXPECT_EQ(allocations_in_second(
                  [&] { backend().run(op::ReluDropoutBackward{.y = x, .dy = y, .dx = y, .probability = 0.1F}); }),
              0u);
    EXPECT_EQ(allocations_in_second([&] {
                backend().run(op::DropoutAddLayerNormForward{.x = x,
                                                             .bias = w,
                                                             .residual = x,
                                                             .dropout = d,
                                                             .sum = x,
                                                             .weight = w,
                                                             .norm_bias = w,
                                                             .y = y,
                                                             .mean = mean,
                                                             .rstd = row,
                                                             .eps = 1e-5F});
              }),
              0u);
    EXPECT_EQ(allocations_in_second([&] {
                backend().run(op::DropoutAddLayerNormBackward{.dy = y,
                                                              .sum = x,
                                                              .weight = w,
                                                              .mean = mean,
                                                              .rstd = row,
                                                              .dropout = d,
                                                              .dsum = y,
                                                              .dx = dx,
                                                              .dbias = dbias,
                                                              .dweight = dweight,
                                                              .dnorm_bias = dnorm_bias,
                                                              .accumulate = true});
              }),
              0u);
  }
}

}  // namespace

// ---- samples
op::ApplyDropout sample(Given& g, Kind<op::ApplyDropout>) {
  return {.x = g.numbers(sample_shape), .y = g.room(sample_shape), .dropout = g.dropout()};
}
op::BiasReluDropoutForward sample(Given& g, Kind<op::BiasReluDropoutForward>) {
  return {.x = g.numbers(sample_shape), .bias = g.numbers({8}), .y = g.room(sample_shape), .dropout = g.dropout()};
}
op::ReluDropoutBackward sample(Given& g, Kind<op::ReluDropoutBackward>) {
  return {
      .y = g.numbers(sample_shape), .dy = g.numbers(sample_shape), .dx = g.room(sample_shape), .probability = 0.25F};
}
op::DropoutAddLayerNormForward sample(Given& g, Kind<op::DropoutAddLayerNormForward>) {
  return {.x = g.numbers(sample_shape),
          .bias = g.numbers({8}),
          .residual = g.numbers(sample_shape),
          .dropout = g.dropout(),
          .sum = g.room(sample_shape),
          .weight = g.numbers({8}),
          .norm_bias = g.numbers({8}),
          .y = g.room(sample_shape),
          .mean = g.room({6}),
          .rstd = g.room({6}),
          .eps = 1e-5F};
}
op::DropoutAddLayerNormBackward sample(Given& g, Kind<op::DropoutAddLayerNormBackward>) {
  return {.dy = g.numbers(sample_shape),
          .sum = g.numbers(sample_shape),
          .weight = g.numbers({8}),
          .mean = g.numbers({6}),
          .rstd = g.positive({6}),
          .dropout = g.dropout(),
          .dsum = g.room(sample_shape),
          .dx = g.room(sample_shape),
          .dbias = g.room({8}),
          .dweight = g.room({8}),
          .dnorm_bias = g.room({8})};
}

}  // namespace assay::conformance
