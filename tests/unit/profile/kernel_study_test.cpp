#include "profile/kernel_study.hpp"

#include <gtest/gtest.h>

namespace assay::host::profile {
namespace {

const record::Kernels naive{
    {"forward",
     {{"matrix products", "gemm_a", 24, 600, 0.6},
      {"softmax", "softmax_forward_kernel", 12, 300, 0.3},
      {"element-wise", "add", 12, 100, 0.1}}},
    {"optimizer", {{"optimizer", "adamw", 1, 500, 1.0}}},
    {"outside", {{"matrix products", "gemm_a", 1, 100, 0.5}, {"matrix products", "gemm_b", 1, 100, 0.5}}}};

TEST(KernelStudy, TheWholeStepComesFirstAndAddsUp) {
  const std::vector<KernelPart> parts = kernel_parts(naive);
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[0].phase, "step");
  EXPECT_EQ(parts[1].phase, "forward");
  EXPECT_DOUBLE_EQ(parts[0].time_us, 1700);
  EXPECT_DOUBLE_EQ(parts[0].count, 51);
  EXPECT_DOUBLE_EQ(parts[1].time_us, 1000);
  // A kernel that runs in two phases is one of the step.
  ASSERT_EQ(parts[0].kernels.size(), 5u);
  EXPECT_EQ(parts[0].kernels[0].name, "gemm_a");
  EXPECT_DOUBLE_EQ(parts[0].kernels[0].time_us, 700);
  EXPECT_DOUBLE_EQ(parts[0].kernels[0].count, 25);
  EXPECT_EQ(parts[0].classes[0].kernel_class, "matrix products");
  EXPECT_DOUBLE_EQ(parts[0].classes[0].time_us, 800);
}

TEST(KernelStudy, SharesAreOfThePart) {
  const std::vector<KernelPart> parts = kernel_parts(naive);
  EXPECT_DOUBLE_EQ(parts[1].share_of_class("matrix products"), 0.6);
  EXPECT_DOUBLE_EQ(parts[0].share_of_class("matrix products"), 800.0 / 1700);
  EXPECT_DOUBLE_EQ(parts[2].share_of_class("matrix products"), 0);
  EXPECT_DOUBLE_EQ(KernelPart().share_of_class("softmax"), 0);
}

TEST(KernelStudy, TheSoftmaxOfFusedAttentionIsNotZeroButFused) {
  EXPECT_EQ(kernel_parts(naive)[1].softmax(), Softmax::of_its_own);
  EXPECT_EQ(kernel_parts(naive)[2].softmax(), Softmax::none);
  EXPECT_EQ(kernel_parts({{"forward", {{"attention", "flash_fprop", 12, 100, 1.0}}}})[1].softmax(), Softmax::fused);
}

}  // namespace
}  // namespace assay::host::profile
