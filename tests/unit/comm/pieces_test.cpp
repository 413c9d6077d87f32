#include <gtest/gtest.h>
#include <assay/comm/exact_data.hpp>
#include <assay/comm/pieces.hpp>
#include <cmath>
#include <cstring>
#include <limits>

namespace assay::comm {
namespace {

using compute::DType;

class Compare : public testing::Test {
 protected:
  std::vector<float> right(std::int64_t first, std::size_t count) const {
    std::vector<float> out(count);
    std::memcpy(out.data(), data_.at(first), count * sizeof(float));
    return out;
  }
  Comparison compare(const std::vector<float>& got, std::int64_t first, double tolerance = 0) const {
    return comm::compare(reinterpret_cast<const std::byte*>(got.data()), static_cast<std::int64_t>(got.size()), data_,
                         first, tolerance);
  }
  const std::vector<std::int32_t> values_ = ExactData(DType::f32, Reduction::sum, 3).reduced();
  const PeriodicData data_{DType::f32, values_};
};

TEST_F(Compare, DataRepeatsAcrossTheWholePiece) {
  for (const std::int64_t first :
       {std::int64_t{0}, std::int64_t{7}, ExactData::period - 1, 5 * ExactData::period + 3}) {
    const auto got = right(first, PeriodicData::piece);
    for (std::size_t i = 0; i < got.size(); i += 997)
      ASSERT_EQ(got[i], static_cast<float>(values_[(static_cast<std::size_t>(first) + i) % values_.size()]));
    const Comparison c = compare(got, first);
    EXPECT_EQ(c.wrong, 0);
    EXPECT_EQ(c.checked, PeriodicData::piece);
    EXPECT_FALSE(c.first);
  }
}

TEST_F(Compare, CountsAndNamesWhatIsWrong) {
  auto got = right(100, 5000);
  got[1234] += 1;
  got[4999] = std::numeric_limits<float>::quiet_NaN();
  const Comparison c = compare(got, 100);
  EXPECT_EQ(c.wrong, 2);
  ASSERT_TRUE(c.first);
  EXPECT_EQ(c.first->index, 1234);
  EXPECT_EQ(c.first->expected, values_[1334]);
  EXPECT_EQ(c.first->got, c.first->expected + 1);
}

TEST_F(Compare, APieceInTheWrongPlaceIsWrong) { EXPECT_GT(compare(right(4096, 5000), 0).wrong, 4900); }

TEST_F(Compare, AToleranceForgivesNoMoreThanItself) {
  auto got = right(0, 10);
  got[3] += 0.25F, got[7] -= 0.75F, got[8] = INFINITY, got[9] = NAN;
  const Comparison c = compare(got, 0, 0.5);
  EXPECT_EQ(c.wrong, 3);
  EXPECT_EQ(c.first->index, 7);
}

TEST(Comparison, AddsUpAndKeepsTheFirst) {
  Comparison all{.checked = 10, .wrong = 0};
  all.add({.checked = 5, .wrong = 2, .first = WrongElement{3, 1, 2}});
  all.add({.checked = 5, .wrong = 1, .first = WrongElement{4, 1, 2}});
  EXPECT_EQ(all.checked, 20);
  EXPECT_EQ(all.wrong, 3);
  EXPECT_EQ(all.first->index, 3);
}

}  // namespace
}  // namespace assay::comm
