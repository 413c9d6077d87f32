// The ranges of repeated reductions hold what a library computes in any order, and not what one reduction less leaves.
#include "repeated.hpp"

#include <gtest/gtest.h>
#include <assay/compute/sixteen_bit.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

namespace all_reduce {
namespace {

using assay::comm::Collective;
using assay::comm::ExactData;
using assay::comm::Reduction;
using assay::compute::DType;

constexpr double beyond_all_numbers = std::numeric_limits<double>::infinity();

// Rounds as fp32 does, and then as bf16.
double stored(DType dtype, double value) {
  const auto single = static_cast<float>(value);
  if (dtype == DType::f32) return double{single};
  return double{assay::compute::float_of_bf16(assay::compute::bf16_of_float(single))};
}

// As a library does that rounds after each addition, in the order of the ranks from `first` on.
double reduce(Reduction reduction, DType dtype, const std::vector<double>& x, std::size_t first) {
  const auto ranks = static_cast<double>(x.size());
  double result = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double term = x[(first + i) % x.size()];
    if (reduction == Reduction::average) term = stored(dtype, term * stored(dtype, 1 / ranks));
    if (i == 0)
      result = term;
    else
      result = reduction == Reduction::max ? std::max(result, term) : stored(dtype, result + term);
  }
  return result;
}

class Data {
 public:
  Data(const ExactData& exact, std::int32_t ranks) : reduced_(exact.reduced()) {
    for (std::int32_t rank = 0; rank < ranks; ++rank) sent_.push_back(exact.sent_by(rank));
  }
  std::vector<double> of_ranks(std::size_t index) const {
    std::vector<double> values;
    for (const auto& sent : sent_) values.push_back(sent[index]);
    return values;
  }
  Element of(std::size_t rank, std::size_t index) const {
    Element e{0, 0, 0, static_cast<double>(reduced_[index])};
    for (std::size_t sender = 0; sender < sent_.size(); ++sender) {
      const double sent = sent_[sender][index];
      if (sender == rank)
        e.own = sent;
      else
        e.others += sent, e.magnitude += std::abs(sent);
    }
    return e;
  }

 private:
  std::vector<std::int32_t> reduced_;
  std::vector<std::vector<std::int32_t>> sent_;
};

class Repeated : public testing::TestWithParam<std::tuple<Reduction, DType, std::int32_t>> {};

TEST_P(Repeated, EveryOrderIsInTheRange) {
  const auto [reduction, dtype, ranks] = GetParam();
  const ExactData exact(dtype, reduction, ranks);
  const Data data(exact, ranks);
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter}) {
    const Repetition repetition{collective, reduction, dtype, ranks, exact.tolerance()};
    for (std::size_t index = 0; index < 40; ++index) {
      constexpr std::size_t rank = 1;
      const Element element = data.of(rank, index);
      std::vector<double> of_ranks = data.of_ranks(index);
      double own = element.own;
      for (std::uint64_t times = 0; times < 200; ++times) {
        const Range range = after(repetition, element, times);
        ASSERT_TRUE(range.has(own)) << "after " << times << ": " << own << " is not in " << range.least << " to "
                                    << range.most << ", index " << index;
        const double next = reduce(reduction, dtype, of_ranks, times % of_ranks.size());
        own = next;
        if (collective == Collective::all_reduce)
          std::fill(of_ranks.begin(), of_ranks.end(), next);
        else
          of_ranks[rank] = next;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Repeated,
                         testing::Combine(testing::Values(Reduction::sum, Reduction::average, Reduction::max),
                                          testing::Values(DType::f32, DType::bf16), testing::Values(2, 3, 4, 7)));

TEST(RepeatedReduction, OneMoreOrLessIsOutOfTheRangeOfASum) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const std::int32_t ranks : {2, 3, 4}) {
      const Repetition sum{Collective::all_reduce, Reduction::sum, dtype, ranks, 0};
      const Element element{1, 4, 4, 5};
      for (std::uint64_t times = 1; times < 12 && 5 * std::pow(ranks, times) < 60000; ++times) {
        const Range range = after(sum, element, times);
        EXPECT_FALSE(range.has(5 * std::pow(ranks, static_cast<double>(times))));
        EXPECT_FALSE(range.has(5 * std::pow(ranks, static_cast<double>(times) - 2)));
        EXPECT_TRUE(range.has(5 * std::pow(ranks, static_cast<double>(times) - 1)));
      }
    }
}

TEST(RepeatedReduction, ASumEndsAtInfinityOfItsSignAndZeroStays) {
  const Repetition sum{Collective::all_reduce, Reduction::sum, DType::f32, 4, 0};
  for (const std::uint64_t times : {100U, 10'000U, 4'000'000'000U}) {
    const Range positive = after(sum, {1, 2, 2, 3}, times), negative = after(sum, {-1, -2, 2, -3}, times);
    EXPECT_EQ(positive.least, beyond_all_numbers);
    EXPECT_EQ(positive.most, beyond_all_numbers);
    EXPECT_EQ(negative.least, -beyond_all_numbers);
    EXPECT_EQ(negative.most, -beyond_all_numbers);
    EXPECT_TRUE(after(sum, {1, -1, 1, 0}, times).has(0));
    EXPECT_FALSE(after(sum, {1, -1, 1, 0}, times).has(0x1p-126));
  }
  EXPECT_FALSE(after(sum, {1, 2, 2, 3}, 20).has(std::nan("")));
}

TEST(RepeatedReduction, ASumScatteredTakesUpTheOthersEachTime) {
  const Repetition sum{Collective::reduce_scatter, Reduction::sum, DType::f32, 3, 0};
  for (const std::uint64_t times : {0U, 1U, 5U, 1000U}) {
    const Range range = after(sum, {7, -12, 20, -5}, times);
    EXPECT_EQ(range.least, 7 - 12.0 * static_cast<double>(times));
    EXPECT_EQ(range.most, range.least);
  }
}

TEST(RepeatedReduction, OfOneRankLeavesWhatWasThere) {
  for (const Reduction reduction : {Reduction::sum, Reduction::average, Reduction::max}) {
    const Range range = after({Collective::all_reduce, reduction, DType::f32, 1, 0}, {7, 0, 0, 7}, 50);
    EXPECT_EQ(range.least, 7);
    EXPECT_EQ(range.most, 7);
  }
}

}  // namespace
}  // namespace all_reduce
