#include "common/suggest.hpp"

#include <gtest/gtest.h>

namespace assay::host {
namespace {

TEST(EditDistance, CountsInsertDeleteReplaceAndSwap) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("steps", "steps"), 0u);
  EXPECT_EQ(edit_distance("step", "steps"), 1u);
  EXPECT_EQ(edit_distance("steeps", "steps"), 1u);
  EXPECT_EQ(edit_distance("stips", "steps"), 1u);
  EXPECT_EQ(edit_distance("stpes", "steps"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Nearest, FindsASlipAndTheNearestOfSeveral) {
  EXPECT_EQ(nearest("stpes", {"warmup", "steps"}), "steps");
  EXPECT_EQ(nearest("batchsize", {"batch_size", "patch_size"}), "batch_size");
  EXPECT_EQ(nearest("LR", {"lr"}), "lr");
  EXPECT_EQ(nearest("rnu", {"ab", "run"}), "run") << "two letters that changed places";
}

TEST(Nearest, IsSilentWhenNothingIsNear) {
  EXPECT_EQ(nearest("foo", {"size", "lr"}), std::nullopt);
  EXPECT_EQ(nearest("gpu", {"cpu"}), std::nullopt) << "three letters that differ are another word";
  EXPECT_EQ(nearest("", {"size"}), std::nullopt);
  EXPECT_EQ(nearest("size", {}), std::nullopt);
}

TEST(Nearest, FindsTheDottedNameOfALastPart) {
  EXPECT_EQ(nearest("warmup", {"size", "measure.warmup"}), "measure.warmup");
  EXPECT_EQ(nearest("mean_ms", {"forward.mean_ms", "backward.mean_ms"}), std::nullopt) << "two could be meant";
}

TEST(DidYouMean, IsAnEndOfAMessage) {
  EXPECT_EQ(did_you_mean("stpes", {"steps"}), "; did you mean 'steps'?");
  EXPECT_EQ(did_you_mean("foo", {"steps"}), "");
  EXPECT_EQ(did_you_mean("d\u0435coder", {"decoder"}),
            "; '\u0435' (U+0435) is no ASCII letter; did you mean 'decoder'?");
}

TEST(DidYouMean, KnowsOtherNamesOfStatisticsAndLongerOnes) {
  EXPECT_EQ(did_you_mean("step.median_ms", {"step.mean_ms", "step.p50_ms"}), "; did you mean 'step.p50_ms'?");
  EXPECT_EQ(did_you_mean("tokens", {"step", "tokens_per_s"}), "; did you mean 'tokens_per_s'?");
  EXPECT_EQ(did_you_mean("rank_loss", {"rank_loss.mean", "rank_loss.std"}), "; did you mean 'rank_loss.mean'?");
  EXPECT_EQ(nearest("verify", {"verify_metric"}), std::nullopt) << "a parameter may be called so beside it";
}

TEST(Nearest, ABeginningBeatsASlip) {
  EXPECT_EQ(nearest("a100", {"h100", "a100-40gb", "a100-80gb"}), "a100-40gb");
  EXPECT_EQ(nearest("b100", {"h100", "a100-80gb"}), "h100");
}

}  // namespace
}  // namespace assay::host
