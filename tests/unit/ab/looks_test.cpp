#include "ab/looks.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace assay::host::ab {
namespace {

std::vector<std::int64_t> schedule_of(const LookPlan& plan) {
  Looks looks(plan);
  std::vector<std::int64_t> at;
  for (std::int64_t runs = 1; runs <= plan.max_runs; ++runs)
    if (looks.is_due(runs)) {
      at.push_back(runs);
      looks.looked(runs);
    }
  return at;
}

// What all looks of a session together may err.
double spent_by(const LookPlan& plan) {
  Looks looks(plan);
  double spent = 0;
  for (std::int64_t runs = 1; runs <= plan.max_runs; ++runs)
    if (looks.is_due(runs)) {
      spent += 1 - looks.confidence_at(runs);
      looks.looked(runs);
    }
  return spent;
}

TEST(Looks, BeginWithTheFewestRunsAndEndWithTheMost) {
  EXPECT_EQ(schedule_of({0.99, 5, 30}), (std::vector<std::int64_t>{5, 7, 10, 14, 19, 26, 30}));
  EXPECT_EQ(schedule_of({0.99, 3, 3}), (std::vector<std::int64_t>{3}));
  EXPECT_EQ(schedule_of({0.99, 3, 6}), (std::vector<std::int64_t>{3, 4, 6}));
}

TEST(Looks, SpendTogetherWhatTheWholeSessionMayErr) {
  EXPECT_NEAR(spent_by({0.99, 5, 30}), 0.01, 1e-12);
  EXPECT_NEAR(spent_by({0.95, 3, 100}), 0.05, 1e-12);
}

TEST(Looks, AreEachMoreConfidentThanTheSession) {
  Looks looks({0.95, 5, 30});
  EXPECT_NEAR(looks.confidence_at(5), 1 - 0.05 * 5 / 30, 1e-12);
  looks.looked(5);
  EXPECT_NEAR(looks.confidence_at(7), 1 - 0.05 * 2 / 30, 1e-12);
}

// A session that its time ends looks once more, whenever that is.
TEST(Looks, OutOfTurnSpendNoMore) {
  Looks looks({0.99, 5, 30});
  double spent = 1 - looks.confidence_at(5);
  looks.looked(5);
  spent += 1 - looks.confidence_at(6);
  EXPECT_NEAR(spent, 0.01 * 6 / 30, 1e-12);
}

}  // namespace
}  // namespace assay::host::ab
