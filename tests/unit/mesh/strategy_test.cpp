#include <gtest/gtest.h>
#include <assay/mesh/strategy.hpp>

#include <string>

namespace assay::mesh {
namespace {

std::string refusal(const Strategy& strategy) {
  try {
    validate(strategy);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

const GradientMeeting averages{};
const GradientMeeting sums{.reduction = comm::Reduction::sum};
const parallel::ShardedUpdate::Options parts{};

TEST(Strategy, EachKindOfSharingWithItsExchangeIsValid) {
  EXPECT_EQ(refusal({.gradients = averages}), "");
  EXPECT_EQ(refusal({.update = parts, .gathers = parallel::Gathers::windows}), "");
  EXPECT_EQ(refusal({.shares = Shares::blocks, .gathers = parallel::Gathers::copy_engines}), "");
  EXPECT_EQ(refusal({.shares = Shares::columns}), "");
  EXPECT_EQ(refusal({.shares = Shares::tokens, .gradients = sums}), "");
  EXPECT_EQ(refusal({.shares = Shares::stages}), "");
}

TEST(Strategy, OneWithoutAnExchangeOrWithTwoIsRefused) {
  EXPECT_EQ(refusal({}), "the strategy shares nothing and exchanges nothing; expected gradients or update");
  EXPECT_EQ(refusal({.gradients = averages, .update = parts}),
            "the strategy has both gradients and update; expected one of them");
  EXPECT_NE(refusal({.shares = Shares::blocks, .update = parts}), "");
  EXPECT_NE(refusal({.shares = Shares::columns, .gradients = sums}), "");
  EXPECT_NE(refusal({.shares = Shares::stages, .gradients = averages}), "");
  EXPECT_NE(refusal({.shares = Shares::tokens}), "");
  EXPECT_NE(refusal({.shares = Shares::tokens, .gradients = averages}), "");
  EXPECT_NE(refusal({.gradients = averages, .gathers = parallel::Gathers::registered}), "");
}

}  // namespace
}  // namespace assay::mesh
