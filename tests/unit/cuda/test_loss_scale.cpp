// The loss scale after steps with and without gradients that are not finite.
#include <gtest/gtest.h>

#include <limits>

#include "cuda/kernels/loss_scale.hpp"

namespace assay::cuda {
namespace {

TEST(LossScaleMoves, BackingOffEndsAboveZero) {
  float scale = 65536.0F;
  for (int skipped = 0; skipped < 500; ++skipped) {
    const float before = scale;
    scale = shrunk_loss_scale(scale, 0.5F);
    ASSERT_LE(scale, before);
    ASSERT_GT(scale, 0.0F);
    ASSERT_TRUE(std::isfinite(static_cast<float>(1.0 / static_cast<double>(scale)))) << scale;
  }
  EXPECT_EQ(scale, smallest_loss_scale);
  EXPECT_EQ(grown_loss_scale(scale, 2.0F), 2 * smallest_loss_scale) << "it grows again";
}

TEST(LossScaleMoves, HalvesAndDoublesInBetween) {
  EXPECT_EQ(shrunk_loss_scale(16.0F, 0.5F), 8.0F);
  EXPECT_EQ(grown_loss_scale(16.0F, 2.0F), 32.0F);
  const float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(grown_loss_scale(largest, 2.0F), largest);
  EXPECT_EQ(shrunk_loss_scale(0x1p-70F, 0.5F), 0x1p-70F) << "one that begins below stays where it is";
}

}  // namespace
}  // namespace assay::cuda
