// Cross-entropy and reductions.
#include <cmath>
#include <limits>

#include "samples.hpp"

namespace assay::conformance {
namespace {

const double nan = std::nan("");
const double infinity = std::numeric_limits<double>::infinity();

// ---- cross-entropy -------------------------------------------------------------------------------------------------
struct Losses {
  Values losses, lse, dlogits;
};

Losses cross_entropy(Values logits, const Values& labels, double scale, double cap = 0) {
  const std::size_t rows = labels.size(), columns = logits.size() / rows;
  Values slopes(logits.size(), 1);
  for (std::size_t i = 0; cap > 0 && i < logits.size(); ++i) {
    const double t = std::tanh(logits[i] / cap);
    logits[i] = cap * t, slopes[i] = 1 / std::pow(std::cosh(std::atanh(t)), 2);
  }
  Losses l{Values(rows), Values(rows), Values(logits.size())};
  for (std::size_t r = 0; r < rows; ++r) {
    const double* const x = logits.data() + r * columns;
    double high = x[0], sum = 0.0;
    for (std::size_t c = 0; c < columns; ++c) high = std::max(high, x[c]);
    for (std::size_t c = 0; c < columns; ++c) sum += std::exp(x[c] - high);
    l.lse[r] = high + std::log(sum);
    if (labels[r] < 0) continue;
    const auto label = static_cast<std::size_t>(labels[r]);
    l.losses[r] = l.lse[r] - x[label];
    for (std::size_t c = 0; c < columns; ++c)
      l.dlogits[r * columns + c] =
          scale * (std::exp(x[c] - l.lse[r]) - (c == label ? 1.0 : 0.0)) * slopes[r * columns + c];
  }
  return l;
}

const Shape logit_shapes[] = {{1, 2}, {3, 7}, {2, 4, 33}, {5, 1000}, {7, 10000}, {64, 50}, {3, 32000}, {3, 17003}};

TEST(CrossEntropy, AllThreeForms) {
  for (const DType t : float_types())
    for (const Shape& shape : logit_shapes)
      for (const double mean : {0.0, 60.0}) {
        const std::int64_t columns = shape.back(), rows = elements(shape) / columns;
        const Values logits = random_values(t, rows * columns, 1, mean, 3.0);
        Values labels = random_ids(rows, 2, 0, columns);
        if (rows > 2) labels[1] = -1, labels[2] = -100;
        const float scale = 0.125F;
        const Losses expected = cross_entropy(logits, labels, scale);
        const DeviceTensor x(t, shape, logits), ids(DType::i64, {rows}, labels), dx(t, shape);
        const DeviceTensor losses(DType::f32, {rows}), lse(DType::f32, {rows});
        run([&] {
          backend().run(op::CrossEntropyForward{.logits = x, .labels = ids, .losses = losses, .lse = lse});
          backend().run(
              op::CrossEntropyBackward{.logits = x, .labels = ids, .lse = lse, .scale = scale, .dlogits = dx});
        });
        // A device may take a faster exponential for types of 16 bits.
        const double loss_tolerance = t == DType::f32 || !is_cuda() ? 2e-6 : 1e-5;
        check("cross_entropy_forward", t, losses.read(), expected.losses, loss_tolerance);
        check("cross_entropy_forward lse", t, lse.read(), expected.lse, 1e-6);
        // Rounding lse moves the probabilities by as much: 4e-6 where lse is near 70, and p - 1 by more of itself.
        check("cross_entropy_backward", t, dx.read(), expected.dlogits, tolerance_of(t, mean == 0.0 ? 1e-5 : 1e-4));
        const DeviceTensor in_place_losses(DType::f32, {rows});
        const DeviceTensor aliased(t, shape, logits);
        run([&] {
          backend().run(op::CrossEntropyBackward{
              .logits = aliased, .labels = ids, .lse = lse, .scale = scale, .dlogits = aliased});
        });
        EXPECT_EQ(aliased.read(), dx.read());
        run([&] {
          backend().run(op::CrossEntropyInPlace{.logits = x, .labels = ids, .losses = in_place_losses, .scale = scale});
        });
        check("cross_entropy_in_place", t, in_place_losses.read(), expected.losses, loss_tolerance);
        check("cross_entropy_in_place", t, x.read(), expected.dlogits, tolerance_of(t, 3e-6));
      }
}

// Rows that registers hold, and wide ones; logits far beyond the cap among them.
TEST(CrossEntropy, OfASoftCapInAllThreeForms) {
  for (const DType t : float_types())
    for (const Shape& shape :
         {Shape{1, 2}, Shape{3, 7}, Shape{5, 1000}, Shape{64, 50}, Shape{3, 32000}, Shape{3, 17003}})
      for (const float cap : {30.0F, 2.0F}) {
        const std::int64_t columns = shape.back(), rows = elements(shape) / columns;
        Values logits = random_values(t, rows * columns, 1, 0, 3.0);
        logits[0] = 100;
        Values labels = random_ids(rows, 2, 0, columns);
        if (rows > 2) labels[1] = -1, labels[2] = columns - 1;
        const float scale = 0.125F;
        const Losses expected = cross_entropy(logits, labels, scale, static_cast<double>(cap));
        const DeviceTensor x(t, shape, logits), ids(DType::i64, {rows}, labels), dx(t, shape);
        const DeviceTensor losses(DType::f32, {rows}), lse(DType::f32, {rows});
        run([&] {
          backend().run(
              op::CrossEntropyForward{.logits = x, .labels = ids, .losses = losses, .lse = lse, .soft_cap = cap});
          backend().run(op::CrossEntropyBackward{
              .logits = x, .labels = ids, .lse = lse, .scale = scale, .dlogits = dx, .soft_cap = cap});
        });
        const double loss_tolerance = t == DType::f32 || !is_cuda() ? 2e-6 : 1e-5;
        const double gradient_tolerance = 4e-5;  // near the cap the slope 1 - tanh^2 is a small difference
        check("cross_entropy_forward", t, losses.read(), expected.losses, loss_tolerance);
        check("cross_entropy_forward lse", t, lse.read(), expected.lse, 1e-6);
        check("cross_entropy_backward", t, dx.read(), expected.dlogits, tolerance_of(t, gradient_tolerance));
        run([&] {
          backend().run(
              op::CrossEntropyInPlace{.logits = x, .labels = ids, .losses = losses, .scale = scale, .soft_cap = cap});
        });
        check("cross_entropy_in_place", t, losses.read(), expected.losses, loss_tolerance);
        check("cross_entropy_in_place", t, x.read(), expected.dlogits, tolerance_of(t, gradient_tolerance));
      }
  const DeviceTensor x(DType::f32, {2, 3}), ids(DType::i64, {2}), losses(DType::f32, {2});
  EXPECT_THROW(
      backend().run(op::CrossEntropyInPlace{.logits = x, .labels = ids, .losses = losses, .scale = 1, .soft_cap = -1}),
      Error);
}

TEST(CrossEntropy, BackwardByDifferences) {
  const Values logits = random_values(DType::f32, 44, 3), labels = {5, -1, 10, 0};
  const auto loss = [&](const Values& p) {
    double total = 0.0;
    for (const double l : cross_entropy(p, labels, 1.0).losses) total += l;
    return total;
  };
  const DeviceTensor x(DType::f32, {4, 11}, logits), ids(DType::i64, {4}, labels), losses(DType::f32, {4});
  run([&] { backend().run(op::CrossEntropyInPlace{.logits = x, .labels = ids, .losses = losses, .scale = 1.0F}); });
  check("cross_entropy by differences", DType::f32, x.read(), numerical_gradient(loss, logits), 2e-6);
}

// Each part of a row knows its own classes; the parts' log-sum-exps are those of wide columns.
TEST(CrossEntropy, OfPartsIsThatOfTheWholeRow) {
  constexpr std::int64_t rows = 9, parts = 3;
  for (const DType t : float_types())
    for (const std::int64_t words : {5, 40, 3000}) {
      const Values logits = random_values(t, rows * parts * words, 5, 0.0, 3.0);
      Values labels = random_ids(rows, 6, 0, parts * words);
      labels[1] = -1, labels[2] = 0, labels[3] = static_cast<double>(words), labels[4] = static_cast<double>(3 * words);
      const float scale = 0.125F;
      Values possible = labels;
      possible[4] = -1;  // there is no such class
      const Losses expected = cross_entropy(logits, possible, scale);
      const DeviceTensor ids(DType::i64, {rows}, labels), losses(DType::f32, {rows}), lse(DType::f32, {rows});
      Values sums(rows * parts), own_losses(rows), dlogits(logits.size());
      const auto part_of = [&](std::int64_t part) {
        Values x;
        for (std::int64_t r = 0; r < rows; ++r)
          x.insert(x.end(), logits.begin() + (r * parts + part) * words,
                   logits.begin() + (r * parts + part + 1) * words);
        return x;
      };
      for (std::int64_t part = 0; part < parts; ++part) {
        const DeviceTensor x(t, {rows, words}, part_of(part));
        run([&] {
          backend().run(op::CrossEntropyForward{.logits = x,
                                                .labels = ids,
                                                .losses = losses,
                                                .lse = lse,
                                                .classes = {.first = part * words, .all = parts * words}});
        });
        const Values of_part = losses.read(), sum = lse.read();
        for (std::int64_t r = 0; r < rows; ++r) {
          const auto i = static_cast<std::size_t>(r);
          sums[i * parts + static_cast<std::size_t>(part)] = sum[i];
          own_losses[i] += of_part[i];
          const auto label = static_cast<std::int64_t>(labels[i]);
          if (label >= 0 && label / words != part && label < parts * words) {
            EXPECT_EQ(of_part[i], 0) << r;
          }
        }
      }
      sums[4 * parts] = sums[4 * parts + 1] = sums[4 * parts + 2] = 0;  // not numbers until here
      const DeviceTensor log_sums(DType::f32, {rows, parts}, sums);
      run([&] {
        backend().run(op::CrossEntropyForward{.logits = log_sums,
                                              .labels = ids,
                                              .losses = losses,
                                              .lse = lse,
                                              .classes = {.first = 0, .each = words, .all = parts * words}});
      });
      Values total = losses.read(), whole = lse.read();
      for (std::size_t r = 0; r < total.size(); ++r) total[r] += own_losses[r];
      EXPECT_TRUE(std::isnan(total[4]));
      EXPECT_TRUE(std::isnan(whole[4]));
      total[4] = 0, whole[4] = expected.lse[4];
      const double loss_tolerance = t == DType::f32 || !is_cuda() ? 2e-6 : 1e-5;
      check("cross_entropy_forward of parts", t, total, expected.losses, loss_tolerance);
      check("cross_entropy_forward of parts, lse", t, whole, expected.lse, 1e-6);
      for (std::int64_t part = 0; part < parts; ++part) {
        const DeviceTensor x(t, {rows, words}, part_of(part)), dx(t, {rows, words});
        run([&] {
          backend().run(op::CrossEntropyBackward{.logits = x,
                                                 .labels = ids,
                                                 .lse = lse,
                                                 .scale = scale,
                                                 .dlogits = dx,
                                                 .classes = {.first = part * words, .all = parts * words}});
        });
        const Values found = dx.read();
        for (std::int64_t r = 0; r < rows; ++r)
          std::copy_n(found.begin() + r * words, words, dlogits.begin() + (r * parts + part) * words);
      }
      for (std::int64_t c = 0; c < parts * words; ++c) {
        double& x = dlogits[static_cast<std::size_t>(4 * parts * words + c)];
        EXPECT_TRUE(std::isnan(x));
        x = 0;
      }
      check("cross_entropy_backward of parts", t, dlogits, expected.dlogits, tolerance_of(t, 1e-5));
    }
}

TEST(CrossEntropy, OfPartsRefusesClassesThatAreNot) {
  const DeviceTensor x(DType::f32, {2, 8}, Values(16)), ids(DType::i64, {2}, {0, 1});
  const DeviceTensor losses(DType::f32, {2}), lse(DType::f32, {2});
  for (const compute::ClassColumns& classes :
       {compute::ClassColumns{.first = 8, .all = 15}, compute::ClassColumns{.first = 8},
        compute::ClassColumns{.first = -8, .all = 16}, compute::ClassColumns{.each = 3, .all = 23},
        compute::ClassColumns{.each = 0}})
    EXPECT_THROW(backend().run(op::CrossEntropyForward{
                     .logits = x, .labels = ids, .losses = losses, .lse = lse, .classes = classes}),
                 Error);
}

TEST(CrossEntropy, ALabelOutOfRangeIsNan) {
  for (const DType t : float_types()) {
    const Values labels = {11, 3};
    const DeviceTensor x(t, {2, 11}, random_values(t, 22, 4)), ids(DType::i64, {2}, labels), dx(t, {2, 11});
    const DeviceTensor losses(DType::f32, {2}), lse(DType::f32, {2});
    run([&] {
      backend().run(op::CrossEntropyForward{.logits = x, .labels = ids, .losses = losses, .lse = lse});
      backend().run(op::CrossEntropyBackward{.logits = x, .labels = ids, .lse = lse, .scale = 1.0F, .dlogits = dx});
    });
    EXPECT_TRUE(std::isnan(losses.read()[0]));
    EXPECT_TRUE(std::isfinite(losses.read()[1]));
    for (std::size_t i = 0; i < 22; ++i) EXPECT_EQ(std::isnan(dx.read()[i]), i < 11) << i;
    run([&] { backend().run(op::CrossEntropyInPlace{.logits = x, .labels = ids, .losses = losses, .scale = 1.0F}); });
    EXPECT_TRUE(std::isnan(losses.read()[0]));
    EXPECT_TRUE(std::isnan(x.read()[4]));
    EXPECT_TRUE(std::isfinite(x.read()[15]));
  }
}

// ---- reductions ----------------------------------------------------------------------------------------------------
const std::int64_t counts[] = {1, 2, 31, 64, 1000, 16384, 300007};

TEST(Reduction, SumAndSumOfSquares) {
  for (const DType t : float_types())
    for (const std::int64_t n : counts) {
      const Values values = random_values(t, n, 5, 0.1, 1.0);
      double sum = 0.0, squares = 0.0;
      for (const double v : values) sum += v, squares += v * v;
      const DeviceTensor x(t, {n}, values), out(DType::f32, {1});
      run([&] { backend().run(op::Sum{.x = x, .out = out, .factor = 0.25F}); });
      check("sum", t, out.read(), {0.25 * sum}, 1e-7);
      run([&] { backend().run(op::SumOfSquares{.x = x, .out = out}); });
      check("sum_of_squares", t, out.read(), {squares}, 1e-7);
    }
}

TEST(Reduction, SumKeepsSmallTermsBesideLargeOnes) {
  Values values(300001, 1.0);
  values[7] = 3e9, values[200000] = -3e9;
  const DeviceTensor x(DType::f32, {300001}, values), out(DType::f32, {1});
  run([&] { backend().run(op::Sum{.x = x, .out = out}); });
  EXPECT_EQ(out.read()[0], 299999.0);
}

TEST(Reduction, MaxAbsAndNonfinite) {
  for (const DType t : float_types())
    for (const std::int64_t n : counts) {
      Values values = random_values(t, n, 6);
      double high = 0.0;
      for (const double v : values) high = std::max(high, std::fabs(v));
      const DeviceTensor x(t, {n}, values), out(DType::f32, {1});
      run([&] { backend().run(op::MaxAbs{.x = x, .out = out}); });
      EXPECT_EQ(out.read()[0], high);
      run([&] { backend().run(op::CountNonfinite{.x = x, .out = out}); });
      EXPECT_EQ(out.read()[0], 0.0);

      const auto last = static_cast<std::size_t>(n - 1);
      values[last] = -infinity;
      x.write(values);
      run([&] { backend().run(op::MaxAbs{.x = x, .out = out}); });
      EXPECT_EQ(out.read()[0], infinity);
      values[last / 2] = nan;
      x.write(values);
      run([&] { backend().run(op::MaxAbs{.x = x, .out = out}); });
      EXPECT_TRUE(std::isnan(out.read()[0])) << n;
      run([&] { backend().run(op::CountNonfinite{.x = x, .out = out}); });
      EXPECT_EQ(out.read()[0], last == last / 2 ? 1.0 : 2.0) << n;
    }
}

}  // namespace

// ---- samples
op::CrossEntropyForward sample(Given& g, Kind<op::CrossEntropyForward>) {
  return {.logits = g.numbers(sample_shape), .labels = g.ids(6, 8), .losses = g.room({6}), .lse = g.room({6})};
}
op::CrossEntropyBackward sample(Given& g, Kind<op::CrossEntropyBackward>) {
  return {.logits = g.numbers(sample_shape),
          .labels = g.ids(6, 8),
          .lse = g.positive({6}),
          .scale = 0.5F,
          .dlogits = g.room(sample_shape)};
}
op::CrossEntropyInPlace sample(Given& g, Kind<op::CrossEntropyInPlace>) {
  return {.logits = g.numbers(sample_shape), .labels = g.ids(6, 8), .losses = g.room({6}), .scale = 0.5F};
}
op::Sum sample(Given& g, Kind<op::Sum>) { return {.x = g.numbers(sample_shape), .out = g.room({1})}; }
op::SumOfSquares sample(Given& g, Kind<op::SumOfSquares>) { return {.x = g.numbers(sample_shape), .out = g.room({1})}; }
op::MaxAbs sample(Given& g, Kind<op::MaxAbs>) { return {.x = g.numbers(sample_shape), .out = g.room({1})}; }
op::CountNonfinite sample(Given& g, Kind<op::CountNonfinite>) {
  return {.x = g.numbers(sample_shape), .out = g.room({1})};
}

}  // namespace assay::conformance
