#include "worker/verification_result.hpp"

#include <gtest/gtest.h>

namespace assay::host::worker {
namespace {

using record::Verification;

TEST(VerificationResult, OfFullVerificationsHasNoMode) {
  VerificationAsked asked;
  EXPECT_EQ(mode_of(asked), "");
  asked.mode = "sampled";
  EXPECT_EQ(mode_of(asked), "sampled");
}

TEST(VerificationResult, IsPartialWhereTheAccountIs) {
  const auto whole = verified_by_workload({}, Verification::ok, "all rows", "");
  EXPECT_EQ(whole.status, Verification::ok);
  EXPECT_EQ(whole.text, "all rows");
  const auto part = verified_by_workload({}, Verification::ok, "all rows", "only 3 steps are accounted for");
  EXPECT_EQ(part.status, Verification::partial);
  EXPECT_EQ(part.text, "all rows; only 3 steps are accounted for");
  // A verdict that is worse than partial stays.
  EXPECT_EQ(verified_by_workload({}, Verification::not_checked, "", "in part").status, Verification::not_checked);
}

TEST(VerificationResult, ByAccountNamesTheCaseThatWasVerified) {
  VerificationAsked asked;
  asked.mode = "sampled";
  const auto alone = verified_by_account(asked, "5 steps repeated; ", "of 5 steps");
  EXPECT_EQ(alone.status, Verification::by_account);
  EXPECT_EQ(alone.text, "5 steps repeated; nothing else was checked ([run] verify = \"sampled\"); of 5 steps");
  asked.mode = "first";
  asked.first.emplace();
  asked.first->which = {.index = 2, .repeat = 1, .hash = "9f2c0a1b7d3e4f55", .status = Verification::partial};
  const auto as_first = verified_by_account(asked, "", "");
  EXPECT_EQ(as_first.status, Verification::as_case);
  EXPECT_EQ(as_first.text, "computes what case 3, repeat 1 (9f2c0a1b7d3e4f55) does, which is verified in part");
  ASSERT_TRUE(as_first.refers_to);
  EXPECT_EQ(as_first.refers_to->hash, "9f2c0a1b7d3e4f55");
  EXPECT_EQ(as_first.mode, "first");
}

}  // namespace
}  // namespace assay::host::worker
