// Sums whose rounding is the point: to the bit, on every device. The reference adds in double and rounds, first to fp32
// and then to the accumulator; double has more than twice fp32's mantissa, so that the first rounding is as if alone.
#include <cmath>
#include <cstdio>

#include "samples.hpp"

namespace assay::conformance {
namespace {

using compute::SumOptions;
using compute::SumOrder;

constexpr DType types[] = {DType::f32, DType::bf16, DType::f16};
constexpr SumOrder orders[] = {SumOrder::sequential, SumOrder::chunked, SumOrder::pairwise, SumOrder::compensated,
                               SumOrder::cascade};

class Reference {
 public:
  explicit Reference(const SumOptions& options) : options_(options) {}

  double sum(const Values& x) const {
    switch (options_.order) {
      case SumOrder::sequential: return sequential(x);
      case SumOrder::chunked: {
        Values chunks;
        const auto size = static_cast<std::size_t>(options_.chunk);
        for (std::size_t i = 0; i < x.size(); i += size)
          chunks.push_back(sequential(Values(x.begin() + static_cast<std::ptrdiff_t>(i),
                                             x.begin() + static_cast<std::ptrdiff_t>(std::min(i + size, x.size())))));
        return sequential(chunks);
      }
      case SumOrder::pairwise: {
        if (x.size() < 2) return x.empty() ? 0.0 : once(x[0]);
        const auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
        return once(sum(Values(x.begin(), middle)) + sum(Values(middle, x.end())));
      }
      case SumOrder::compensated: {
        double total = 0.0, lost = 0.0;
        for (const double term : x) {
          const double y = once(term - lost), next = once(total + y);
          lost = once(once(next - total) - y);
          total = next;
        }
        return total;
      }
      case SumOrder::cascade: return cascade(x);
    }
    return 0.0;
  }
  Values terms(Values x) const { return options_.upcast_terms ? rounded(options_.accumulator, std::move(x)) : x; }
  double once(double x) const { return rounded(options_.accumulator, rounded(DType::f32, x)); }

 private:
  double sequential(const Values& x) const {
    double total = 0.0;
    for (const double term : x) total = once(total + term);
    return total;
  }
  // Written down as the loops of a vectorised sum are: all columns at once, a row after the other.
  double cascade(const Values& x) const {
    const std::size_t lanes = x.size() < std::size_t(options_.lanes) ? 1 : std::size_t(options_.lanes);
    const std::size_t width = 4 * lanes, rows = x.size() / width;
    std::size_t power = 4;
    while (rows > std::size_t{1} << (4 * power + 3)) ++power;
    std::vector<Values> level(4, Values(width, 0.0));
    const auto move_up = [&](std::size_t to) {
      for (std::size_t i = 0; i < width; ++i) level[to][i] = once(level[to][i] + level[to - 1][i]);
      level[to - 1].assign(width, 0.0);
    };
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < width; ++i) level[0][i] = once(level[0][i] + x[row * width + i]);
      for (std::size_t to = 1; to < 4 && ((row + 1) & ((std::size_t{1} << (to * power)) - 1)) == 0; ++to) move_up(to);
    }
    for (std::size_t from = 1; from < 4; ++from)
      for (std::size_t i = 0; i < width; ++i) level[0][i] = once(level[0][i] + level[from][i]);
    std::size_t at = rows * width;
    for (; at + lanes <= x.size(); at += lanes)
      for (std::size_t i = 0; i < lanes; ++i) level[0][i] = once(level[0][i] + x[at + i]);
    for (std::size_t vector = 1; vector < 4; ++vector)
      for (std::size_t i = 0; i < lanes; ++i) level[0][i] = once(level[0][i] + level[0][vector * lanes + i]);
    double total = sequential(Values(x.begin() + std::ptrdiff_t(at), x.end()));
    for (std::size_t i = 0; i < lanes; ++i) total = once(total + level[0][i]);
    return total;
  }
  SumOptions options_;
};

double sum_of(DType t, const Values& x, const SumOptions& options) {
  const DeviceTensor there(t, {static_cast<std::int64_t>(x.size())}, x), out(DType::f32, {1});
  run([&] { backend().run(op::OrderedSum{.x = there, .out = out, .options = options}); });
  return out.read()[0];
}
double dot_of(DType t, const Values& x, const Values& y, const SumOptions& options) {
  const auto n = static_cast<std::int64_t>(x.size());
  const DeviceTensor x_there(t, {n}, x), y_there(t, {n}, y), out(DType::f32, {1});
  run([&] { backend().run(op::OrderedDot{.x = x_there, .y = y_there, .out = out, .options = options}); });
  return out.read()[0];
}

template <class Visit>
void each_option(Visit visit) {
  for (const DType accumulator : types)
    for (const SumOrder order : orders)
      for (const bool upcast : {false, true}) visit(SumOptions{accumulator, order, 13, upcast, 4});
}

TEST(OrderedSum, RoundsAsItsOrderSays) {
  for (const DType t : types)
    for (const std::int64_t n : {0, 1, 2, 7, 129, 1000}) {
      const Values x = random_values(t, n, 1, 0.3, 1.0), y = random_values(t, n, 2);
      each_option([&](const SumOptions& o) {
        SCOPED_TRACE(::testing::Message() << n << " of " << name_of(t) << " into " << name_of(o.accumulator)
                                          << " order " << int(o.order) << " upcast " << o.upcast_terms);
        const Reference reference(o);
        EXPECT_EQ(sum_of(t, x, o), reference.sum(reference.terms(x)));
        Values products;
        const Values a = reference.terms(x), b = reference.terms(y);
        for (std::size_t i = 0; i < a.size(); ++i) products.push_back(reference.once(a[i] * b[i]));
        EXPECT_EQ(dot_of(t, x, y, o), reference.sum(products));
      });
    }
}

std::string printed(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", x);
  return text;
}

// The example that mixed-precision courses begin with, and its published figures.
TEST(OrderedSum, OfAHundredthAThousandTimes) {
  const Values x(1000, 0.01);
  EXPECT_EQ(printed(sum_of(DType::f32, x, {})), "10.0001");
  EXPECT_EQ(printed(sum_of(DType::f16, x, {DType::f16})), "9.9531");
  EXPECT_EQ(printed(sum_of(DType::f16, x, {DType::f32})), "10.0021");
  EXPECT_EQ(printed(sum_of(DType::f16, x, {DType::f32, SumOrder::sequential, 0, true})), "10.0021");
  // The compensated sum of the same fp16 terms is the exact sum, rounded to fp16.
  EXPECT_EQ(sum_of(DType::f16, x, {DType::f16, SumOrder::compensated}),
            rounded(DType::f16, 1000.0 * rounded(DType::f16, 0.01)));
}

// 1 and 19,999 times 0.001, which PyTorch sums to 20.99900246 on a CPU with vectors of 8; and sums that reach every
// level: of one lane the last is from 16^3 rows of 4 terms on, and above 2^19 rows a block has 32.
TEST(OrderedSum, OfACascade) {
  Values x(20000, 0.001);
  x[0] = 1.0;
  char text[32];
  std::snprintf(text, sizeof text, "%.8f", sum_of(DType::f32, x, {.order = SumOrder::cascade, .lanes = 8}));
  EXPECT_STREQ(text, "20.99900246");
  for (const std::int64_t n : {4 * 4096 + 4 * 300 + 3, (4 << 20) + 4 * 70 + 2}) {
    const SumOptions one_lane{.order = SumOrder::cascade, .lanes = 1};
    const Values many = random_values(DType::f32, n, 3, 0.3, 1.0);
    EXPECT_EQ(sum_of(DType::f32, many, one_lane), Reference(one_lane).sum(many)) << n;
  }
}

TEST(OrderedSum, AtTheEndsOfTheRange) {
  EXPECT_EQ(sum_of(DType::f16, {65504.0, 15.0}, {DType::f16}), 65504.0);
  EXPECT_EQ(sum_of(DType::f16, {65504.0, 16.0}, {DType::f16}), HUGE_VAL) << "half way: to even, which is too large";
  EXPECT_EQ(sum_of(DType::f16, {-65504.0, -32.0}, {DType::f16}), -HUGE_VAL);
  EXPECT_EQ(sum_of(DType::f32, {1e5}, {DType::f16}), HUGE_VAL);
  EXPECT_TRUE(std::isnan(sum_of(DType::f32, {std::nan(""), 1.0}, {DType::bf16})));
  EXPECT_TRUE(std::isnan(sum_of(DType::f16, {std::nan(""), 1.0}, {DType::f16})));
  const double least = std::ldexp(1.0, -24);  // of fp16
  EXPECT_EQ(sum_of(DType::f16, Values(5, least), {DType::f16}), 5.0 * least);
  EXPECT_EQ(dot_of(DType::f16, {std::ldexp(1.0, -12)}, {std::ldexp(1.5, -13)}, {DType::f16}), least)
      << "0.75 of the least";
  EXPECT_EQ(dot_of(DType::f16, {std::ldexp(1.0, -12)}, {std::ldexp(1.0, -13)}, {DType::f16}), 0.0) << "half: to even";
  EXPECT_EQ(sum_of(DType::bf16, {256.0, 1.0, 1.0}, {DType::bf16}), 256.0) << "each half a unit: to even";
  EXPECT_EQ(sum_of(DType::bf16, {256.0, 1.0, 1.0}, {DType::f32}), 258.0);
}

TEST(OrderedSum, RefusesWhatItDoesNotServe) {
  const DeviceTensor x(DType::f32, {4}), matrix(DType::f32, {2, 2}), ids(DType::i64, {4}), out(DType::f32, {1});
  const DeviceTensor half(DType::f16, {4}), half_out(DType::f16, {1});
  const auto sum = [](const Tensor& a, const Tensor& o, const SumOptions& options) {
    return status_of([&] { backend().run(op::OrderedSum{.x = a, .out = o, .options = options}); });
  };
  EXPECT_EQ(sum(ids, out, {}), ASSAY_UNSUPPORTED);
  EXPECT_EQ(sum(x, half_out, {}), ASSAY_UNSUPPORTED);
  EXPECT_EQ(sum(matrix, out, {}), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(sum(x, out, {DType::i64}), ASSAY_UNSUPPORTED);
  EXPECT_EQ(sum(x, out, {DType::f32, SumOrder::chunked, 0}), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(sum(x, out, {.order = SumOrder::cascade, .lanes = 0}), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(sum(x, out, {.order = SumOrder::cascade, .lanes = 65}), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { backend().run(op::OrderedDot{.x = x, .y = half, .out = out, .options = {}}); }),
            ASSAY_UNSUPPORTED);
}

}  // namespace

// ---- samples
op::OrderedSum sample(Given& g, Kind<op::OrderedSum>) {
  return {.x = g.numbers({48}), .out = g.room({1}), .options = {}};
}
op::OrderedDot sample(Given& g, Kind<op::OrderedDot>) {
  return {.x = g.numbers({48}), .y = g.numbers({48}), .out = g.room({1}), .options = {}};
}

}  // namespace assay::conformance
