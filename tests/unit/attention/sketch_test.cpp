// Products that are right pass, and any that is wrong in one element, row or column shows.
#include "sketch.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace attention {
namespace {

struct Numbers {
  std::int64_t rows, columns;
  std::vector<float> values;
  float& at(std::int64_t r, std::int64_t c) { return values[static_cast<std::size_t>(r * columns + c)]; }
  Matrix matrix() const {
    return {rows, columns, [this](std::int64_t first, std::int64_t count) {
              return std::vector<float>(values.begin() + first * columns, values.begin() + (first + count) * columns);
            }};
  }
};

Numbers random_numbers(std::int64_t rows, std::int64_t columns, unsigned seed) {
  Numbers n{rows, columns, {}};
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal;
  for (std::int64_t i = 0; i < rows * columns; ++i) n.values.push_back(normal(bits));
  return n;
}

// In double, rounded to fp32.
Numbers product(Numbers a, Numbers b, bool transpose_a, bool transpose_b) {
  Numbers c{transpose_a ? a.columns : a.rows, transpose_b ? b.rows : b.columns, {}};
  const std::int64_t inner = transpose_a ? a.rows : a.columns;
  for (std::int64_t i = 0; i < c.rows; ++i)
    for (std::int64_t j = 0; j < c.columns; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < inner; ++k)
        sum += double(transpose_a ? a.at(k, i) : a.at(i, k)) * double(transpose_b ? b.at(j, k) : b.at(k, j));
      c.values.push_back(static_cast<float>(sum));
    }
  return c;
}

class AttentionSketch : public testing::Test {
 protected:
  // The three products of a layer: x W', dy W, dy' x.
  double error_of_forward(const Numbers& y) const {
    return row_sums(y.matrix()).worst_error(product_of(x.matrix(), column_sums(w.matrix())));
  }
  double error_of_input_gradient(const Numbers& dx) const {
    return row_sums(dx.matrix()).worst_error(product_of(dy.matrix(), row_sums(w.matrix())));
  }
  double error_of_weight_gradient(const Numbers& dw) const {
    return row_sums(dw.matrix()).worst_error(transposed_product_of(dy.matrix(), row_sums(x.matrix())));
  }

  const Numbers x = random_numbers(37, 29, 1), w = random_numbers(43, 29, 2), dy = random_numbers(37, 43, 3);
  const Numbers y = product(x, w, false, true), dx = product(dy, w, false, false), dw = product(dy, x, true, false);
};

TEST_F(AttentionSketch, RightProductsAreOffByTheirRoundingAlone) {
  EXPECT_LT(error_of_forward(y), 1e-6);
  EXPECT_LT(error_of_input_gradient(dx), 1e-6);
  EXPECT_LT(error_of_weight_gradient(dw), 1e-6);
  EXPECT_GT(error_of_forward(y), 0);
}

TEST_F(AttentionSketch, OneWrongElementShows) {
  Numbers wrong = y;
  wrong.at(36, 42) += 0.5F;
  EXPECT_GT(error_of_forward(wrong), 1e-3);
  wrong = dx;
  wrong.at(0, 0) += 0.5F;
  EXPECT_GT(error_of_input_gradient(wrong), 1e-3);
  wrong = dw;
  wrong.at(20, 28) += 0.5F;
  EXPECT_GT(error_of_weight_gradient(wrong), 1e-3);
}

TEST_F(AttentionSketch, ExchangedColumnsAndALostTermShow) {
  Numbers wrong = y;
  for (std::int64_t r = 0; r < wrong.rows; ++r) std::swap(wrong.at(r, 3), wrong.at(r, 30));
  EXPECT_GT(error_of_forward(wrong), 1e-2);
  Numbers shorter = dy;  // the last token is left out of the weight's gradient
  for (std::int64_t c = 0; c < shorter.columns; ++c) shorter.at(36, c) = 0;
  EXPECT_GT(error_of_weight_gradient(product(shorter, x, true, false)), 1e-2);
  EXPECT_GT(error_of_weight_gradient(product(x, dy, true, false)), 1e-2) << "transposed: of another shape";
}

TEST_F(AttentionSketch, SumsOfProductsAdd) {
  Numbers twice = dx;
  for (float& v : twice.values) v *= 2;
  const Sums part = product_of(dy.matrix(), row_sums(w.matrix()));
  Sums sum = part;
  sum.add(part);
  EXPECT_LT(row_sums(twice.matrix()).worst_error(sum), 1e-6);
  EXPECT_GT(row_sums(dx.matrix()).worst_error(sum), 1e-2);
}

TEST_F(AttentionSketch, NanIsInfinitelyWrongAndARowWithoutTermsMustBeExact) {
  Numbers wrong = y;
  wrong.at(5, 5) = NAN;
  EXPECT_EQ(error_of_forward(wrong), std::numeric_limits<double>::infinity());
  Sums got(2), expected(2);
  EXPECT_EQ(got.worst_error(expected), 0);
  got.value[1] = 1e-30;
  EXPECT_EQ(got.worst_error(expected), std::numeric_limits<double>::infinity());
}

// More elements than are read at a time.
TEST(AttentionSketchOfManyRows, ReadsThemAllOnce) {
  std::int64_t next = 0;
  const Matrix ones{5'000'000, 7, [&](std::int64_t first, std::int64_t count) {
                      EXPECT_EQ(first, next);
                      next += count;
                      return std::vector<float>(static_cast<std::size_t>(count * 7), 1.0F);
                    }};
  EXPECT_EQ(row_sums(ones).squares, std::vector<double>(5'000'000, 7.0));
  EXPECT_EQ(next, ones.rows);
  next = 0;
  const Sums columns = column_sums(ones);
  EXPECT_EQ(next, ones.rows);
  EXPECT_EQ(columns.squares, std::vector<double>(7, 5'000'000.0));
  // Signs without a pattern: their sum is as small as a random one's, some 2,236.
  EXPECT_LT(std::abs(columns.value[0]), 10'000);
}

}  // namespace
}  // namespace attention
