#include "results/time_spent.hpp"

#include <gtest/gtest.h>

namespace assay::host::results {
namespace {

record::CaseRecord record_of(record::WallTimes wall) {
  record::CaseRecord record;
  record.result.wall = std::move(wall);
  return record;
}

TEST(TimeSpent, SaysWhereItWentTheLongestFirst) {
  record::WallTimes one, two;
  one.case_s = 12, one.load_s = 0.4, one.setup_s = 4, one.measure_s = 2, one.verify_s = 5, one.peak_s = 0.4;
  one.verify_parts_s = {{"data", 1}, {"operations", 4}};
  two.case_s = 8, two.create_s = 0.2, two.setup_s = 1, two.measure_s = 0.6, two.verify_s = 6;
  two.verify_parts_s = {{"operations", 2}, {"optimizer", 3.5}};
  EXPECT_EQ(time_spent({record_of(one), record_of(two)}),
            "20 s in 2 cases: verification 57% (operations 30%), set-up 26%, measuring 13%, load 2%, other 2%");
}

TEST(TimeSpent, IsNothingWhereNoCaseHasATime) {
  EXPECT_EQ(time_spent({}), "");
  EXPECT_EQ(time_spent({record_of({})}), "");
}

TEST(TimeSpent, OfACaseThatToldNoStageAllIsOther) {
  record::WallTimes wall;
  wall.case_s = 300;
  EXPECT_EQ(time_spent({record_of(wall)}), "5:00 in 1 case: other 100%");
}

}  // namespace
}  // namespace assay::host::results
