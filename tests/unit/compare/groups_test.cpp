#include "compare/groups.hpp"

#include "compare/verdict.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace assay::host::compare {
namespace {

TEST(Groups, TwoStatesSetSidesApartBetweenTwoCoinsOrAsTheUnequalCoinThatSuitsBest) {
  EXPECT_DOUBLE_EQ(chance_of_two_states(1, 1), 0.5);
  EXPECT_DOUBLE_EQ(chance_of_two_states(3, 3), 1.0 / 32);
  const double best = std::pow(0.2, 2) * std::pow(0.8, 8) + std::pow(0.8, 2) * std::pow(0.2, 8);
  EXPECT_NEAR(chance_of_two_states(2, 8), best, 1e-5);
  EXPECT_NEAR(chance_of_two_states(8, 2), best, 1e-5);
}

TEST(Groups, DealingCountsWhatLiesAsFarApart) {
  EXPECT_NEAR(chance_of_dealing({1, 2}, {3, 4}), 2.0 / 6, 1e-9);
  EXPECT_NEAR(chance_of_dealing({1, 3}, {2, 4}), 4.0 / 6, 1e-9);
  EXPECT_NEAR(chance_of_dealing({1, 4}, {2, 3}), 1, 1e-9);
  EXPECT_NEAR(chance_of_dealing({4, 5, 6}, {1, 2, 3}), 2.0 / 20, 1e-9);
  EXPECT_NEAR(chance_of_dealing({5}, {1, 2, 3, 4}), 2.0 / 5, 1e-9);
}

std::vector<bool> turns(std::size_t runs) {
  std::vector<bool> order;
  for (std::size_t i = 0; i < 2 * runs; ++i) order.push_back(i % 2 == 1);
  return order;
}

std::vector<bool> blocks(std::size_t runs) {
  std::vector<bool> order;
  for (std::size_t i = 0; i < 2 * runs; ++i) order.push_back(i >= runs);
  return order;
}

TEST(Groups, TwoBlocksCountTwiceToFourTimesAndTurnsOnce) {
  EXPECT_NEAR(factor_of_order(turns(3)), 1, 0.01);
  EXPECT_NEAR(factor_of_order(blocks(3)), 2.105, 0.01);
  EXPECT_NEAR(factor_of_order(blocks(10)), 3.788, 0.01);
}

RunFigure started_at(double minute, double level) {
  RunFigure run;
  run.samples = std::vector<double>(30, level);
  run.mean = level, run.timed = true, run.started_s = 60 * minute;
  return run;
}

double width(const TestResult& result) { return std::log(*result.high / *result.low); }

TEST(Groups, TheSameRunsTellLessWhereAllOfOneSideCameFirst) {
  const double a[] = {10, 10.2, 9.8}, b[] = {11, 11.2, 10.8};
  TestedSide a_turns{"A", {}}, b_turns{"B", {}}, a_first{"A", {}}, b_last{"B", {}};
  for (int i = 0; i < 3; ++i) {
    a_turns.runs.push_back(started_at(2 * i, a[i])), b_turns.runs.push_back(started_at(2 * i + 1, b[i]));
    a_first.runs.push_back(started_at(i, a[i])), b_last.runs.push_back(started_at(3 + i, b[i]));
  }
  TestOptions options;
  options.states = 0;
  const double in_turns = width(compare_figures(a_turns, b_turns, options));
  EXPECT_NEAR(width(compare_figures(a_first, b_last, options)) / in_turns, 2.1, 0.1);
}

// Runs of a side in turns, their logarithms by so much below and above the same level.
TestedSide apart_by(double apart, std::size_t runs, double first_minute) {
  TestedSide side{"", {}};
  for (std::size_t i = 0; i < runs; ++i)
    side.runs.push_back(started_at(first_minute + 2.0 * static_cast<double>(i), 10 * std::exp(i % 2 ? apart : -apart)));
  return side;
}

TEST(Groups, TheIntervalIsStudentsOfThePooledDeviationAndOfTwoRunsBeyondTheStates) {
  constexpr double apart = 0.02, floors = 2 * 0.002 * 0.002;
  TestOptions options;
  options.states = 0;
  // Pooled: 4 squares over 2 degrees of freedom, for each of two means of two.
  const double error = std::sqrt(4 * apart * apart / 2 + floors);
  EXPECT_NEAR(width(compare_figures(apart_by(apart, 2, 0), apart_by(apart, 2, 1), options)), 2 * 4.3027 * error, 1e-3);
  options.states = 0.1;
  EXPECT_NEAR(width(compare_figures(apart_by(apart, 2, 0), apart_by(apart, 2, 1), options)),
              2 * (std::log(1.1) + 6.2053 * error), 1e-3);
}

}  // namespace
}  // namespace assay::host::compare
