// Rows and columns in 8 bits with their own scales, and the products of them.
#include <array>
#include <cmath>

#include "eight_bit_numbers.hpp"
#include "samples.hpp"

namespace assay::conformance {
namespace {

struct Lines {
  Values numbers, inverse_scales;
};

// x by rows; a line is a row, or a column.
Lines lines_of(const Values& x, std::int64_t rows, std::int64_t width, bool by_columns, DType format) {
  const NumbersOfEightBits numbers(format);
  const std::int64_t lines = by_columns ? width : rows, length = by_columns ? rows : width;
  Lines out;
  for (std::int64_t line = 0; line < lines; ++line) {
    const auto value = [&](std::int64_t i) {
      return x[static_cast<std::size_t>(by_columns ? i * width + line : line * width + i)];
    };
    double high = 0;
    for (std::int64_t i = 0; i < length; ++i) high = std::max(high, std::fabs(value(i)));
    const double scale = numbers.scale_for(high);
    out.inverse_scales.push_back(1 / scale);
    for (std::int64_t i = 0; i < length; ++i) out.numbers.push_back(numbers.nearest(value(i) * scale));
  }
  return out;
}

void quantize(const Tensor& x, const Tensor& y, const Tensor& inverse_scale, bool by_columns) {
  run([&] {
    if (by_columns)
      backend().run(op::QuantizeColumns{.x = x, .y = y, .inverse_scale = inverse_scale});
    else
      backend().run(op::QuantizeRows{.x = x, .y = y, .inverse_scale = inverse_scale});
  });
}

// Widths that a thread holds whole, in packs or not, and one that is read twice; rows of very different sizes.
TEST(EightBit, EachRowAndEachColumnHasItsScale) {
  for (const DType t : float_types())
    for (const DType format : {DType::f8_e4m3, DType::f8_e5m2})
      for (const auto& [rows, width] : std::initializer_list<std::array<std::int64_t, 2>>{
               {1, 1}, {3, 17}, {64, 64}, {130, 48}, {144, 160}, {1000, 136}, {2100, 33}, {5, 4096}, {3, 20480}})
        for (const bool by_columns : {false, true}) {
          Values x = random_values(t, rows * width, 31, 0.0, 0.02);
          for (std::size_t i = 0; i < x.size(); ++i)
            x[i] = rounded(t, std::ldexp(x[i], -static_cast<int>(i / static_cast<std::size_t>(width) % 9)));
          const std::int64_t lines = by_columns ? width : rows;
          const DeviceTensor in(t, {rows, width}, x), y(format, {lines, rows * width / lines}),
              inverse(DType::f32, {lines});
          quantize(in, y, inverse, by_columns);
          const Lines expected = lines_of(x, rows, width, by_columns, format);
          EXPECT_EQ(y.read(), expected.numbers) << rows << " x " << width << (by_columns ? " by columns" : " by rows");
          EXPECT_EQ(inverse.read(), expected.inverse_scales) << rows << " x " << width;
        }
}

TEST(EightBit, ALineThatIsNoNumberStaysOneAndSpoilsNoOther) {
  const double infinite = HUGE_VAL, nothing = std::nan("");
  // By rows: zeros, a NaN, an infinity, numbers. By columns each of them has all but the zeros.
  const Values x = {0, 0, 0, 0, 1, nothing, 2, 3, 4, 5, infinite, 6, 7, -14, 3.5, 0};
  const DeviceTensor in(DType::f32, {4, 4}, x), y(DType::f8_e4m3, {4, 4}), inverse(DType::f32, {4});
  quantize(in, y, inverse, false);
  const Values got = y.read(), scales = inverse.read();
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(got[i], 0) << i;
  EXPECT_EQ(scales[0], 0x1p-108);
  for (std::size_t i = 4; i < 12; ++i) EXPECT_TRUE(std::isnan(got[i])) << i;
  EXPECT_TRUE(std::isnan(scales[1]) && std::isnan(scales[2]));
  EXPECT_EQ((Values(got.begin() + 12, got.end())), (Values{224, -448, 112, 0}));
  quantize(in, y, inverse, true);
  const Values columns = inverse.read();
  EXPECT_EQ(columns[0], 0x1p-6);
  EXPECT_TRUE(std::isnan(columns[1]) && std::isnan(columns[2]));
  EXPECT_EQ(columns[3], 0x1p-6);
  EXPECT_EQ(y.read()[2], 256);  // 4 of the first column, times 64
}

TEST(EightBit, ProductsMultiplyByTheScalesOfRowAndColumn) {
  for (const DType output : {DType::bf16, DType::f32})
    for (const auto& [m, k, n] : std::initializer_list<std::array<std::int64_t, 3>>{
             {16, 16, 16}, {42, 48, 144}, {64, 1280, 320}, {130, 64, 1280}})
      for (const bool fast : {false, true}) {
        if (fast && !is_cuda()) continue;
        const auto numbers = [](std::int64_t count, std::uint64_t seed) {
          const NumbersOfEightBits eight(DType::f8_e4m3);
          Values v = random_values(DType::f32, count, seed, 0.0, 60.0);
          for (double& x : v) x = eight.nearest(static_cast<float>(x));
          return v;
        };
        const Values x = numbers(m * k, 1), y = numbers(n * k, 2);
        Values x_scales = random_values(DType::f32, m, 3, 0.0, 1.0), y_scales = random_values(DType::f32, n, 4);
        for (double& s : x_scales) s = rounded(DType::f32, 0.01 + std::fabs(s));
        for (double& s : y_scales) s = rounded(DType::f32, 0.01 + std::fabs(s));
        const DeviceTensor a(DType::f8_e4m3, {m, k}, x), b(DType::f8_e4m3, {n, k}, y), c(output, {m, n}),
            a_scale(DType::f32, {m}, x_scales), b_scale(DType::f32, {n}, y_scales);
        const auto multiply = [&] {
          run([&] {
            backend().run(op::Matmul{.a = a,
                                     .b = b,
                                     .c = c,
                                     .transpose_b = true,
                                     .a_scale = a_scale,
                                     .b_scale = b_scale,
                                     .fast_accumulation = fast});
          });
        };
        std::string why;
        if (is_cuda() && status_of(multiply, &why) == ASSAY_UNSUPPORTED) {
          if (output == DType::bf16) GTEST_SKIP() << why;
          std::printf("  %s\n", why.c_str());
          continue;
        }
        multiply();
        const Values got = c.read();
        double worst = 0;
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            double sum = 0, squares = 0;
            for (std::int64_t l = 0; l < k; ++l) {
              const double term = x[static_cast<std::size_t>(i * k + l)] * y[static_cast<std::size_t>(j * k + l)];
              sum += term;
              squares += term * term;
            }
            const double scale = x_scales[static_cast<std::size_t>(i)] * y_scales[static_cast<std::size_t>(j)];
            const double error = std::fabs(got[static_cast<std::size_t>(i * n + j)] - sum * scale);
            worst = std::max(worst, error / (std::sqrt(squares) * scale));
          }
        std::printf("  %lldx%lldx%lld to %s%s: worst error %.2e of a sum's terms\n", static_cast<long long>(m),
                    static_cast<long long>(k), static_cast<long long>(n), name_of(output), fast ? ", fast" : "", worst);
        // Tensor cores keep 14 bits or so of a sum; with fast accumulation all of it goes through them: 6.6e-3 was seen
        // over 1280 terms on an H100, without it 1e-3.
        const double of_the_device = !is_cuda() ? 0 : fast ? 1.5e-2 : 4e-3;
        EXPECT_LE(worst, (output == DType::f32 ? 2e-5 : 3e-2) + of_the_device);
      }
}

// Turned in order to be added up over rows: the scales' products go into the numbers, relative to the largest.
TEST(EightBit, TurnedRowsTakeTheirScalesWithThem) {
  const NumbersOfEightBits eight(DType::f8_e4m3);
  for (const auto& [rows, width, places] : std::initializer_list<std::array<std::int64_t, 3>>{{1, 1, 1},
                                                                                              {3, 17, 16},
                                                                                              {16, 32, 16},
                                                                                              {130, 48, 144},
                                                                                              {144, 144, 144},
                                                                                              {42, 160, 48},
                                                                                              {1000, 272, 1008},
                                                                                              {20000, 16, 20000}}) {
    Values x = random_values(DType::f32, rows * width, 51, 0.0, 60.0);
    for (double& v : x) v = eight.nearest(static_cast<float>(v));
    Values scale, other, shares;
    for (std::int64_t r = 0; r < rows; ++r) {
      scale.push_back(std::ldexp(1.0, static_cast<int>(r * 7 % 23) - 20));
      other.push_back(std::ldexp(1.0, static_cast<int>(r * 5 % 11) - 8));
      shares.push_back(scale.back() * other.back());
    }
    const double most = *std::max_element(shares.begin(), shares.end());
    const auto turned = [&, rows = rows, width = width, places = places](bool scaled) {
      Values y(static_cast<std::size_t>(width * places));
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < width; ++c) {
          const double number = x[static_cast<std::size_t>(r * width + c)];
          y[static_cast<std::size_t>(c * places + r)] =
              scaled ? eight.nearest(number * shares[static_cast<std::size_t>(r)] / most) : number;
        }
      return y;
    };
    const DeviceTensor in(DType::f8_e4m3, {rows, width}, x), y(DType::f8_e4m3, {width, places}),
        a(DType::f32, {rows}, scale), b(DType::f32, {rows}, other), inverse(DType::f32, {1});
    const std::string where = std::to_string(rows) + " x " + std::to_string(width);
    run([&] { backend().run(op::TransposeEightBits{.x = in, .y = y}); });
    EXPECT_EQ(y.read(), turned(false)) << where;
    run([&] {
      backend().run(op::TransposeEightBits{.x = in, .scale = a, .other_scale = b, .y = y, .inverse_scale = inverse});
    });
    EXPECT_EQ(y.read(), turned(true)) << where;
    EXPECT_EQ(inverse.read()[0], most) << where;
    // Scales of zeros alone, and one that is no number.
    a.write(Values(static_cast<std::size_t>(rows), 0x1p-108));
    b.write(Values(static_cast<std::size_t>(rows), 0x1p-108));
    run([&] {
      backend().run(op::TransposeEightBits{.x = in, .scale = a, .other_scale = b, .y = y, .inverse_scale = inverse});
    });
    EXPECT_EQ(y.read(), Values(static_cast<std::size_t>(width * places))) << where;
    EXPECT_EQ(inverse.read()[0], 0) << where;
    scale[scale.size() / 2] = std::nan("");
    a.write(scale);
    run([&] {
      backend().run(op::TransposeEightBits{.x = in, .scale = a, .other_scale = b, .y = y, .inverse_scale = inverse});
    });
    EXPECT_TRUE(std::isnan(inverse.read()[0]) && std::isnan(y.read()[0])) << where;
  }
}

TEST(EightBit, ProductsWithOneScaleMayBeAddedUp) {
  for (const DType output : {DType::bf16, DType::f32})
    for (const auto& [m, k, n] :
         std::initializer_list<std::array<std::int64_t, 3>>{{16, 16, 16}, {42, 48, 144}, {64, 1280, 320}}) {
      const NumbersOfEightBits eight(DType::f8_e4m3);
      Values x = random_values(DType::f32, m * k, 1, 0.0, 60.0), y = random_values(DType::f32, n * k, 2, 0.0, 60.0);
      for (Values* v : {&x, &y})
        for (double& number : *v) number = eight.nearest(static_cast<float>(number));
      const Values before = random_values(output, m * n, 3, 0.0, 60.0);
      const double scale = 0x1p-9;
      const DeviceTensor a(DType::f8_e4m3, {m, k}, x), b(DType::f8_e4m3, {n, k}, y), c(output, {m, n}),
          one(DType::f32, {1}, {scale});
      for (const bool accumulate : {false, true}) {
        c.write(before);
        const auto multiply = [&] {
          run([&] {
            backend().run(
                op::Matmul{.a = a, .b = b, .c = c, .transpose_b = true, .accumulate = accumulate, .a_scale = one});
          });
        };
        std::string why;
        if (is_cuda() && status_of(multiply, &why) == ASSAY_UNSUPPORTED) GTEST_SKIP() << why;
        c.write(before);
        multiply();
        const Values got = c.read();
        double worst = 0;
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            double sum = 0, squares = 0;
            for (std::int64_t l = 0; l < k; ++l) {
              const double term = x[static_cast<std::size_t>(i * k + l)] * y[static_cast<std::size_t>(j * k + l)];
              sum += term * scale, squares += term * scale * term * scale;
            }
            const double old = accumulate ? before[static_cast<std::size_t>(i * n + j)] : 0;
            worst = std::max(worst, std::fabs(got[static_cast<std::size_t>(i * n + j)] - sum - old) /
                                        (std::sqrt(squares) + std::fabs(old)));
          }
        std::printf("  %lldx%lldx%lld to %s%s: worst error %.2e of a sum's terms\n", static_cast<long long>(m),
                    static_cast<long long>(k), static_cast<long long>(n), name_of(output), accumulate ? ", added" : "",
                    worst);
        EXPECT_LE(worst, (output == DType::f32 ? 2e-5 : 3e-2) + (is_cuda() ? 4e-3 : 0));
      }
    }
}

// What an operation writes in 8 bits, beside its result or alone, is what its result becomes when it is quantised.
// `call` takes the result, which may be left out, and the 8 bits; those of `of` are expected.
template <class Call>
void test_result_in_eight_bits(const char* what, const DeviceTensor& result, const DeviceTensor& of, bool alone,
                               Call call) {
  const std::int64_t rows = of->dim(0), width = of->dim(1);
  const DeviceTensor numbers(DType::f8_e4m3, {rows, width}), scales(DType::f32, {rows});
  const op::EightBitRows eight_bits{.numbers = numbers, .inverse_scale = scales};
  run([&] { call(result.tensor(), eight_bits); });
  const Lines expected = lines_of(of.read(), rows, width, false, DType::f8_e4m3);
  const std::string where =
      std::string(what) + " " + name_of(of->dtype) + " " + std::to_string(rows) + " x " + std::to_string(width);
  EXPECT_EQ(numbers.read(), expected.numbers) << where;
  EXPECT_EQ(scales.read(), expected.inverse_scales) << where;
  if (!alone) return;
  numbers.write(Values(static_cast<std::size_t>(rows * width)));
  scales.write(Values(static_cast<std::size_t>(rows)));
  run([&] { call(Tensor(), eight_bits); });
  EXPECT_EQ(numbers.read(), expected.numbers) << where << ", alone";
  EXPECT_EQ(scales.read(), expected.inverse_scales) << where << ", alone";
}

// Widths as above; the backward of a norm has its own kernels from 8192 columns on.
TEST(EightBit, ResultsOfNormsAndSwiglu) {
  for (const DType t : float_types())
    for (const auto& [rows, width] : std::initializer_list<std::array<std::int64_t, 2>>{
             {1, 1}, {3, 17}, {130, 48}, {40, 768}, {5, 2560}, {3, 5120}, {2, 20480}}) {
      const auto numbers = [&, n = rows * width](std::uint64_t salt) { return random_values(t, n, salt, 0.1, 2.0); };
      const DeviceTensor x(t, {rows, width}, numbers(1)), other(t, {rows, width}, numbers(2)),
          weight(DType::f32, {width}, random_values(DType::f32, width, 3, 1.0, 0.3)), y(t, {rows, width}),
          sum(t, {rows, width}), other_residual(t, {rows, width}, numbers(5)),
          rstd(DType::f32, {rows}, Values(static_cast<std::size_t>(rows), 0.5)), dweight(DType::f32, {width});
      test_result_in_eight_bits("rms_norm_forward", y, y, true, [&](const Tensor& to, const op::EightBitRows& eight) {
        backend().run(
            op::RmsNormForward{.x = x, .weight = weight, .y = to, .rstd = rstd, .eps = 1e-5F, .eight_bits = eight});
      });
      test_result_in_eight_bits("rms_norm_backward", y, y, false, [&](const Tensor& to, const op::EightBitRows& eight) {
        backend().run(op::RmsNormBackward{.dy = other,
                                          .x = x,
                                          .weight = weight,
                                          .rstd = rstd,
                                          .residual = other_residual,
                                          .dx = to,
                                          .dweight = dweight,
                                          .eight_bits = eight});
      });
      test_result_in_eight_bits("add_rms_norm", y, y, true, [&](const Tensor& to, const op::EightBitRows& eight) {
        backend().run(op::AddRmsNormForward{.x = x,
                                            .residual = other,
                                            .sum = sum,
                                            .weight = weight,
                                            .y = to,
                                            .rstd = rstd,
                                            .eps = 1e-5F,
                                            .eight_bits = eight});
      });
      test_result_in_eight_bits("swiglu_forward", y, y, true, [&](const Tensor& to, const op::EightBitRows& eight) {
        backend().run(op::SwigluForward{.gate = x, .up = other, .h = to, .eight_bits = eight});
      });
      // The halves of one buffer, in place, and apart.
      const DeviceTensor both(t, {rows, 2 * width}, random_values(t, 2 * rows * width, 4)), to(t, {rows, 2 * width});
      const auto half = [width = width](const DeviceTensor& of, std::int64_t which) {
        return of->slice(1, which * width, width);
      };
      test_result_in_eight_bits("swiglu_backward", to, to, false, [&](const Tensor&, const op::EightBitRows& eight) {
        backend().run(op::SwigluBackward{.gate = half(both, 0),
                                         .up = half(both, 1),
                                         .dh = other,
                                         .dgate = half(to, 0),
                                         .dup = half(to, 1),
                                         .h = y,
                                         .eight_bits = eight});
      });
      test_result_in_eight_bits(
          "swiglu_backward alone", to, to, false, [&](const Tensor&, const op::EightBitRows& eight) {
            backend().run(
                op::SwigluBackward{.gate = half(both, 0), .up = half(both, 1), .dh = other, .eight_bits = eight});
          });
    }
}

TEST(EightBit, WhatDoesNotFitIsRefused) {
  const DeviceTensor x(DType::f32, {16, 32}), y(DType::f8_e4m3, {16, 32}), columns(DType::f8_e4m3, {32, 16}),
      rows_scale(DType::f32, {16}), columns_scale(DType::f32, {32}), wide(DType::bf16, {16, 32});
  const auto rows = [&](const Tensor& to, const Tensor& scale) {
    return status_of([&] { backend().run(op::QuantizeRows{.x = x, .y = to, .inverse_scale = scale}); });
  };
  EXPECT_EQ(rows(y, rows_scale), ASSAY_OK);
  EXPECT_EQ(rows(columns, rows_scale), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(rows(y, columns_scale), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(rows(wide, rows_scale), ASSAY_UNSUPPORTED);
  const DeviceTensor c(DType::f32, {16, 16});
  op::Matmul good{.a = y, .b = y, .c = c, .transpose_b = true, .a_scale = rows_scale, .b_scale = rows_scale};
  const auto multiply = [&](auto change) {
    op::Matmul given = good;
    change(given);
    return status_of([&] { backend().run(given); });
  };
  EXPECT_EQ(multiply([](op::Matmul& m) { m.a_scale = {}; }), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(multiply([&](op::Matmul& m) { m.b_scale = columns_scale; }), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(multiply([](op::Matmul& m) { m.alpha = 2; }), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(multiply([](op::Matmul& m) { m.accumulate = true; }), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(multiply([](op::Matmul& m) { m.b_scale = {}; }), ASSAY_INVALID_ARGUMENT) << "16 scales where one is enough";
  EXPECT_EQ(multiply([&](op::Matmul& m) { m.a = wide; }), ASSAY_UNSUPPORTED);
  const auto plain = [&](auto change) {
    op::Matmul given{.a = x, .b = x, .c = c, .transpose_b = true};
    change(given);
    return status_of([&] { backend().run(given); });
  };
  EXPECT_EQ(plain([](op::Matmul& m) { m.fast_accumulation = true; }), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(plain([&](op::Matmul& m) { m.a_scale = rows_scale; }), ASSAY_INVALID_ARGUMENT);
  const DeviceTensor one(DType::f32, {1});
  op::TransposeEightBits turning{
      .x = y, .scale = rows_scale, .other_scale = rows_scale, .y = columns, .inverse_scale = one};
  const auto turn = [&](auto change) {
    op::TransposeEightBits given = turning;
    change(given);
    return status_of([&] { backend().run(given); });
  };
  EXPECT_EQ(turn([&](auto& t) { t.y = y; }), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(turn([&](auto& t) { t.scale = columns_scale; }), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(turn([&](auto& t) { t.other_scale = {}; }), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(turn([&](auto& t) { t.x = wide; }), ASSAY_UNSUPPORTED);
  // Beside a result, or in its place.
  const DeviceTensor h(DType::f32, {16, 32});
  const auto swiglu = [&](const Tensor& to, const op::EightBitRows& eight_bits) {
    return status_of([&] { backend().run(op::SwigluForward{.gate = x, .up = x, .h = to, .eight_bits = eight_bits}); });
  };
  EXPECT_EQ(swiglu({}, {}), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(swiglu(h, {.numbers = columns, .inverse_scale = rows_scale}), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(swiglu(h, {.numbers = y, .inverse_scale = columns_scale}), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(swiglu(h, {.numbers = y}), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(swiglu(h, {.numbers = wide, .inverse_scale = rows_scale}), ASSAY_UNSUPPORTED);
  const DeviceTensor gate(DType::f32, {16, 32}), up(DType::f32, {16, 32}), both(DType::f8_e4m3, {16, 64});
  EXPECT_EQ(status_of([&] {
              backend().run(op::SwigluBackward{.gate = x,
                                               .up = h,
                                               .dh = h,
                                               .dgate = gate,
                                               .dup = up,
                                               .eight_bits = {.numbers = both, .inverse_scale = rows_scale}});
            }),
            ASSAY_INVALID_ARGUMENT)
      << "not the halves of one buffer";
}

}  // namespace

// ---- samples
op::QuantizeRows sample(Given& g, Kind<op::QuantizeRows>) {
  return {.x = g.numbers({6, 8}), .y = g.room({6, 8}, DType::f8_e4m3), .inverse_scale = g.room({6})};
}
op::QuantizeColumns sample(Given& g, Kind<op::QuantizeColumns>) {
  return {.x = g.numbers({6, 8}), .y = g.room({8, 6}, DType::f8_e4m3), .inverse_scale = g.room({8})};
}
op::TransposeEightBits sample(Given& g, Kind<op::TransposeEightBits>) {
  return {.x = g.eight_bit_numbers({6, 8}),
          .scale = g.positive({6}),
          .other_scale = g.positive({6}),
          .y = g.room({8, 16}, DType::f8_e4m3),
          .inverse_scale = g.room({1})};
}

}  // namespace assay::conformance
