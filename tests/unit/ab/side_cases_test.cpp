#include "ab/side_cases.hpp"

#include <gtest/gtest.h>

namespace assay::host::ab {
namespace {

using Cases = std::vector<PlannedCase>;
using Lines = std::vector<std::string>;

TEST(SideCases, AKeyWithOneValueOnEachSideTellsNoneApart) {
  const auto side = [](const std::string& execution) {
    Cases cases;
    for (const std::string size : {"small", "xl"})
      cases.push_back({"size=" + size, {{"size", size}, {"execution", execution}}, {"size", "execution"}});
    return cases;
  };
  EXPECT_TRUE(unmatched_cases(side("eager"), side("graph")).empty());
}

TEST(SideCases, AValueThatOneSideLacksIsTold) {
  const Cases a{{"", {{"size", "small"}}, {}}};
  const Cases b{{"size=small", {{"size", "small"}}, {"size"}}, {"size=xl", {{"size", "xl"}}, {"size"}}};
  EXPECT_EQ(unmatched_cases(a, b), Lines{"only in B: size=xl"});
  EXPECT_EQ(unmatched_cases(b, a), Lines{"only in A: size=xl"});
}

TEST(SideCases, ACaseThatCouldBeSeveralIsTold) {
  const Cases a{{"", {{"work", "1"}}, {}}};
  const Cases b{{"size=small", {{"size", "small"}}, {"size"}}, {"size=xl", {{"size", "xl"}}, {"size"}}};
  EXPECT_EQ(unmatched_cases(a, b), Lines{"its only case of A could be 2 cases of B"});
}

TEST(SideCases, AnotherValueOfAParameterIsNoOtherCase) {
  EXPECT_TRUE(unmatched_cases({{"", {{"work", "1"}}, {}}}, {{"", {{"work", "2"}}, {}}}).empty());
}

}  // namespace
}  // namespace assay::host::ab
