#include "compare/statistic_words.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "common/usage_error.hpp"

namespace assay::host::compare {
namespace {

TEST(StatisticWords, AreReadAsTheyAreWritten) {
  for (const Statistic statistic : {Statistic::mean, Statistic::p05, Statistic::lower_quartile, Statistic::median})
    EXPECT_EQ(statistic_of(word_of(statistic)), statistic);
  EXPECT_THROW(statistic_of("mode"), UsageError);
}

TEST(ShareOf, TakesPercentBetweenTheLimits) {
  EXPECT_DOUBLE_EQ(share_of("threshold", 2, 0, 100), 0.02);
  EXPECT_DOUBLE_EQ(share_of("threshold", 100, 0, 100), 1);
  EXPECT_THROW(share_of("threshold", 100.1, 0, 100), UsageError);
  EXPECT_THROW(share_of("threshold", std::numeric_limits<double>::quiet_NaN(), 0, 100), UsageError);
}

}  // namespace
}  // namespace assay::host::compare
