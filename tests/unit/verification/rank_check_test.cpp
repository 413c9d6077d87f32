#include <gtest/gtest.h>

#include <assay/verification/rank_check.hpp>

namespace assay::verification {
namespace {

// Two replicas of two ranks, and three of one: the ranks at one place are compared, and no others.
TEST(RankCheck, FindsTheRankThatIsUnlikeItsReplica) {
  EXPECT_EQ(first_unlike_its_replica({7, 8, 7, 8}, 2), -1);
  EXPECT_EQ(first_unlike_its_replica({7, 8, 7, 9}, 2), 3);
  EXPECT_EQ(first_unlike_its_replica({7, 8, 8, 7}, 2), 2);
  EXPECT_EQ(first_unlike_its_replica({7, 7, 5}, 1), 2);
  EXPECT_EQ(first_unlike_its_replica({7, 8}, 2), -1);
}

}  // namespace
}  // namespace assay::verification
