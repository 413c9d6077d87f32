#include "integer_product.hpp"

#include <gtest/gtest.h>
#include <cmath>
#include <limits>

namespace node_check {
namespace {

constexpr std::int64_t size = 37;

class Compared : public testing::Test {
 protected:
  Compared() : result_(static_cast<std::size_t>(size * size)) {
    exact_.prepare();
    for (std::int64_t r = 0; r < size; ++r)
      for (std::int64_t c = 0; c < size; ++c)
        for (std::int64_t k = 0; k < size; ++k)
          element(r, c) += static_cast<float>(exact_.a().at(r, k) * exact_.b().at(k, c));
  }
  float& element(std::int64_t row, std::int64_t column) {
    return result_[static_cast<std::size_t>(row * size + column)];
  }

  IntegerProduct exact_{1234, size};
  std::vector<float> result_;
};

TEST_F(Compared, ARightProductIsRightAndNotZero) {
  const Findings found = exact_.compare(result_, 0, 1);
  EXPECT_EQ(found.wrong, 0);
  EXPECT_EQ(found.checked, size * size);
  EXPECT_GT(exact_.compare(result_, 0, 0).wrong, 16 * size / 2);
  const std::vector<float> zeros(result_.size());
  EXPECT_EQ(exact_.compare(zeros, 0, 0).wrong, 0);
}

TEST_F(Compared, RowsCountFromTheFirstOneGiven) {
  const std::span<const float> last = std::span(result_).subspan(static_cast<std::size_t>((size - 2) * size));
  EXPECT_EQ(exact_.compare(last, size - 2, 1).wrong, 0);
  EXPECT_GT(exact_.compare(last, 0, 1).wrong, 0);
}

TEST_F(Compared, EveryKindOfWrongElementIsFound) {
  const float right = element(7, 21);
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const float wrong : {right + 1, right - 1, right + 0.25F, right + (1 << 23), nan, infinity, -infinity, 1e30F}) {
    element(7, 21) = wrong;
    const Findings found = exact_.compare(result_, 0, 1);
    EXPECT_EQ(found.wrong, 1) << wrong;
    EXPECT_EQ(found.first.rfind("row 7, column 21 has ", 0), 0u) << found.first;
  }
  element(7, 21) = right;
  EXPECT_EQ(exact_.compare(result_, 0, 1).wrong, 0);
}

TEST_F(Compared, ErrorsThatCancelInASumAreFound) {
  element(3, 4) += 1;
  element(3, 5) -= 1;
  std::swap(element(9, 0), element(9, 1));
  EXPECT_EQ(exact_.compare(result_, 0, 1).wrong, 4);
}

TEST_F(Compared, ManyWrongRowsAreAtLeastCounted) {
  for (std::int64_t r = 0; r < size; ++r) element(r, 0) += 1, element(r, 1) += 1;
  EXPECT_EQ(exact_.compare(result_, 0, 1).wrong, 2 * 16 + (size - 16));
}

TEST(IntegerProduct, EverySumIsANumberOfEveryFormat) {
  for (const std::int64_t n : {1, 2, 37, 1024, 8192, 32768}) {
    const std::int64_t most = largest_integer(n);
    EXPECT_GE(most, n <= 1024 ? 64 : 11) << n;
    EXPECT_LE(most, 256) << n;
    EXPECT_LE(2 * n * most * most, 1 << 23) << n;
  }
}

TEST(IntegerProduct, TheFactorsTakeAllTheirValues) {
  constexpr std::int32_t most = 3;
  const IntegerMatrix m(5, 64, most);
  std::vector<int> seen(2 * most + 1);
  for (std::int64_t r = 0; r < m.size(); ++r)
    for (std::int64_t c = 0; c < m.size(); ++c) {
      ASSERT_LE(std::abs(m.at(r, c)), most);
      ++seen[static_cast<std::size_t>(m.at(r, c) + most)];
    }
  for (const int count : seen) EXPECT_NEAR(count, 64 * 64 / 7, 120);
}

}  // namespace
}  // namespace node_check
